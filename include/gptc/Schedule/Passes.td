//===- Passes.td - passes of the Schedule room -------------*- tablegen -*-===//
#ifndef GPTC_SCHEDULE_PASSES
#define GPTC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def NarrowValues : Pass<"gpt-narrow-values", "::mlir::ModuleOp"> {
  let summary = "keep values that a GPU's GEMMs and attention round anyway in 16 bits";
  let description = [{
    Sets `gpt.element` on arguments and results of kernels. Those that a value joins, in any entry, have the same element;
    they are narrow if every kernel can write or read them so (results of norms, attention and GEMMs; rows of a GEMM,
    queries) and none of their values is an entry's. Residual streams, logits and tables stay f32.

    ```mlir
    gpt.kernel @rms_norm_c576(%x: tensor<?x576xf32>, %g: tensor<576xf32>) -> (tensor<?x576xf32> {gpt.element = bf16})
    gpt.kernel @gemm_k576_n960(%x: tensor<?x576xf32> {gpt.element = bf16}, ...)
    ```
  }];
  let options = [
    Option<"element", "element", "std::string", "\"bf16\"", "What inputs of GEMMs and attention are rounded to: bf16 or f16">
  ];
  let statistics = [Statistic<"numNarrow", "narrow-values", "Number of values kept in 16 bits">];
}

def SelectSchedule : Pass<"gpt-select-schedule", "::mlir::ModuleOp"> {
  let summary = "choose the tile sizes of every GEMM and attention kernel, once";
  let description = [{
    Sets the `schedule` attribute of each gpt.kernel from its shapes and the target description. A kernel that has one
    keeps it, if it fits the target. Code generation only reads it. Where a CPU sums products of bytes fast, `gpt.storage` of
    q8_0 becomes q8_0x4, the same bytes in words of four.

    ```mlir
    gpt.kernel @gemm_k576_n960(...) schedule {depth = 128 : i64, group = 8 : i64, panel = 32 : i64, row_block = 560 : i64, row_tile = 14 : i64, unit = 2 : i64}
    ```
  }];
  let options = [
    Option<"march", "march", "std::string", "\"native\"", "Target: native, an x86-64 level, or sm_80 and the like">,
    Option<"precision", "precision", "std::string", "\"f32\"", "Arithmetic of GEMM and attention">
  ];
}

#endif
