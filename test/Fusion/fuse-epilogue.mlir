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

// The value before the activation is a result too: one GEMM of two results.
// CHECK-LABEL: func @value_has_user
// CHECK:       %[[Y:.*]]:2 = gpt.fused_gemm {{.*}} epilogue (%[[ACC:.*]]) {
// CHECK-NEXT:    %[[S:.*]] = gpt.gelu tanh %[[ACC]] : f32
// CHECK-NEXT:    gpt.yield %[[ACC]], %[[S]] : f32, f32
// CHECK-NEXT:  } -> (tensor<?x16xf32>, tensor<?x16xf32>)
// CHECK-NOT:   gpt.fused_gemm
// CHECK:       return %[[Y]]#1, %[[Y]]#0
func.func @value_has_user(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = gpt.gelu tanh %y : tensor<?x16xf32>
  return %s, %y : tensor<?x16xf32>, tensor<?x16xf32>
}

// Squared relu, and a GELU that is written out: values with several users
// within the epilogue.
// CHECK-LABEL: func @chains
// CHECK:       gpt.fused_gemm {{.*}} epilogue (%[[ACC:.*]]) {
// CHECK:         %[[R:.*]] = arith.maximumf %[[ACC]], %{{.*}} : f32
// CHECK-NEXT:    %[[SQ:.*]] = arith.mulf %[[R]], %[[R]] : f32
// CHECK-NEXT:    gpt.yield %[[SQ]] : f32
// CHECK-NEXT:  } -> tensor<4x16xf32>
// CHECK:       gpt.fused_gemm {{.*}} epilogue (%[[B:.*]]) {
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0.707106769 : f32
// CHECK-DAG:     %[[C1:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[HALF:.*]] = arith.mulf %[[B]], %[[C1]] : f32
// CHECK-DAG:     %[[U:.*]] = arith.mulf %[[B]], %[[C0]] : f32
// CHECK-DAG:     %[[ERF:.*]] = math.erf %[[U]] : f32
// CHECK-DAG:     %[[ONE:.*]] = arith.addf %[[ERF]]
// CHECK:         %[[G:.*]] = arith.mulf %[[HALF]], %[[ONE]] : f32
// CHECK:         gpt.yield %[[G]] : f32
// CHECK-NEXT:  } -> tensor<4x16xf32>
// CHECK-NEXT:  return
func.func @chains(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x16xf32>
  %a = gpt.linear %x, %w : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %r = arith.maximumf %a, %zero : tensor<4x16xf32>
  %sq = arith.mulf %r, %r : tensor<4x16xf32>
  %root = arith.constant dense<0.70710678> : tensor<4x16xf32>
  %one = arith.constant dense<1.0> : tensor<4x16xf32>
  %half = arith.constant dense<0.5> : tensor<4x16xf32>
  %b = gpt.linear %x, %w : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %u = arith.mulf %b, %root : tensor<4x16xf32>
  %e = math.erf %u : tensor<4x16xf32>
  %e1 = arith.addf %e, %one : tensor<4x16xf32>
  %h = arith.mulf %b, %half : tensor<4x16xf32>
  %g = arith.mulf %h, %e1 : tensor<4x16xf32>
  return %sq, %g : tensor<4x16xf32>, tensor<4x16xf32>
}

// Rows: a bias that is no weight, a layer scale (arXiv:2103.17239), then the
// residual. Nothing of [T, N] is made of the rows.
// CHECK-LABEL: func @rows
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %{{.*}}: tensor<16x16xf32>, %[[B:.*]]: tensor<16xf32>, %[[S:.*]]: tensor<16xf32>
// CHECK-NEXT:  gpt.fused_gemm %[[X]] : tensor<?x16xf32> residual row %[[B]], row %[[S]], %[[X]] section {{.*}} epilogue (%[[ACC:.*]], %[[R0:.*]], %[[R1:.*]], %[[R2:.*]]) {
// CHECK-NEXT:    %[[Y:.*]] = arith.addf %[[R0]], %[[ACC]]
// CHECK-NEXT:    %[[Z:.*]] = arith.mulf %[[Y]], %[[R1]]
// CHECK-NEXT:    %[[O:.*]] = arith.addf %[[R2]], %[[Z]]
// CHECK-NEXT:    gpt.yield %[[O]] : f32
// CHECK-NOT:   gpt.broadcast
func.func @rows(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>, %s: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %bs = gpt.broadcast %b like %y : tensor<16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %z = arith.addf %bs, %y : tensor<?x16xf32>
  %ss = gpt.broadcast %s like %z : tensor<16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %t = arith.mulf %z, %ss : tensor<?x16xf32>
  %o = arith.addf %x, %t : tensor<?x16xf32>
  return %o : tensor<?x16xf32>
}

// A packed gate and up projection (Phi-3), GeGLU; the gate is a result too.
// CHECK-LABEL: func @packed_gate
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %[[W:.*]]: tensor<48x16xf32>
// CHECK-DAG:   %[[WG:.*]] = tensor.extract_slice %[[W]][0, 0] [24, 16] [1, 1]
// CHECK-DAG:   %[[WU:.*]] = tensor.extract_slice %[[W]][24, 0] [24, 16] [1, 1]
// CHECK:       %[[Y:.*]]:2 = gpt.fused_gemm %[[X]] : tensor<?x16xf32> lanes (%[[WG]] : tensor<24x16xf32>, %[[WU]] : tensor<24x16xf32>) epilogue (%[[G:.*]], %[[U:.*]]) {
// CHECK-NEXT:    %[[A:.*]] = gpt.gelu erf %[[G]] : f32
// CHECK-NEXT:    %[[H:.*]] = arith.mulf %[[A]], %[[U]] : f32
// CHECK-NEXT:    gpt.yield %[[A]], %[[H]] : f32, f32
// CHECK-NEXT:  } -> (tensor<?x24xf32>, tensor<?x24xf32>)
// CHECK-NEXT:  return %[[Y]]#1, %[[Y]]#0
func.func @packed_gate(%x: tensor<?x16xf32>, %w: tensor<48x16xf32>) -> (tensor<?x24xf32>, tensor<?x24xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<48x16xf32> -> tensor<?x48xf32>
  %g, %u = gpt.split %y : tensor<?x48xf32> -> tensor<?x24xf32>, tensor<?x24xf32>
  %a = gpt.gelu erf %g : tensor<?x24xf32>
  %h = arith.mulf %a, %u : tensor<?x24xf32>
  return %h, %a : tensor<?x24xf32>, tensor<?x24xf32>
}

// Parts of unequal width, packed head by head.
// CHECK-LABEL: func @packed_heads
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %[[W:.*]]: tensor<16x24xf32>, %[[B:.*]]: tensor<24xf32>
// CHECK-DAG:   %[[W0:.*]] = gpt.head_part %[[W]] axis 1 from 0 take 8 of 12 : tensor<16x24xf32> -> tensor<16x16xf32>
// CHECK-DAG:   %[[B0:.*]] = gpt.head_part %[[B]] axis 0 from 0 take 8 of 12 : tensor<24xf32> -> tensor<16xf32>
// CHECK-DAG:   %[[W1:.*]] = gpt.head_part %[[W]] axis 1 from 8 take 4 of 12 : tensor<16x24xf32> -> tensor<16x8xf32>
// CHECK-DAG:   %[[B1:.*]] = gpt.head_part %[[B]] axis 0 from 8 take 4 of 12 : tensor<24xf32> -> tensor<8xf32>
// CHECK:       %[[Y:.*]]:2 = gpt.fused_gemm %[[X]] : tensor<?x16xf32> sections {
// CHECK-NEXT:    %[[W0]] : tensor<16x16xf32> bias %[[B0]] in_out -> tensor<?x16xf32>,
// CHECK-NEXT:    %[[W1]] : tensor<16x8xf32> bias %[[B1]] in_out -> tensor<?x8xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[H0:.*]] = gpt.split_heads %[[Y]]#0 : tensor<?x16xf32> -> tensor<2x?x8xf32>
// CHECK-NEXT:  %[[H1:.*]] = gpt.split_heads %[[Y]]#1 : tensor<?x8xf32> -> tensor<2x?x4xf32>
// CHECK-NEXT:  return %[[H0]], %[[H1]]
func.func @packed_heads(%x: tensor<?x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x4xf32>) {
  %y = gpt.linear %x, %w bias %b in_out : tensor<?x16xf32>, tensor<16x24xf32>, tensor<24xf32> -> tensor<?x24xf32>
  %h = gpt.split_heads %y : tensor<?x24xf32> -> tensor<2x?x12xf32>
  %a, %c = gpt.split %h : tensor<2x?x12xf32> -> tensor<2x?x8xf32>, tensor<2x?x4xf32>
  return %a, %c : tensor<2x?x8xf32>, tensor<2x?x4xf32>
}

// A value that the op in between needs, and a sum that the residual stream
// needs: the GEMM moves behind neither.
// CHECK-LABEL: func @users_between
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>
// CHECK:       %[[Y:.*]]:2 = gpt.fused_gemm %[[X]] : tensor<?x16xf32> residual %[[X]]
// CHECK:         gpt.yield %[[ACC:.*]], %{{.*}} : f32, f32
// CHECK:       %[[P:.*]] = gpt.softmax %[[Y]]#0
// CHECK-NEXT:  return %[[P]], %[[Y]]#1
func.func @users_between(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %p = gpt.softmax %y : tensor<?x16xf32>
  %s = arith.addf %y, %x : tensor<?x16xf32>
  return %p, %s : tensor<?x16xf32>, tensor<?x16xf32>
}

// GEMMs with a norm of their own, as a pass that ran before or a person writes
// them: equal norms may be lanes of one, others are not.
// CHECK-LABEL: func @norms
// CHECK:       gpt.fused_gemm norm(rms %[[G:.*]] eps 1.0e-5) {{.*}} lanes
// CHECK:       gpt.fused_gemm norm(rms %[[G]] eps 1.0e-5) {{.*}} section
// CHECK:       gpt.fused_gemm norm(rms %[[G]] eps 1.0e-6) {{.*}} residual
func.func @norms(%x: tensor<?x16xf32>, %g: tensor<16xf32>, %w: tensor<24x16xf32>, %v: tensor<24x16xf32>) -> (tensor<?x24xf32>, tensor<?x24xf32>) {
  %a = gpt.fused_gemm norm(rms %g eps 1.0e-5) %x : tensor<?x16xf32> section %w : tensor<24x16xf32> -> tensor<?x24xf32>
  %b = gpt.fused_gemm norm(rms %g eps 1.0e-5) %x : tensor<?x16xf32> section %v : tensor<24x16xf32> -> tensor<?x24xf32>
  %ab = arith.mulf %a, %b : tensor<?x24xf32>
  %c = gpt.fused_gemm norm(rms %g eps 1.0e-5) %x : tensor<?x16xf32> section %w : tensor<24x16xf32> -> tensor<?x24xf32>
  %d = gpt.fused_gemm norm(rms %g eps 1.0e-6) %x : tensor<?x16xf32> section %v : tensor<24x16xf32> -> tensor<?x24xf32>
  %cd = arith.mulf %c, %d : tensor<?x24xf32>
  return %ab, %cd : tensor<?x24xf32>, tensor<?x24xf32>
}
