// RUN: gptc-opt %s --gpt-fusion-pipeline | FileCheck %s
// RUN: gptc-opt %s --gpt-fusion-pipeline=disable=fuse-epilogue,fuse-qkv | FileCheck %s --check-prefix=DISABLED

// A constant stays in the epilogue that needs it.
// CHECK-LABEL: func @constant
// CHECK:       gpt.fused_gemm {{.*}} epilogue (%[[ACC:.*]]) {
// CHECK-NEXT:    %[[C:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:    arith.mulf %[[ACC]], %[[C]]
// CHECK-NOT:   gpt.scale
// DISABLED-LABEL: func @constant
// DISABLED-NOT: gpt.fused_gemm
// DISABLED:    gpt.scale
func.func @constant(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = gpt.scale %y by 0.5 : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}
