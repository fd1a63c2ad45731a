//===- Passes.td - passes of the Schedule room -------------*- tablegen -*-===//
#ifndef GPTC_SCHEDULE_PASSES
#define GPTC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def SelectSchedule : Pass<"gpt-select-schedule", "::mlir::ModuleOp"> {
  let summary = "choose the tile sizes of every GEMM and attention kernel, once";
  let description = [{
    Sets the `schedule` attribute of each gpt.kernel from its shapes and the target description. A kernel that has one
    keeps it, if it fits the target. Code generation only reads it.

    ```mlir
    gpt.kernel @gemm_k576_n960(...) schedule {group = 4 : i64, panel = 32 : i64, row_block = 224 : i64, row_tile = 14 : i64, unit = 2 : i64}
    ```
  }];
  let options = [
    Option<"march", "march", "std::string", "\"native\"", "Target: native, an x86-64 level, or sm_80 and the like">,
    Option<"precision", "precision", "std::string", "\"f32\"", "Of a GPU target: arithmetic of GEMM and attention">
  ];
}

#endif
