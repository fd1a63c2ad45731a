// RUN: gptc-opt %s --gpt-fuse-epilogue | FileCheck %s

// CHECK-LABEL: func @plain
// CHECK:       gpt.fused_gemm %{{.*}} section %{{.*}} : tensor<16x24xf32> bias %{{.*}} in_out -> tensor<?x24xf32>
func.func @plain(%x: tensor<?x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>) -> tensor<?x24xf32> {
  %y = gpt.linear %x, %w bias %b in_out : tensor<?x16xf32>, tensor<16x24xf32>, tensor<24xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// CHECK-LABEL: func @activation
// CHECK:       %[[Y:.*]] = gpt.fused_gemm {{.*}} epilogue (%[[ACC:.*]]) {
// CHECK-DAG:     %[[C:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[G:.*]] = gpt.gelu quick %[[ACC]] : f32
// CHECK:         %[[S:.*]] = arith.mulf %[[G]], %[[C]] : f32
// CHECK-NEXT:    %[[T:.*]] = math.tanh %[[S]] : f32
// CHECK-NEXT:    gpt.yield %[[T]]
// CHECK:       return %[[Y]]
func.func @activation(%x: tensor<?x16xf32>, %w: tensor<24x16xf32>) -> tensor<?x24xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %g = gpt.gelu quick %y : tensor<?x24xf32>
  %s = gpt.scale %g by 0.5 : tensor<?x24xf32>
  %t = math.tanh %s : tensor<?x24xf32>
  return %t : tensor<?x24xf32>
}

// The residual is computed after the GEMM, and the sum is used twice.
// CHECK-LABEL: func @residual
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>
// CHECK-NEXT:  %[[R:.*]] = gpt.silu %[[X]]
// CHECK-NEXT:  %[[Y:.*]] = gpt.fused_gemm %[[X]] : tensor<?x16xf32> residual %[[R]] section {{.*}} epilogue (%[[ACC:.*]], %[[E:.*]]) {
// CHECK-NEXT:    %[[S:.*]] = arith.subf %[[ACC]], %[[E]] : f32
// CHECK-NEXT:    gpt.yield %[[S]]
// CHECK:       return %[[Y]], %[[Y]]
func.func @residual(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %r = gpt.silu %x : tensor<?x16xf32>
  %s = arith.subf %y, %r : tensor<?x16xf32>
  return %s, %s : tensor<?x16xf32>, tensor<?x16xf32>
}

// The gate on the right, with biases.
// CHECK-LABEL: func @gate
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %[[WG:.*]]: tensor<24x16xf32>, %[[WU:.*]]: tensor<24x16xf32>, %[[B:.*]]: tensor<24xf32>
// CHECK-NEXT:  gpt.fused_gemm %[[X]] : tensor<?x16xf32> lanes (%[[WU]] : tensor<24x16xf32>, %[[WG]] : tensor<24x16xf32> bias %[[B]]) epilogue (%[[U:.*]], %[[G:.*]]) {
// CHECK-NEXT:    %[[S:.*]] = gpt.silu %[[G]]
// CHECK-NEXT:    %[[M:.*]] = arith.mulf %[[U]], %[[S]]
// CHECK-NEXT:    gpt.yield %[[M]]
func.func @gate(%x: tensor<?x16xf32>, %wg: tensor<24x16xf32>, %wu: tensor<24x16xf32>, %b: tensor<24xf32>) -> tensor<?x24xf32> {
  %u = gpt.linear %x, %wu : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %g = gpt.linear %x, %wg bias %b : tensor<?x16xf32>, tensor<24x16xf32>, tensor<24xf32> -> tensor<?x24xf32>
  %s = gpt.silu %g : tensor<?x24xf32>
  %h = arith.mulf %u, %s : tensor<?x24xf32>
  return %h : tensor<?x24xf32>
}

// Attention and MLP in parallel (GPT-J): x + a + m. Two GEMMs, two residuals.
// CHECK-LABEL: func @parallel
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %[[Y:.*]]: tensor<?x16xf32>
// CHECK:       %[[A:.*]] = gpt.fused_gemm %[[Y]] {{.*}} residual %[[X]]
// CHECK:       %[[M:.*]] = gpt.fused_gemm %[[X]] {{.*}} residual %[[A]]
// CHECK-NOT:   gpt.fused_gemm
// CHECK:       return %[[M]]
func.func @parallel(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %a = gpt.linear %y, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %m = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = arith.addf %x, %a : tensor<?x16xf32>
  %t = arith.addf %s, %m : tensor<?x16xf32>
  return %t : tensor<?x16xf32>
}
