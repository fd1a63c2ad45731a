// RUN: gptc-opt %s --gpt-fuse-attention | FileCheck %s

// CHECK-LABEL: func @dense
// CHECK-SAME:  %[[Q:.*]]: tensor<4x?x8xf32>, %[[K:.*]]: tensor<2x?x8xf32>, %[[V:.*]]: tensor<2x?x8xf32>
// CHECK-NEXT:  gpt.flash_attention %[[Q]], %[[K]], %[[V]] causal scale 0.5 groups 2
// CHECK-NEXT:  return
func.func @dense(%q: tensor<4x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %m = gpt.causal_mask %t : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK-LABEL: func @no_mask_no_scale
// CHECK-NOT:   causal
// CHECK:       gpt.flash_attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.0
func.func @no_mask_no_scale(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// The scale at q, at the scores, and as a division: 0.5 * 0.5 / 4.
// CHECK-LABEL: func @scale_spellings
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x3x8xf32>
// CHECK:       gpt.flash_attention %[[Q]], %{{.*}}, %{{.*}} causal scale 0.0625
func.func @scale_spellings(%q: tensor<4x3x8xf32>, %k: tensor<4x5x8xf32>, %v: tensor<4x5x8xf32>) -> tensor<4x3x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x3x5xf32>
  %four = arith.constant dense<4.0> : tensor<4x3x5xf32>
  %qs = gpt.scale %q by 0.5 : tensor<4x3x8xf32>
  %s = gpt.matmul %qs, %k transpose_b : tensor<4x3x8xf32>, tensor<4x5x8xf32> -> tensor<4x3x5xf32>
  %t = arith.mulf %half, %s : tensor<4x3x5xf32>
  %m = gpt.causal_mask %t : tensor<4x3x5xf32>
  %d = arith.divf %m, %four : tensor<4x3x5xf32>
  %p = gpt.softmax %d : tensor<4x3x5xf32>
  %o = gpt.matmul %p, %v : tensor<4x3x5xf32>, tensor<4x5x8xf32> -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

// CHECK-LABEL: func @cached
// CHECK-SAME:  %[[Q:.*]]: tensor<?x32xf32>, %[[K:.*]]: tensor<2x?x8xf32>, %[[V:.*]]: tensor<2x?x8xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[C:.*]]: !gpt.kv_cache
// CHECK-NEXT:  %[[C1:.*]] = gpt.kv_append %[[C]], %[[K]], %[[V]]
// CHECK-NEXT:  %[[A:.*]] = gpt.flash_attention %[[Q]] cache %[[C1]] at %[[POS]], %[[SEQ]] layer 1 causal scale 0.5 groups 2
// CHECK-NEXT:  return %[[A]], %[[C1]]
func.func @cached(%q: tensor<?x32xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>, %pos: tensor<?xi32>,
                  %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> (tensor<?x32xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>) {
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %c1 = gpt.kv_append %c, %k, %v at %pos, %seq layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %K transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %m = gpt.causal_mask %t : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %V groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  %r = gpt.merge_heads %o : tensor<4x?x8xf32> -> tensor<?x32xf32>
  return %r, %c1 : tensor<?x32xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}
