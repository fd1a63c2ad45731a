//===- Passes.td - passes of the Kernel room ---------------*- tablegen -*-===//
#ifndef GPTC_KERNEL_PASSES
#define GPTC_KERNEL_PASSES

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"gpt-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "move every compute op into a kernel and call it; equal kernels become one";
  let description = [{
    A kernel holds one op and the splat constants it uses. Its arguments are the op's other operands in order; weights
    stay operands of the call and their storage goes into the kernel's type (`gpt.storage`). `gpt.dims` says which
    dynamic sizes of arguments and results are equal. First every `?` that must be a static size is written as it, and
    results that are arguments or given twice are copied by kernels of their own.

    ```mlir
    %y = gpt.linear %x, %w : (tensor<?x64xf32>, tensor<192x64xf32>) -> tensor<?x192xf32>
    // becomes
    %y = gpt.call @gemm_k64_n192(%x, %w) : (tensor<?x64xf32>, tensor<192x64xf32>) -> tensor<?x192xf32>
    ```
  }];
  let options = [
    Option<"dequantize", "weights-f32", "bool", "false", "Pack every weight as f32, whatever its storage">,
    Option<"precision", "precision", "std::string", "\"f32\"",
           "What GEMMs round their inputs to: with bf16 or int8, f32, f16 and bf16 matrices that they read are packed so">
  ];
  let statistics = [
    Statistic<"numCalls", "calls", "Number of kernel calls">,
    Statistic<"numKernels", "kernels", "Number of distinct kernels">
  ];
  let dependentDialects = ["::gptc::gpt::GptDialect"];
}

def VerifyOutlined : Pass<"gpt-verify-outlined", "::mlir::ModuleOp"> {
  let summary = "check that every entry is loads, slices, calls and a return";
}

#endif
