// REQUIRES: gptc
// Kernels written by hand that disagree on how a value is kept in memory.
// RUN: split-file %s %t
// RUN: not gptc %t/result.mlir --target=cuda -o %t.package 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not gptc %t/argument.mlir --target=cuda -o %t.package 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not gptc %t/two.mlir --target=cuda -O0 -o %t.package 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not gptc %t/argument.mlir --target=cuda --precision=f32 --emit=cu 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not gptc %t/scale.mlir --target=cuda --emit=cu 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not gptc %t/scale.mlir -o %t.package 2>&1 | FileCheck %s --check-prefix=CPU

//--- result.mlir
!x = tensor<?x64xf32>
gpt.kernel @norm(%x: !x, %g: tensor<64xf32> {gpt.storage = "f32"}) -> (!x {gpt.element = bf16}) attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64>, array<i64: -1, 64>]} {
  %0 = gpt.rms_norm %x, %g eps 1.0e-5 : !x, tensor<64xf32>
  gpt.return %0 : !x
}
ml_program.global private @g(#ml_program.extern) : tensor<64xf32>
func.func @f(%x: !x) -> !x {
  %g = ml_program.global_load_const @g : tensor<64xf32>
  %n = gpt.call @norm(%x, %g) : (!x, tensor<64xf32>) -> !x
  return %n : !x
}
// RESULT: result.mlir:9:8: error: 'gpt.call' op expected a result of the entry to be kept as its type says, got 'bf16'

//--- argument.mlir
!x = tensor<?x64xf32>
gpt.kernel @gemm(%x: !x {gpt.element = bf16}, %w: tensor<64x64xf32> {gpt.storage = "f32"}) -> !x attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64, 64>, array<i64: -1, 64>]} {
  %0 = gpt.linear %x, %w : !x, tensor<64x64xf32> -> !x
  gpt.return %0 : !x
}
ml_program.global private @w(#ml_program.extern) : tensor<64x64xf32>
func.func @f(%x: !x) -> !x {
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %n = gpt.call @gemm(%x, %w) : (!x, tensor<64x64xf32>) -> !x
  return %n : !x
}
// ARGUMENT: argument.mlir:9:8: error: 'gpt.call' op expected operand 0 to be kept as 'f32', as it was written, got 'bf16'

// PRECISION: argument.mlir:3:8: error: 'gpt.fused_gemm' op has no CUDA kernel: expected 'gpt.element' in a precision of 16 bits and

//--- two.mlir
!x = tensor<?x64xf32>
gpt.kernel @first(%x: !x, %w: tensor<64x64xf32> {gpt.storage = "f32"}) -> (!x {gpt.element = bf16}) attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64, 64>, array<i64: -1, 64>]} {
  %0 = gpt.linear %x, %w : !x, tensor<64x64xf32> -> !x
  gpt.return %0 : !x
}
gpt.kernel @second(%x: !x {gpt.element = f16}, %w: tensor<64x64xf32> {gpt.storage = "f32"}) -> !x attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64, 64>, array<i64: -1, 64>]} {
  %0 = gpt.linear %x, %w : !x, tensor<64x64xf32> -> !x
  gpt.return %0 : !x
}
ml_program.global private @w(#ml_program.extern) : tensor<64x64xf32>
func.func @f(%x: !x) -> !x {
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %n = gpt.call @first(%x, %w) : (!x, tensor<64x64xf32>) -> !x
  %y = gpt.call @second(%n, %w) : (!x, tensor<64x64xf32>) -> !x
  return %y : !x
}
// TWO: two.mlir:14:8: error: 'gpt.call' op expected operand 0 to be kept as 'bf16', as it was written, got 'f16'

//--- scale.mlir
!x = tensor<?x64xf32>
gpt.kernel @scale(%x: !x {gpt.element = f16}) -> !x attributes {gpt.dims = [array<i64: -1, 64>, array<i64: -1, 64>]} {
  %0 = gpt.scale %x by 2.0 : !x
  gpt.return %0 : !x
}
func.func @f(%x: !x) -> !x {
  %y = gpt.call @scale(%x) : (!x) -> !x
  return %y : !x
}
// OP: scale.mlir:3:8: error: 'gpt.scale' op has no CUDA kernel: expected 'gpt.element' in a precision of 16 bits and where a GEMM, attention or a norm can have it, got it on value 0
// CPU: scale.mlir:2:1: error: 'gpt.kernel' op expected no 'gpt.element' for the CPU target
