// RUN: gptc-opt %s --gpt-fuse-qkv | FileCheck %s

// GQA widths, one bias, one weight stored [in, out], K before Q, and weights
// that are loaded late.
// CHECK-LABEL: func @separate
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[B:.*]]: tensor<32xf32>
// CHECK-DAG:   %[[WQ:.*]] = ml_program.global_load_const @wq
// CHECK-DAG:   %[[WK:.*]] = ml_program.global_load_const @wk
// CHECK-DAG:   %[[WV:.*]] = ml_program.global_load_const @wv
// CHECK:       %[[QKV:.*]]:3 = gpt.fused_gemm %[[N]] : tensor<?x32xf32> sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> bias %[[B]] -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<16x32xf32> -> tensor<?x16xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<32x16xf32> in_out -> tensor<?x16xf32>
// CHECK-NEXT:  }
// CHECK-NOT:   gpt.linear
// CHECK:       gpt.split_heads %[[QKV]]#1
// CHECK:       gpt.split_heads %[[QKV]]#0
// CHECK:       gpt.split_heads %[[QKV]]#2
func.func @separate(%n: tensor<?x32xf32>, %bq: tensor<32xf32>) -> tensor<4x?x8xf32> {
  %wk = ml_program.global_load_const @wk : tensor<16x32xf32>
  %k = gpt.linear %n, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %wq = ml_program.global_load_const @wq : tensor<32x32xf32>
  %q = gpt.linear %n, %wq bias %bq : tensor<?x32xf32>, tensor<32x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %wv = ml_program.global_load_const @wv : tensor<32x16xf32>
  %v = gpt.linear %n, %wv in_out : tensor<?x32xf32>, tensor<32x16xf32> -> tensor<?x16xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %vh groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}
ml_program.global private @wq(#ml_program.extern) : tensor<32x32xf32>
ml_program.global private @wk(#ml_program.extern) : tensor<16x32xf32>
ml_program.global private @wv(#ml_program.extern) : tensor<32x16xf32>

// A packed weight [out, in] in the order K, V, Q; not causal.
// CHECK-LABEL: func @packed
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<64x32xf32>, %[[B:.*]]: tensor<64xf32>
// CHECK-DAG:   %[[WQ:.*]] = tensor.extract_slice %[[W]][32, 0] [32, 32] [1, 1]
// CHECK-DAG:   %[[BQ:.*]] = tensor.extract_slice %[[B]][32] [32] [1]
// CHECK-DAG:   %[[WK:.*]] = tensor.extract_slice %[[W]][0, 0] [16, 32] [1, 1]
// CHECK-DAG:   %[[BK:.*]] = tensor.extract_slice %[[B]][0] [16] [1]
// CHECK-DAG:   %[[WV:.*]] = tensor.extract_slice %[[W]][16, 0] [16, 32] [1, 1]
// CHECK-DAG:   %[[BV:.*]] = tensor.extract_slice %[[B]][16] [16] [1]
// CHECK:       %[[QKV:.*]]:3 = gpt.fused_gemm %[[N]] : tensor<?x32xf32> sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> bias %[[BQ]] -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<16x32xf32> bias %[[BK]] -> tensor<?x16xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<16x32xf32> bias %[[BV]] -> tensor<?x16xf32>
// CHECK:       gpt.split_heads %[[QKV]]#0
// CHECK:       gpt.split_heads %[[QKV]]#1
// CHECK:       gpt.split_heads %[[QKV]]#2
func.func @packed(%n: tensor<?x32xf32>, %w: tensor<64x32xf32>, %b: tensor<64xf32>) -> tensor<4x?x8xf32> {
  %kvq = gpt.linear %n, %w bias %b : tensor<?x32xf32>, tensor<64x32xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %k, %v, %q = gpt.split %kvq : tensor<?x64xf32> -> tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x32xf32>
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %vh groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}
