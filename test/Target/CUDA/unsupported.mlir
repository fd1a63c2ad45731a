// REQUIRES: gptc
// What has no CUDA kernel is told at the op.
// RUN: split-file %s %t
// RUN: not gptc %t/sizes.mlir --target=cuda --emit=cu 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not gptc %t/weight.mlir --target=cuda --emit=cu 2>&1 | FileCheck %s --check-prefix=WEIGHT

//--- sizes.mlir
func.func @f(%x: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %y = math.exp %x : tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}
// SIZES: sizes.mlir:2:8: error: 'math.exp' op has no CUDA kernel: expected at most 3 dynamic dimensions of a value, got 4

//--- weight.mlir
ml_program.global private @w(#ml_program.extern) : tensor<4x8xf32> {gpt.stored = #gpt.stored<"", "w", f32>}
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = ml_program.global_load_const @w : tensor<4x8xf32>
  %y = arith.addf %x, %w : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// WEIGHT: weight.mlir:4:8: error: 'arith.addf' op has no CUDA kernel: expected activations, got a stored weight: matrices are packed for linear and embedding only
