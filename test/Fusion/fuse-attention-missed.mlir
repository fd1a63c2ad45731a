// RUN: gptc-opt %s --gpt-fuse-attention --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-attention | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.flash_attention

// SAME: func @weights_have_user
// SAME: func @mask_operand
// SAME: func @other_groups
// SAME: func @not_causal_over_cache
// SAME: func @scale_after_mask

// CHECK: [Missed] fuse-attention {{.*}}Function=weights_have_user | Remark="expected the only user of this value of attention to be the next op of it"
func.func @weights_have_user(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %p : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=mask_operand | Remark="expected no mask but the causal one"
func.func @mask_operand(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %mask: tensor<?x?xi1>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %mask : tensor<4x?x?xf32>, tensor<?x?xi1>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=other_groups | Remark="expected groups 2 as in the product of q and k, got 1"
func.func @other_groups(%q: tensor<4x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=not_causal_over_cache | Remark="expected a causal mask over the KV cache"
func.func @not_causal_over_cache(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>,
                                 %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> (tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>) {
  %c1 = gpt.kv_append %c, %k, %k at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %q, %K transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %V : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %c1 : tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

// Scaling an additive mask would change it.
// CHECK: [Missed] fuse-attention {{.*}}Function=scale_after_mask | Remark="expected the scale before the mask"
func.func @scale_after_mask(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %mask: tensor<?x?xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %mask : tensor<4x?x?xf32>, tensor<?x?xf32>
  %t = gpt.scale %m by 0.5 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}
