// RUN: gptc-opt %s --gpt-fuse-epilogue --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-epilogue | FileCheck %s --check-prefix=SAME

// The value before the activation is a result: it is neither removed nor
// computed twice.
// CHECK: [Missed] fuse-epilogue {{.*}}Function=value_has_user | Remark="expected no other user of the GEMM's value"
// SAME-LABEL: func @value_has_user
// SAME-COUNT-1: gpt.fused_gemm
// SAME-NOT:   gpt.fused_gemm
// SAME:       gpt.silu %{{.*}} : tensor
func.func @value_has_user(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = gpt.silu %y : tensor<?x16xf32>
  return %s, %y : tensor<?x16xf32>, tensor<?x16xf32>
}

// Lanes share one activation; here one GEMM takes the other as a residual.
// SAME-LABEL: func @other_activation
// SAME-NOT:   lanes
// SAME-COUNT-2: gpt.fused_gemm
func.func @other_activation(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %g = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %u = gpt.linear %y, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = gpt.silu %g : tensor<?x16xf32>
  %h = arith.mulf %s, %u : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}

// A residual of one section of several has no place.
// CHECK: [Missed] fuse-epilogue {{.*}}Function=sections | Remark="expected a GEMM of one section"
// SAME-LABEL: func @sections
// SAME:       arith.addf %{{.*}} : tensor
func.func @sections(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %a, %b = gpt.fused_gemm %x : tensor<?x16xf32> sections {
    %w : tensor<16x16xf32> -> tensor<?x16xf32>,
    %w : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %s = arith.addf %a, %x : tensor<?x16xf32>
  return %s, %b : tensor<?x16xf32>, tensor<?x16xf32>
}

// Another rank than [T, K] stays a linear.
// SAME-LABEL: func @batch
// SAME:       gpt.linear
func.func @batch(%x: tensor<2x?x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x?x16xf32> {
  %y = gpt.linear %x, %w : tensor<2x?x16xf32>, tensor<16x16xf32> -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}
