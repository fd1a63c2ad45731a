//===- GptOps.td - operations of the gpt dialect ------------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_OPS
#define GPTC_DIALECT_GPT_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "gptc/Dialect/Gpt/GptAttrs.td"
include "gptc/Dialect/Gpt/GptTypes.td"

// Ranked float tensors (f32 here); leading dimensions may be dynamic.
def Gpt_Tensor : RankedTensorOf<[F32]>;
def Gpt_Ids : 1DTensorOf<[I32]>;
def Gpt_Elementwise : AnyTypeOf<[F32, RankedTensorOf<[F32]>]>;

class Gpt_Op<string mnemonic, list<Trait> traits = []> : Op<Gpt_Dialect, mnemonic, traits>;
class Gpt_PureOp<string mnemonic, list<Trait> traits = []> : Gpt_Op<mnemonic, !listconcat([Pure], traits)>;

//===----------------------------------------------------------------------===//
// Graph ops: tokens and positions
//===----------------------------------------------------------------------===//

def Gpt_EmbeddingOp : Gpt_PureOp<"embedding"> {
  let summary = "rows of a table";
  let description = [{
    result[t, :] = table[ids[t], :]. Also used for learned positions.
    `%x = gpt.embedding %wte, %tokens : tensor<257x64xf32>, tensor<?xi32> -> tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$table, Gpt_Ids:$ids);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` type($table) `,` type($ids) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_PositionsOp : Gpt_PureOp<"positions", [SameOperandsAndResultType]> {
  let summary = "the positions 0, 1, ... of a sequence of tokens";
  let description = [{ `%pos = gpt.positions %tokens : tensor<?xi32>` }];
  let arguments = (ins Gpt_Ids:$ids);
  let results = (outs Gpt_Ids:$result);
  let assemblyFormat = "$ids attr-dict `:` type($ids)";
}

def Gpt_SelectRowsOp : Gpt_PureOp<"select_rows"> {
  let summary = "chosen rows of a sequence";
  let description = [{
    result[r, :] = x[rows[r], :]. Stepping puts it before the LM head so that only wanted rows are computed.
    `%y = gpt.select_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Ids:$rows);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $rows attr-dict `:` type($x) `,` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Graph ops: linear algebra
//===----------------------------------------------------------------------===//

def Gpt_LinearOp : Gpt_PureOp<"linear"> {
  let summary = "y = x W^T + b";
  let description = [{
    Weights are [out, in]; with `in_out` they are [in, out] (GPT-2's Conv1D). Leading dimensions of x are rows.
    `%y = gpt.linear %x, %w bias %b in_out : tensor<?x64xf32>, tensor<64x192xf32>, tensor<192xf32> -> tensor<?x192xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$weight, Optional<Gpt_Tensor>:$bias, UnitAttr:$in_out);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` $bias^)? (`in_out` $in_out^)? attr-dict
    `:` type($x) `,` type($weight) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Input and output features.
    int64_t inFeatures() { return getWeight().getType().getDimSize(getInOut() ? 0 : 1); }
    int64_t outFeatures() { return getWeight().getType().getDimSize(getInOut() ? 1 : 0); }
  }];
}

def Gpt_MatmulOp : Gpt_PureOp<"matmul"> {
  let summary = "product of two activations, head by head";
  let description = [{
    a [H, M, K], b [H / groups, K, N] ([H / groups, N, K] with transpose_b), result [H, M, N]. Head h of a meets head
    h / groups of b (grouped-query attention, arXiv:2305.13245). More leading batch dimensions must be equal.
    `%s = gpt.matmul %q, %k transpose_b groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32> -> tensor<9x?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$a, Gpt_Tensor:$b, UnitAttr:$transpose_b, DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_b` $transpose_b^)? (`groups` $groups^)? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Gpt_SplitOp : Gpt_PureOp<"split"> {
  let summary = "cut the last dimension into consecutive parts";
  let description = [{
    `%q, %k, %v = gpt.split %qkv : tensor<?x192xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Variadic<Gpt_Tensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($parts)";
  let hasVerifier = 1;
}

def Gpt_SplitHeadsOp : Gpt_PureOp<"split_heads"> {
  let summary = "[T, H*D] to [H, T, D]";
  let description = [{ `%h = gpt.split_heads %q : tensor<?x576xf32> -> tensor<9x?x64xf32>` Leading batch dimensions stay in front. }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Gpt_MergeHeadsOp : Gpt_PureOp<"merge_heads"> {
  let summary = "[H, T, D] to [T, H*D]";
  let description = [{ `%c = gpt.merge_heads %o : tensor<9x?x64xf32> -> tensor<?x576xf32>` }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Graph ops: norms, activations, attention pieces
//===----------------------------------------------------------------------===//

def Gpt_LayerNormOp : Gpt_PureOp<"layer_norm"> {
  let summary = "layer normalisation over the last dimension (arXiv:1607.06450)";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * gamma + beta, var the mean of squared deviations.
    `%n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$gamma, Optional<Gpt_Tensor>:$beta, F64Attr:$eps);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_RmsNormOp : Gpt_PureOp<"rms_norm"> {
  let summary = "root-mean-square normalisation over the last dimension (arXiv:1910.07467)";
  let description = [{
    y = x / sqrt(mean(x^2) + eps) * gamma. `%n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x576xf32>, tensor<576xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$gamma, F64Attr:$eps);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_RopeOp : Gpt_PureOp<"rope", [AllTypesMatch<["x", "result"]>]> {
  let summary = "rotary position embedding of every head";
  let description = [{
    x [H, T, D]; pair (a, b) of channels becomes (a cos - b sin, b cos + a sin), the angle position * inverse frequency
    computed in double from the integer position.
    `%r = gpt.rope %x, %pos <base 1.0e5, pairs half, dim 64> : tensor<9x?x64xf32>, tensor<?xi32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Ids:$positions, Gpt_RopeAttr:$rope);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $positions $rope attr-dict `:` type($x) `,` type($positions)";
  let hasVerifier = 1;
}

def Gpt_ScaleOp : Gpt_PureOp<"scale", [SameOperandsAndResultType]> {
  let summary = "every element times a constant";
  let description = [{ The factor is rounded to f32 once. `%ss = gpt.scale %s by 0.125 : tensor<9x?x?xf32>` }];
  let arguments = (ins Gpt_Tensor:$x, F64Attr:$factor);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_CausalMaskOp : Gpt_PureOp<"causal_mask", [SameOperandsAndResultType]> {
  let summary = "hide later keys from earlier queries";
  let description = [{
    s [..., Sq, Sk], aligned bottom-right: score (i, j) becomes -inf when j > i + Sk - Sq.
    `%m = gpt.causal_mask %s : tensor<9x?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$s);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$s attr-dict `:` type($s)";
  let hasVerifier = 1;
}

def Gpt_MaskOp : Gpt_PureOp<"mask", [AllTypesMatch<["s", "result"]>]> {
  let summary = "hide keys by an additive (f32) or boolean (i1, true = visible) mask";
  let description = [{
    s [..., Sq, Sk]; mask [Sq, Sk] or [..., Sq, Sk]. `%m = gpt.mask %s, %k : tensor<9x?x?xf32>, tensor<?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$s, RankedTensorOf<[F32, I1]>:$mask);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$s `,` $mask attr-dict `:` type($s) `,` type($mask)";
  let hasVerifier = 1;
}

def Gpt_SoftmaxOp : Gpt_PureOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "softmax over the last dimension; a row with every key hidden is 0";
  let description = [{ `%p = gpt.softmax %m : tensor<9x?x?xf32>` }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Gpt_GeluOp : Gpt_PureOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "GELU, of a tensor or of a scalar in an epilogue";
  let description = [{ `%y = gpt.gelu tanh %x : tensor<?x256xf32>` }];
  let arguments = (ins Gpt_Elementwise:$x, Gpt_GeluKindAttr:$kind);
  let results = (outs Gpt_Elementwise:$result);
  let assemblyFormat = "`` $kind $x attr-dict `:` type($x)";
}

def Gpt_SiluOp : Gpt_PureOp<"silu", [SameOperandsAndResultType]> {
  let summary = "x * sigmoid(x), of a tensor or of a scalar in an epilogue";
  let description = [{ `%y = gpt.silu %x : tensor<?x1536xf32>` }];
  let arguments = (ins Gpt_Elementwise:$x);
  let results = (outs Gpt_Elementwise:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Gpt_DropoutOp : Gpt_PureOp<"dropout", [SameOperandsAndResultType]> {
  let summary = "dropout as the training graph has it; the identity at inference";
  let description = [{ `%y = gpt.dropout %x p 0.1 : tensor<?x64xf32>` }];
  let arguments = (ins Gpt_Tensor:$x, F64Attr:$p);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Stepping ops: the KV cache
//===----------------------------------------------------------------------===//

def Gpt_KVAppendOp : Gpt_PureOp<"kv_append", [AllTypesMatch<["cache", "result"]>, AllTypesMatch<["keys", "values"]>,
                                                 AllTypesMatch<["positions", "sequences"]>]> {
  let summary = "write keys and values of the step's tokens";
  let description = [{
    keys, values [Hkv, T, D]; token t goes to position positions[t] of sequence sequences[t].
    `%c1 = gpt.kv_append %c0, %k, %v at %pos, %seq layer 0 : !gpt.kv_cache<...>, tensor<3x?x64xf32>, tensor<?xi32>`
  }];
  let arguments = (ins Gpt_KVCacheType:$cache, Gpt_Tensor:$keys, Gpt_Tensor:$values, Gpt_Ids:$positions, Gpt_Ids:$sequences, I64Attr:$layer);
  let results = (outs Gpt_KVCacheType:$result);
  let assemblyFormat = [{
    $cache `,` $keys `,` $values `at` $positions `,` $sequences `layer` $layer attr-dict
    `:` qualified(type($cache)) `,` type($keys) `,` type($positions)
  }];
  let hasVerifier = 1;
}

def Gpt_KVReadOp : Gpt_PureOp<"kv_read", [AllTypesMatch<["keys", "values"]>]> {
  let summary = "keys and values of the one sequence that an unfused step runs";
  let description = [{
    [Hkv, S, D], positions 0 .. S - 1 in order. Only the unfused path has it: it runs a ragged batch sequence by sequence.
    `%k, %v = gpt.kv_read %c layer 0 : !gpt.kv_cache<...> -> tensor<3x?x64xf32>`
  }];
  let arguments = (ins Gpt_KVCacheType:$cache, I64Attr:$layer);
  let results = (outs Gpt_Tensor:$keys, Gpt_Tensor:$values);
  let assemblyFormat = "$cache `layer` $layer attr-dict `:` qualified(type($cache)) `->` type($keys)";
  let hasVerifier = 1;
}

def Gpt_RopeTableOp : Gpt_PureOp<"rope_table"> {
  let summary = "cosines and signed sines of every token's angles";
  let description = [{
    [T, 2, D]: row t holds cos by channel, then sin by channel with the sign that the channel's partner takes
    (minus for the first of a pair), so that y = x * cos + partner(x) * sin.
    `%cs = gpt.rope_table %pos <base 1.0e5, pairs half, dim 64> : tensor<?xi32> -> tensor<?x2x64xf32>`
  }];
  let arguments = (ins Gpt_Ids:$positions, Gpt_RopeAttr:$rope);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$positions $rope attr-dict `:` type($positions) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_RotateOp : Gpt_PureOp<"rotate", [AllTypesMatch<["x", "result"]>]> {
  let summary = "apply a rope_table to [H, T, D]";
  let description = [{ `%r = gpt.rotate %x, %cs half : tensor<9x?x64xf32>, tensor<?x2x64xf32>` }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$table, Gpt_RopePairsAttr:$pairs);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $table $pairs attr-dict `:` type($x) `,` type($table)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fused ops: what kernels compute
//===----------------------------------------------------------------------===//

def Gpt_FusedGemmOp : Gpt_Op<"fused_gemm", [AttrSizedOperandSegments, AttrSizedResultSegments, SingleBlock,
                                            IsolatedFromAbove, RecursiveMemoryEffects,
                                            DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one activation times one or several weights, each accumulator through an epilogue";
  let description = [{
    x [T, K]. *Sections* (default): weights are concatenated along N; section i has its own weight, optional bias, optional
    rope, region and destination. *Lanes* (`lanes`): weights have equal N and one region sees one accumulator of each.

    Region arguments, all f32 scalars, in this order: one accumulator (sections) or one per weight (lanes), each with its
    bias added; then, if the section has a rope: the accumulator of the rotary partner channel, cos, signed sin
    (see rope_table); then one element of each residual. The region holds scalar arith, math and gpt ops and yields one value.

    A section with append = keys/values writes its yielded values to the cache (layer `layer`, position positions[t] of
    sequence sequences[t]) and has no tensor result. Results: one tensor [T, N_i] per other section in order, then the cache
    if there is one. Residuals [T, N] are allowed with one section or with lanes only.
    ropes[i] is the pairing of section i or unit; the table is `rope_table` [T, 2, D].
  }];
  let arguments = (ins
    Gpt_Tensor:$x,
    Variadic<Gpt_Tensor>:$weights,
    Variadic<Gpt_Tensor>:$biases,          // as many as has_bias has true
    Variadic<Gpt_Tensor>:$residuals,
    Optional<Gpt_Tensor>:$rope_table,
    Optional<Gpt_Ids>:$positions,
    Optional<Gpt_Ids>:$sequences,
    Optional<Gpt_KVCacheType>:$cache,
    UnitAttr:$lanes,
    DenseBoolArrayAttr:$in_out,            // one per weight: stored [in, out]
    DenseBoolArrayAttr:$has_bias,          // one per weight
    ArrayAttr:$ropes,                      // one per section: rope_pairs or unit
    ArrayAttr:$appends,                    // one per section: append
    OptionalAttr<I64Attr>:$layer);
  let results = (outs Variadic<Gpt_Tensor>:$outputs, Optional<Gpt_KVCacheType>:$cache_result);
  let regions = (region VariadicRegion<SizedRegion<1>>:$epilogues);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t numSections() { return getEpilogues().size(); }
    /// Bias of weight i, or null.
    ::mlir::Value biasOf(unsigned i);
    /// Input features, and output features of weight i.
    int64_t inFeatures();
    int64_t outFeatures(unsigned i);
    /// The pairing of section i, if it has a rope.
    std::optional<::gptc::gpt::RopePairs> ropeOf(unsigned i);
    ::gptc::gpt::Append appendOf(unsigned i);
    /// The tensor result of section i, or null if it appends.
    ::mlir::Value outputOf(unsigned i);
  }];
}

def Gpt_YieldOp : Gpt_PureOp<"yield", [Terminator, ReturnLike, HasParent<"FusedGemmOp">]> {
  let summary = "end of an epilogue";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Gpt_FlashAttentionOp : Gpt_Op<"flash_attention", [AttrSizedOperandSegments, Pure]> {
  let summary = "softmax(scale * q k^T, masked) v without the score matrix (arXiv:2205.14135)";
  let description = [{
    Dense: q [H, Sq, D], k and v [H / groups, Sk, D], result [H, Sq, D]; causal is aligned bottom-right.
    Cached: q [T, H*D] of a ragged batch, keys and values of layer `layer` in the cache up to each token's own position,
    result [T, H*D]. Scale multiplies the product. A query that sees no key gives 0.
    `%o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : ...`
    `%o = gpt.flash_attention %q cache %c at %pos, %seq layer 0 causal scale 0.125 groups 3 : ...`
  }];
  let arguments = (ins Gpt_Tensor:$q, Optional<Gpt_Tensor>:$k, Optional<Gpt_Tensor>:$v, Optional<Gpt_KVCacheType>:$cache,
                       Optional<Gpt_Ids>:$positions, Optional<Gpt_Ids>:$sequences, OptionalAttr<I64Attr>:$layer,
                       UnitAttr:$causal, F64Attr:$scale, DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels: outlined, de-duplicated, called in a straight line
//===----------------------------------------------------------------------===//

def Gpt_KernelOp : Gpt_Op<"kernel", [IsolatedFromAbove, FunctionOpInterface, Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "one generated kernel: a single op (besides constants) and its schedule";
  let description = [{
    Arguments are the op's operands in order; weight arguments carry `gpt.storage` (a string attribute). Results are the op's.
    `gpt.kernel @gemm_k64_n192_bias(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> { ... }`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The op that the kernel computes (the only one besides constants and the terminator).
    ::mlir::Operation *kernelOp();
  }];
}

def Gpt_ReturnOp : Gpt_PureOp<"return", [Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Gpt_CallOp : Gpt_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call of a kernel";
  let description = [{
    `layer`: the layer of the KV cache that the kernel works on (its body says layer 0, so that one kernel serves all).
    `%y = gpt.call @gemm_k64_n192_bias(%x, %w) : (tensor<?x64xf32>, tensor<192x64xf32>) -> tensor<?x192xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$args, OptionalAttr<I64Attr>:$layer);
  let results = (outs Variadic<AnyType>:$outs);
  let assemblyFormat = "$kernel `(` $args `)` attr-dict `:` functional-type($args, $outs)";
}

#endif
