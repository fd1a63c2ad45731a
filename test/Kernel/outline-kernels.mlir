// RUN: gptc-opt %s --gpt-outline-kernels --gpt-verify-outlined | FileCheck %s
// RUN: gptc-opt %s --gpt-outline-kernels=weights-f32 | FileCheck %s --check-prefix=F32 --implicit-check-not=_q4_0

ml_program.global private @w0(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32> {gpt.stored = #gpt.stored<"m.gguf", "w0", q4_0>}
ml_program.global private @w1(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32> {gpt.stored = #gpt.stored<"m.gguf", "w1", q4_0>}
ml_program.global private @w2(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @b(#ml_program.extern<tensor<192xf32>>) : tensor<192xf32>

// Two calls of one kernel, a third one of another storage, a section of a bias.
// CHECK-LABEL: func @layers
// CHECK-SAME:  %[[X:.*]]: tensor<?x64xf32>
// CHECK-DAG:   %[[W0:.*]] = ml_program.global_load_const @w0
// CHECK-DAG:   %[[W1:.*]] = ml_program.global_load_const @w1
// CHECK:       %[[Y0:.*]] = gpt.call @gemm_k64_n64_q4_0(%[[X]], %[[W0]])
// CHECK:       %[[Y1:.*]] = gpt.call @gemm_k64_n64_q4_0(%[[Y0]], %[[W1]])
// CHECK:       gpt.call @gemm_k64_n64_bias(%[[Y1]], %{{.*}}, %{{.*}})
// CHECK-NEXT:  return
// F32-LABEL: func @layers
// F32:         gpt.call @gemm_k64_n64(
// F32:         gpt.call @gemm_k64_n64(
func.func @layers(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w0 = ml_program.global_load_const @w0 : tensor<64x64xf32>
  %w1 = ml_program.global_load_const @w1 : tensor<64x64xf32>
  %w2 = ml_program.global_load_const @w2 : tensor<64x64xf32>
  %b = ml_program.global_load_const @b : tensor<192xf32>
  %bs = tensor.extract_slice %b[64] [64] [1] : tensor<192xf32> to tensor<64xf32>
  %y0 = gpt.linear %x, %w0 : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %y1 = gpt.linear %y0, %w1 : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %y2 = gpt.linear %y1, %w2 bias %bs : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %y2 : tensor<?x64xf32>
}

// A splat moves into the kernel; equal operands stay two arguments.
// CHECK-LABEL: func @elementwise
// CHECK-NOT:   arith.constant
// CHECK:       gpt.call @mul_t4_c8(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK:       gpt.call @mul_t4_c8_0(%{{.*}}, %{{.*}})
func.func @elementwise(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = arith.constant dense<2.0> : tensor<4x8xf32>
  %y = arith.mulf %x, %c : tensor<4x8xf32>
  %z = arith.mulf %y, %y : tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// The layer is an attribute of the call: one kernel for both.
// CHECK-LABEL: func @cache
// CHECK:       gpt.call @kv_append_h2_d8({{.*}}) {layer = 0 : i64}
// CHECK:       gpt.call @kv_append_h2_d8({{.*}}) {layer = 1 : i64}
func.func @cache(%t: tensor<?xi32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %k: tensor<2x?x8xf32>,
                 %c0: !gpt.kv_cache<2 x 2 x 8, page 64, f32>) -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %c1 = gpt.kv_append %c0, %k, %k at %pos, %seq layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %c2 = gpt.kv_append %c1, %k, %k at %pos, %seq layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c2 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// Queries and keys differ in number; the kernel knows what is equal.
// CHECK-LABEL: func @attention
// CHECK:       gpt.call @attention_h4_d8_causal(
func.func @attention(%q: tensor<4x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> tensor<4x?x8xf32> {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.5 groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// An argument that is returned, and a value that is returned twice, as two
// equal ops become: results of their own.
// CHECK-LABEL: func @copies
// CHECK-SAME:  %[[X:.*]]: tensor<?x8xf32>
// CHECK:       %[[Y:.*]] = gpt.call @silu
// CHECK-DAG:   %[[C:.*]] = gpt.call @broadcast{{.*}}(%[[X]], %[[X]])
// CHECK-DAG:   %[[D:.*]] = gpt.call @broadcast{{.*}}(%[[Y]], %[[Y]])
// CHECK:       return %[[Y]], %[[C]], %[[D]]
func.func @copies(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %y = gpt.silu %x : tensor<?x8xf32>
  return %y, %x, %y : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// Dimensions of 1 more are a copy, without the sizes that are given; of a
// constant they are a constant.
// CHECK-LABEL: func @dimensions_of_one
// CHECK-SAME:  %[[X:.*]]: tensor<?xi32>, %[[S:.*]]: tensor<2x?xf32>
// CHECK-NEXT:  gpt.call @expand_shape_c1(%[[X]]) : (tensor<?xi32>) -> tensor<?x1xi32>
// CHECK-NEXT:  gpt.call @expand_shape_b1_h2_d1(%[[S]]) : (tensor<2x?xf32>) -> tensor<1x2x?x1xf32>
// CHECK-NEXT:  gpt.call @broadcast_t2_c3() : () -> tensor<2x3xi32>
// CHECK-NEXT:  return
func.func @dimensions_of_one(%x: tensor<?xi32>, %s: tensor<2x?xf32>) -> (tensor<?x1xi32>, tensor<1x2x?x1xf32>, tensor<2x3xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %m = tensor.dim %s, %c1 : tensor<2x?xf32>
  %column = tensor.expand_shape %x [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %more = tensor.expand_shape %s [[0, 1], [2, 3]] output_shape [1, 2, %m, 1] : tensor<2x?xf32> into tensor<1x2x?x1xf32>
  %two = arith.constant dense<[1, 2]> : tensor<2xi32>
  %like = arith.constant dense<0> : tensor<2x3xi32>
  %rows = tensor.expand_shape %two [[0, 1]] output_shape [2, 1] : tensor<2xi32> into tensor<2x1xi32>
  %wide = gpt.broadcast %rows like %like : tensor<2x1xi32>, tensor<2x3xi32> -> tensor<2x3xi32>
  return %column, %more, %wide : tensor<?x1xi32>, tensor<1x2x?x1xf32>, tensor<2x3xi32>
}

// A number added to a vector is added where it is packed: no kernel for it,
// whoever takes the sum. Adding 0, a matrix and two vectors are kernels.
// CHECK-LABEL: func @shifted
// CHECK-DAG:   %[[B:.*]] = ml_program.global_load_const @b
// CHECK-DAG:   %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-DAG:   %[[G:.*]] = arith.addf %[[ONE]], %[[B]]
// CHECK:       gpt.call @rms_norm_c192(%{{.*}}, %[[G]])
// CHECK:       gpt.call @mul_c192(%[[G]], %[[G]])
// CHECK:       gpt.call @add_c192(%[[B]])
// CHECK:       gpt.call @add_t64_c64
// CHECK:       gpt.call @add_c192{{.*}}(%[[B]], %[[B]])
// CHECK:       %[[COPY:.*]] = gpt.call @broadcast{{.*}}(%[[G]], %[[G]])
// CHECK:       return {{.*}}%[[COPY]]
func.func @shifted(%x: tensor<?x192xf32>) -> (tensor<?x192xf32>, tensor<192xf32>, tensor<192xf32>, tensor<64x64xf32>, tensor<192xf32>, tensor<192xf32>) {
  %b = ml_program.global_load_const @b : tensor<192xf32>
  %w2 = ml_program.global_load_const @w2 : tensor<64x64xf32>
  %one = arith.constant dense<1.0> : tensor<192xf32>
  %zero = arith.constant dense<0.0> : tensor<192xf32>
  %ones = arith.constant dense<1.0> : tensor<64x64xf32>
  %g = arith.addf %one, %b : tensor<192xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-6 : tensor<?x192xf32>, tensor<192xf32>
  %square = arith.mulf %g, %g : tensor<192xf32>
  %same = arith.addf %b, %zero : tensor<192xf32>
  %matrix = arith.addf %w2, %ones : tensor<64x64xf32>
  %twice = arith.addf %b, %b : tensor<192xf32>
  return %n, %square, %same, %matrix, %twice, %g : tensor<?x192xf32>, tensor<192xf32>, tensor<192xf32>, tensor<64x64xf32>, tensor<192xf32>, tensor<192xf32>
}

// CHECK:       gpt.kernel @gemm_k64_n64_q4_0(%{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<64x64xf32> {gpt.storage = "q4_0"}) -> tensor<?x64xf32>
// CHECK-SAME:  gpt.dims = [array<i64: -1, 64>, array<i64: 64, 64>, array<i64: -1, 64>]
// CHECK-NEXT:  gpt.linear
// CHECK-NEXT:  gpt.return
// CHECK-NOT:   gpt.kernel @gemm_k64_n64_q4_0
// CHECK:       gpt.kernel @mul_t4_c8(
// CHECK-NEXT:  arith.constant dense<2.0
// CHECK:       gpt.kernel @attention_h4_d8_causal(
// CHECK-SAME:  gpt.dims = [array<i64: 4, -1, 8>, array<i64: 2, -2, 8>, array<i64: 2, -2, 8>, array<i64: 4, -1, 8>]
