//===- GptAttrs.td - attributes of the gpt dialect ---------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_ATTRS
#define GPTC_DIALECT_GPT_ATTRS

include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "gptc/Dialect/Gpt/GptDialect.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

// The exact function a GELU computes (Hendrycks and Gimpel, arXiv:1606.08415).
def Gpt_GeluKind : I32EnumAttr<"GeluKind", "GELU formula", [
    I32EnumAttrCase<"Erf", 0, "erf">,     // x * Phi(x)
    I32EnumAttrCase<"Tanh", 1, "tanh">,   // tanh approximation of section 2
    I32EnumAttrCase<"Quick", 2, "quick">  // x * sigmoid(1.702 x)
  ]> { let cppNamespace = "gptc::gpt"; let genSpecializedAttr = 0; }
def Gpt_GeluKindAttr : EnumAttr<Gpt_Dialect, Gpt_GeluKind, "gelu_kind">;

// Which channels rotate together: half = (i, i + D/2), adjacent = (2i, 2i + 1).
def Gpt_RopePairs : I32EnumAttr<"RopePairs", "rotary pairing", [
    I32EnumAttrCase<"Half", 0, "half">, I32EnumAttrCase<"Adjacent", 1, "adjacent">
  ]> { let cppNamespace = "gptc::gpt"; let genSpecializedAttr = 0; }
def Gpt_RopePairsAttr : EnumAttr<Gpt_Dialect, Gpt_RopePairs, "rope_pairs">;

// What a GEMM section does with its result besides computing it.
def Gpt_Append : I32EnumAttr<"Append", "KV cache destination", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Keys", 1, "keys">,
    I32EnumAttrCase<"Values", 2, "values">
  ]> { let cppNamespace = "gptc::gpt"; let genSpecializedAttr = 0; }
def Gpt_AppendAttr : EnumAttr<Gpt_Dialect, Gpt_Append, "append">;

// Which norm the rows of a GEMM go through first; sample: a layer_norm with `sample`.
def Gpt_NormKind : I32EnumAttr<"NormKind", "norm", [
    I32EnumAttrCase<"Layer", 0, "layer">, I32EnumAttrCase<"Rms", 1, "rms">,
    I32EnumAttrCase<"Sample", 2, "sample">
  ]> { let cppNamespace = "gptc::gpt"; let genSpecializedAttr = 0; }
def Gpt_NormKindAttr : EnumAttr<Gpt_Dialect, Gpt_NormKind, "norm_kind">;

// How a weight's elements are stored; the tensor type is the logical one. The formats from bf16x2 to q8_0x4 are only
// packages' (Format/WeightLayout.h), those from q5_0 on only checkpoints' (checkpoint::packedFrom says what they become).
def Gpt_Storage : I32EnumAttr<"Storage", "weight storage format", [
    I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
    I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"Q8_0", 3, "q8_0">,
    I32EnumAttrCase<"Q4_0", 4, "q4_0">, I32EnumAttrCase<"Q4_1", 5, "q4_1">,
    I32EnumAttrCase<"BF16x2", 7, "bf16x2">, I32EnumAttrCase<"I8x4", 8, "i8x4">,
    I32EnumAttrCase<"Q8_0x4", 9, "q8_0x4">, I32EnumAttrCase<"Q5_0", 10, "q5_0">,
    I32EnumAttrCase<"Q5_1", 11, "q5_1">, I32EnumAttrCase<"Q2_K", 12, "q2_k">,
    I32EnumAttrCase<"Q3_K", 13, "q3_k">, I32EnumAttrCase<"Q4_K", 14, "q4_k">,
    I32EnumAttrCase<"Q5_K", 15, "q5_k">, I32EnumAttrCase<"Q6_K", 16, "q6_k">
  ]> { let cppNamespace = "gptc::gpt"; let genSpecializedAttr = 0; }

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// A double compared by its bits and printed so that it reads back to them.
class Gpt_Double<string desc> : AttrOrTypeParameter<"::gptc::gpt::ExactDouble", desc, "double">;

class Gpt_Attr<string name, string attrMnemonic> : AttrDef<Gpt_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Gpt_StoredAttr : Gpt_Attr<"Stored", "stored"> {
  let summary = "where a weight lies: file, tensor name in it, storage format";
  let description = [{
    Stands on an `ml_program.global` as `gpt.stored`. `file` is relative to the module's `gpt.checkpoint`
    folder (or equals the checkpoint file's own name); an empty file means that the host hands the weight over at
    open. `#gpt.stored<"model.safetensors", "h.0.attn.c_attn.weight", f32>`
  }];
  let parameters = (ins StringRefParameter<"file">:$file, StringRefParameter<"tensor name">:$tensor,
                        EnumParameter<Gpt_Storage>:$storage);
  let assemblyFormat = "`<` $file `,` $tensor `,` $storage `>`";
  let genVerifyDecl = 1;
}

def Gpt_RopeScalingAttr : Gpt_Attr<"RopeScaling", "llama3"> {
  let summary = "Llama 3 frequency scaling (rope_type llama3)";
  let description = [{
    Wavelengths above original/low are divided by factor, below original/high kept, between them blended
    linearly in original/wavelength. `#gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>`
  }];
  let parameters = (ins Gpt_Double<"divisor of long wavelengths">:$factor, Gpt_Double<"low frequency factor">:$low,
                        Gpt_Double<"high frequency factor">:$high, "int64_t":$original);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Gpt_RopeFactorsAttr : Gpt_Attr<"RopeFactors", "rope_factors"> {
  let summary = "divisors of the rotary frequencies (rope_type linear; the factors that GGUF files store)";
  let description = [{
    One number for all frequencies, or one for each. `#gpt.rope_factors<4.0>`, `#gpt.rope_factors<1.0, 1.5, 8.0>`
  }];
  let parameters = (ins ArrayRefParameter<"::gptc::gpt::ExactDouble">:$factors);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Gpt_RopeAttr : Gpt_Attr<"Rope", "rope"> {
  let summary = "a rotary embedding: base, pairing, head size, optional scaling (Su et al., arXiv:2104.09864)";
  let description = [{
    `#gpt.rope<base 1.0e5, pairs half, dim 64>`, optionally `, rotary 16` after dim: only the first 16 channels of a
    head rotate (GPT-J, GPT-NeoX); optionally `, scaling #gpt.llama3<...>` or `, scaling #gpt.rope_factors<...>`
  }];
  let parameters = (ins Gpt_Double<"base of the geometric series">:$base, "::gptc::gpt::RopePairs":$pairs, "int64_t":$dim,
                        OptionalParameter<"::mlir::Attribute">:$scaling, "int64_t":$rotary);
  let builders = [
    AttrBuilder<(ins "::gptc::gpt::ExactDouble":$base, "::gptc::gpt::RopePairs":$pairs, "int64_t":$dim,
                     "::mlir::Attribute":$scaling),
                [{ return $_get($_ctxt, base, pairs, dim, scaling, dim); }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The rotary/2 inverse frequencies in radians per position, scaling applied, in double precision.
    ::llvm::SmallVector<double> inverseFrequencies() const;
  }];
}

#endif
