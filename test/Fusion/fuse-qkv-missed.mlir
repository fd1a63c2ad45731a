// RUN: gptc-opt %s --gpt-fuse-qkv --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-qkv | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.fused_gemm

// Nothing here becomes a GEMM of sections.
// SAME: func @other_activation

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=other_activation | Remark="expected the activation of the q projection, got another: one GEMM reads one activation"
func.func @other_activation(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %w: tensor<16x16xf32>,
                            %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %x, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.linear %y, %w2 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=packed_has_user | Remark="expected the split to be the only user of the packed projection; its other users need it as one tensor"
func.func @packed_has_user(%x: tensor<?x16xf32>, %w: tensor<48x16xf32>) -> (tensor<2x?x8xf32>, tensor<?x48xf32>) {
  %qkv = gpt.linear %x, %w : tensor<?x16xf32>, tensor<48x16xf32> -> tensor<?x48xf32>
  %q, %k, %v = gpt.split %qkv : tensor<?x48xf32> -> tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %qkv : tensor<2x?x8xf32>, tensor<?x48xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=shared_projection | Remark="expected three projections for q, k and v, got one that serves as two of them"
func.func @shared_projection(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %qh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %qh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// Keys that are no projection but an activation of one.
// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=activated_keys | Remark="expected k from a gpt.linear, through split_heads, rope, norms and scales only, got gpt.silu"
func.func @activated_keys(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %x, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.linear %x, %w2 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %ks = gpt.silu %k : tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %ks : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=given_values | Remark="expected v from a gpt.linear, through split_heads, rope, norms and scales only, got an argument"
func.func @given_values(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %vh: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %x, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=split_of_sum | Remark="expected the split of a gpt.linear, or of the split heads of one"
func.func @split_of_sum(%x: tensor<?x16xf32>, %y: tensor<?x48xf32>, %w: tensor<48x16xf32>) -> tensor<2x?x8xf32> {
  %l = gpt.linear %x, %w : tensor<?x16xf32>, tensor<48x16xf32> -> tensor<?x48xf32>
  %qkv = arith.addf %l, %y : tensor<?x48xf32>
  %q, %k, %v = gpt.split %qkv : tensor<?x48xf32> -> tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=part_of_part | Remark="expected a packed weight that is no part of another"
func.func @part_of_part(%x: tensor<?x16xf32>, %all: tensor<64x16xf32>) -> tensor<2x?x8xf32> {
  %w = tensor.extract_slice %all[16, 0] [48, 16] [1, 1] : tensor<64x16xf32> to tensor<48x16xf32>
  %qkv = gpt.linear %x, %w : tensor<?x16xf32>, tensor<48x16xf32> -> tensor<?x48xf32>
  %q, %k, %v = gpt.split %qkv : tensor<?x48xf32> -> tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// A weight that is computed after the first projection.
// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=late_weight | Remark="expected a weight known before the first of the three projections; load it before"
func.func @late_weight(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %w1: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %x, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %w2 = arith.addf %w, %w1 : tensor<16x16xf32>
  %v = gpt.linear %x, %w2 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// A batch of its own dimension.
// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=batch | Remark="expected an activation [T, K] of static K, got tensor<4x?x16xf32>; pack the tokens of a batch into one dimension"
func.func @batch(%x: tensor<4x?x16xf32>, %w: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> tensor<4x2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<4x?x16xf32>, tensor<16x16xf32> -> tensor<4x?x16xf32>
  %k = gpt.linear %x, %w1 : tensor<4x?x16xf32>, tensor<16x16xf32> -> tensor<4x?x16xf32>
  %v = gpt.linear %x, %w2 : tensor<4x?x16xf32>, tensor<16x16xf32> -> tensor<4x?x16xf32>
  %qh = gpt.split_heads %q : tensor<4x?x16xf32> -> tensor<4x2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<4x?x16xf32> -> tensor<4x2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<4x?x16xf32> -> tensor<4x2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<4x2x?x8xf32>, tensor<4x2x?x8xf32> -> tensor<4x2x?x?xf32>
  %p = gpt.softmax %s : tensor<4x2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<4x2x?x?xf32>, tensor<4x2x?x8xf32> -> tensor<4x2x?x8xf32>
  return %o : tensor<4x2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=no_product | Remark="expected a gpt.matmul of queries and keys with transpose_b before the softmax"
func.func @no_product(%x: tensor<?x16xf32>, %scores: tensor<2x?x?xf32>, %w: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %v = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %p = gpt.softmax %scores : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-qkv {{.*}}Function=other_block | Remark="expected the block of the q projection"
func.func @other_block(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %r = scf.execute_region -> tensor<2x?x8xf32> {
    %k = gpt.linear %x, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %v = gpt.linear %x, %w2 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
    %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
    %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
    %p = gpt.softmax %s : tensor<2x?x?xf32>
    %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
    scf.yield %o : tensor<2x?x8xf32>
  }
  return %r : tensor<2x?x8xf32>
}

// Attention over what the function is given has no projections: no candidate,
// no remark.
// CHECK-NOT: Function=no_candidate
func.func @no_candidate(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}
