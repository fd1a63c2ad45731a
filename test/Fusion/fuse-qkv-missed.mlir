// RUN: gptc-opt %s --gpt-fuse-qkv --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-qkv | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.fused_gemm

// SAME: func @other_activation
// SAME: func @packed_has_user
// SAME: func @shared_projection

// CHECK: [Missed] fuse-qkv {{.*}}Function=other_activation | Remark="expected the activation of the q projection"
func.func @other_activation(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %w: tensor<16x16xf32>,
                            %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %k = gpt.linear %y, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.linear %y, %w2 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %kh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %vh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-qkv {{.*}}Function=packed_has_user | Remark="expected the split to be the only user"
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

// CHECK: [Missed] fuse-qkv {{.*}}Function=shared_projection | Remark="expected three projections for q, k and v"
func.func @shared_projection(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %qh transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %qh : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}
