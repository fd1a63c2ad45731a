// RUN: gptc-opt %s --gpt-fuse-rope-kv --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-rope-kv | FileCheck %s --check-prefix=SAME

// CHECK: [Missed] fuse-rope-kv {{.*}}Function=values_have_user | Remark="expected no other user of the heads"
// SAME-LABEL: func @values_have_user
// SAME:       gpt.kv_append
func.func @values_have_user(%n: tensor<?x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>,
                            %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> (!gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<?x16xf32>) {
  %k, %v = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wv : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1, %v : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<?x16xf32>
}

// CHECK: [Missed] fuse-rope-kv {{.*}}Function=two_gemms | Remark="expected keys and values from two sections of one gpt.fused_gemm"
// SAME-LABEL: func @two_gemms
// SAME:       gpt.kv_append
func.func @two_gemms(%n: tensor<?x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>,
                     %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<1 x 2 x 8, page 64, f32> {
  %k = gpt.fused_gemm %n : tensor<?x16xf32> section %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.fused_gemm %n : tensor<?x16xf32> section %wv : tensor<16x16xf32> -> tensor<?x16xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

// The unrotated queries are needed too.
// CHECK: [Missed] fuse-rope-kv {{.*}}Function=queries_have_user | Remark="expected no other user of the heads"
// SAME-LABEL: func @queries_have_user
// SAME:       gpt.rope %
func.func @queries_have_user(%n: tensor<?x16xf32>, %w: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q = gpt.fused_gemm %n : tensor<?x16xf32> section %w : tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %qh : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// A GEMM has one rope table.
// CHECK: [Missed] fuse-rope-kv {{.*}}Function=two_ropes | Remark="expected the rotary embedding of the GEMM's other section"
// SAME-LABEL: func @two_ropes
// SAME-COUNT-1: gpt.rope %
func.func @two_ropes(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %kr = gpt.rope %kh, %pos <base 2.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %kr : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}
