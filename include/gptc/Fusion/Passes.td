//===- Passes.td - passes of the Fusion room ---------------*- tablegen -*-===//
#ifndef GPTC_FUSION_PASSES
#define GPTC_FUSION_PASSES

include "mlir/Pass/PassBase.td"

class FusionPass<string name> : Pass<name> {
  let statistics = [Statistic<"numFused", "fused", "Number of times the fusion fired">];
  let dependentDialects = ["::gptc::gpt::GptDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def CanonicalizeLinear : FusionPass<"gpt-canonicalize-linear"> {
  let summary = "the bias of a linear, written as a sum, into the linear";
  let description = [{
    ```mlir
    %y = gpt.linear %x, %w : ... ; %b1 = gpt.broadcast %b like %y : ... ; %z = arith.addf %y, %b1
    // becomes
    %z = gpt.linear %x, %w bias %b
    ```
    A packed linear whose parts get biases of their own before they are split into heads becomes a linear for each part.
  }];
}

def FuseQkv : FusionPass<"gpt-fuse-qkv"> {
  let summary = "one GEMM for the queries, keys and values of an attention";
  let description = [{
    ```mlir
    %q = gpt.linear %n, %wq : ...
    %k = gpt.linear %n, %wk : ...
    %v = gpt.linear %n, %wv : ...
    // becomes one gpt.fused_gemm of three sections. A packed gpt.linear followed by gpt.split becomes the same; its
    // sections take tensor.extract_slice of the packed weight and bias, or gpt.head_part where they are packed head by
    // head (gpt.split of gpt.split_heads). What else is packed becomes a section too.
    ```
  }];
}

def FuseAttention : FusionPass<"gpt-fuse-attention"> {
  let summary = "matmul, scale, mask, softmax, matmul to flash_attention";
  let description = [{
    ```mlir
    %s = gpt.matmul %q, %k transpose_b ; %m = gpt.causal_mask %s ; %p = gpt.softmax %m ; %o = gpt.matmul %p, %v
    // over keys and values read from the cache:
    %a = gpt.flash_attention %merged cache %c at %positions, %sequences layer 0 causal scale 1.0
    // over tensors:
    %o = gpt.flash_attention %q, %k, %v causal scale 1.0
    ```
  }];
}

def FuseRopeKV : FusionPass<"gpt-fuse-rope-kv"> {
  let summary = "RoPE and the KV append into the epilogue of the QKV GEMM";
  let description = [{
    A rope of the split heads of a section becomes the section's region, y = fma(partner, sin, acc * cos); a kv_append
    of a section's heads becomes the section's destination. A value that is used elsewhere too stays a result.
  }];
}

def FuseEpilogue : FusionPass<"gpt-fuse-epilogue"> {
  let summary = "activations, gates and residuals into the GEMM that feeds them";
  let description = [{
    Every gpt.linear on [T, K] becomes a fused_gemm, and a gpt.split of it the sections of one; elementwise ops on its
    result move into the epilogue, and values of it that have other users stay results. Two GEMMs of the same activation
    that meet in an elementwise op become lanes; another operand becomes a residual, a gpt.broadcast of [N] a row.
  }];
}

def FuseArgmax : FusionPass<"gpt-fuse-argmax"> {
  let summary = "the argmax of an LM head into its GEMM, whose logits are then never written";
  let description = [{
    ```mlir
    %y = gpt.fused_gemm %x : ... ; %t = gpt.argmax %y : ...
    // becomes
    %v, %c = gpt.fused_gemm %x : ... argmax 128 ... ; %t = gpt.merge_argmax %v, %c : ...
    ```
  }];
}

def FuseNorm : FusionPass<"gpt-fuse-norm"> {
  let summary = "a norm into the prologue of the GEMM that is its only user";
  let description = [{
    ```mlir
    %n = gpt.rms_norm %x, %g eps 1.0e-5 : ... ; %y = gpt.fused_gemm %n : ...
    // becomes
    %y = gpt.fused_gemm norm(rms %g eps 1.0e-5) %x : ...
    ```
    where the GEMM has so many output features that to normalise all rows on every thread costs less than a kernel.
  }];
  let options = [Option<"leastFeatures", "least-features", "int64_t", "leastFeaturesOfNorm",
                        "Output features of a GEMM from which on a norm is fused into it">];
}

#endif
