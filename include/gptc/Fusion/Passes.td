//===- Passes.td - passes of the Fusion room ---------------*- tablegen -*-===//
#ifndef GPTC_FUSION_PASSES
#define GPTC_FUSION_PASSES

include "mlir/Pass/PassBase.td"

class FusionPass<string name> : Pass<name> {
  let statistics = [Statistic<"numFused", "fused", "Number of times the fusion fired">];
  let dependentDialects = ["::gptc::gpt::GptDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def FuseQkv : FusionPass<"gpt-fuse-qkv"> {
  let summary = "one GEMM for the queries, keys and values of an attention";
  let description = [{
    ```mlir
    %q = gpt.linear %n, %wq : ...
    %k = gpt.linear %n, %wk : ...
    %v = gpt.linear %n, %wv : ...
    // becomes one gpt.fused_gemm of three sections. A packed gpt.linear followed by gpt.split becomes the same; its
    // sections take tensor.extract_slice of the packed weight and bias.
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
    of a section's heads becomes the section's destination.
  }];
}

def FuseEpilogue : FusionPass<"gpt-fuse-epilogue"> {
  let summary = "activations, gates and residuals into the GEMM that feeds them";
  let description = [{
    Every gpt.linear on [T, K] becomes a fused_gemm; elementwise ops that are the only user of its result move into the
    epilogue. Two GEMMs of the same activation that meet in an elementwise op become lanes; another operand of an addf or
    mulf becomes a residual.
  }];
}

#endif
