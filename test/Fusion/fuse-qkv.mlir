// RUN: gptc-opt %s --gpt-fuse-qkv | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-qkv --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --implicit-check-not=Missed

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

// Packed head by head (GPT-NeoX, BLOOM): q, k and v of a head lie together.
// Scores that are a result too do not keep the projections apart.
// CHECK-LABEL: func @per_head
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<96x32xf32>, %[[B:.*]]: tensor<96xf32>
// CHECK-DAG:   %[[WQ:.*]] = gpt.head_part %[[W]] axis 0 from 0 take 8 of 24 : tensor<96x32xf32> -> tensor<32x32xf32>
// CHECK-DAG:   %[[BQ:.*]] = gpt.head_part %[[B]] axis 0 from 0 take 8 of 24 : tensor<96xf32> -> tensor<32xf32>
// CHECK-DAG:   %[[WK:.*]] = gpt.head_part %[[W]] axis 0 from 8 take 8 of 24
// CHECK-DAG:   %[[BK:.*]] = gpt.head_part %[[B]] axis 0 from 8 take 8 of 24
// CHECK-DAG:   %[[WV:.*]] = gpt.head_part %[[W]] axis 0 from 16 take 8 of 24
// CHECK-DAG:   %[[BV:.*]] = gpt.head_part %[[B]] axis 0 from 16 take 8 of 24
// CHECK:       %[[QKV:.*]]:3 = gpt.fused_gemm %[[N]] : tensor<?x32xf32> sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> bias %[[BQ]] -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<32x32xf32> bias %[[BK]] -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<32x32xf32> bias %[[BV]] -> tensor<?x32xf32>
// CHECK-NEXT:  }
// CHECK-DAG:   %[[Q:.*]] = gpt.split_heads %[[QKV]]#0 : tensor<?x32xf32> -> tensor<4x?x8xf32>
// CHECK-DAG:   %[[K:.*]] = gpt.split_heads %[[QKV]]#1 : tensor<?x32xf32> -> tensor<4x?x8xf32>
// CHECK-DAG:   %[[V:.*]] = gpt.split_heads %[[QKV]]#2 : tensor<?x32xf32> -> tensor<4x?x8xf32>
// CHECK:       gpt.matmul %[[Q]], %[[K]] transpose_b
func.func @per_head(%n: tensor<?x32xf32>, %w: tensor<96x32xf32>, %b: tensor<96xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %y = gpt.linear %n, %w bias %b : tensor<?x32xf32>, tensor<96x32xf32>, tensor<96xf32> -> tensor<?x96xf32>
  %h = gpt.split_heads %y : tensor<?x96xf32> -> tensor<4x?x24xf32>
  %q, %k, %v = gpt.split %h : tensor<4x?x24xf32> -> tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %s : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// Packed KV head by KV head with its query heads (Falcon): two KV heads of 8,
// each with two query heads before it.
// CHECK-LABEL: func @grouped
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<64x32xf32>
// CHECK-DAG:   %[[WQ:.*]] = gpt.head_part %[[W]] axis 0 from 0 take 16 of 32 : tensor<64x32xf32> -> tensor<32x32xf32>
// CHECK-DAG:   %[[WK:.*]] = gpt.head_part %[[W]] axis 0 from 16 take 8 of 32 : tensor<64x32xf32> -> tensor<16x32xf32>
// CHECK-DAG:   %[[WV:.*]] = gpt.head_part %[[W]] axis 0 from 24 take 8 of 32 : tensor<64x32xf32> -> tensor<16x32xf32>
// CHECK:       %[[QKV:.*]]:3 = gpt.fused_gemm %[[N]] : tensor<?x32xf32> sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<16x32xf32> -> tensor<?x16xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<16x32xf32> -> tensor<?x16xf32>
// CHECK:       %[[Q:.*]] = gpt.split_heads %[[QKV]]#0 : tensor<?x32xf32> -> tensor<4x?x8xf32>
// CHECK:       gpt.matmul %[[Q]],
func.func @grouped(%n: tensor<?x32xf32>, %w: tensor<64x32xf32>) -> tensor<4x?x8xf32> {
  %y = gpt.linear %n, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %h = gpt.split_heads %y : tensor<?x64xf32> -> tensor<2x?x32xf32>
  %qs, %k, %v = gpt.split %h : tensor<2x?x32xf32> -> tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>
  %qm = gpt.merge_heads %qs : tensor<2x?x16xf32> -> tensor<?x32xf32>
  %q = gpt.split_heads %qm : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// Queries apart, keys and values packed in [in, out], and a projection of the
// same activation for something else: it stays what it is.
// CHECK-LABEL: func @mixed
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[WQ:.*]]: tensor<32x32xf32>, %[[WKV:.*]]: tensor<32x64xf32>, %[[WO:.*]]: tensor<32x32xf32>
// CHECK:       %[[OTHER:.*]] = gpt.linear %[[N]], %[[WO]]
// CHECK-DAG:   %[[WK:.*]] = tensor.extract_slice %[[WKV]][0, 0] [32, 32] [1, 1]
// CHECK-DAG:   %[[WV:.*]] = tensor.extract_slice %[[WKV]][0, 32] [32, 32] [1, 1]
// CHECK:       gpt.fused_gemm %[[N]] : tensor<?x32xf32> sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<32x32xf32> in_out -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<32x32xf32> in_out -> tensor<?x32xf32>
// CHECK-NEXT:  }
// CHECK-NOT:   gpt.fused_gemm
func.func @mixed(%n: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %wkv: tensor<32x64xf32>, %wo: tensor<32x32xf32>) -> (tensor<4x?x8xf32>, tensor<?x32xf32>) {
  %other = gpt.linear %n, %wo : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %kv = gpt.linear %n, %wkv in_out : tensor<?x32xf32>, tensor<32x64xf32> -> tensor<?x64xf32>
  %k, %v = gpt.split %kv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %q = gpt.linear %n, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %other : tensor<4x?x8xf32>, tensor<?x32xf32>
}

// A packed projection with a fourth part, for the MLP: a section of its own.
// CHECK-LABEL: func @fourth_part
// CHECK:       %[[QKV:.*]]:4 = gpt.fused_gemm %{{.*}} sections {
// CHECK-COUNT-3: tensor<16x16xf32> -> tensor<?x16xf32>
// CHECK-NEXT:    tensor<64x16xf32> -> tensor<?x64xf32>
// CHECK:       return %{{.*}}, %[[QKV]]#3
func.func @fourth_part(%n: tensor<?x16xf32>, %w: tensor<112x16xf32>) -> (tensor<2x?x8xf32>, tensor<?x64xf32>) {
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<112x16xf32> -> tensor<?x112xf32>
  %q, %k, %v, %m = gpt.split %y : tensor<?x112xf32> -> tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x64xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %m : tensor<2x?x8xf32>, tensor<?x64xf32>
}

// Cross attention: queries of one activation, keys and values of another, once
// with weights of their own and once packed.
// REMARK:      Function=cross | Remark="keys and values in one GEMM, queries being of another activation"
// CHECK-LABEL: func @cross
// CHECK-SAME:  %[[N:.*]]: tensor<?x16xf32>, %[[M:.*]]: tensor<?x16xf32>, %[[WQ:.*]]: tensor<16x16xf32>, %[[WK:.*]]: tensor<16x16xf32>, %[[WV:.*]]: tensor<16x16xf32>
// CHECK:       gpt.linear %[[N]], %[[WQ]]
// CHECK:       %[[KV:.*]]:2 = gpt.fused_gemm %[[M]] : tensor<?x16xf32> sections {
// CHECK-NEXT:    %[[WK]] : tensor<16x16xf32> -> tensor<?x16xf32>,
// CHECK-NEXT:    %[[WV]] : tensor<16x16xf32> -> tensor<?x16xf32>
// CHECK-NEXT:  }
// CHECK-NOT:   gpt.linear
// CHECK:       gpt.split_heads %[[KV]]#0
// CHECK:       gpt.split_heads %[[KV]]#1
func.func @cross(%n: tensor<?x16xf32>, %memory: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %n, %wq : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %memory, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.linear %memory, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-LABEL: func @cross_packed
// CHECK-SAME:  %[[N:.*]]: tensor<?x16xf32>, %[[M:.*]]: tensor<?x16xf32>
// CHECK:       gpt.linear %[[N]]
// CHECK:       %[[KV:.*]]:2 = gpt.fused_gemm %[[M]] : tensor<?x16xf32> sections {
// CHECK-NOT:   gpt.split %
func.func @cross_packed(%n: tensor<?x16xf32>, %memory: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wkv: tensor<32x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %n, %wq : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %kv = gpt.linear %memory, %wkv : tensor<?x16xf32>, tensor<32x16xf32> -> tensor<?x32xf32>
  %k, %v = gpt.split %kv : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}
