// RUN: gptc-opt %s --gpt-canonicalize-attention --gpt-fuse-attention --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-canonicalize-attention --gpt-fuse-attention | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.flash_attention
//
// Each reason for which attention stays as it is written; no other op appears.

// SAME: func @weights_have_user

// CHECK: [Missed] fuse-attention {{.*}}Function=weights_have_user | Remark="expected no user of this value but attention, got 2 users; scores and weights that are used elsewhere must be computed, so attention stays as it is written"
func.func @weights_have_user(%q: tensor<4x?x8xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %p : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// The product is computed once, in the unfused attention.
// SAME-LABEL: func @scores_have_user
// SAME-COUNT-2: gpt.matmul
// SAME-NOT: gpt.matmul
// SAME-LABEL: func @masked_scores_have_user
// CHECK: [Missed] fuse-attention {{.*}}Function=scores_have_user | Remark="expected no user of this value but attention, got 2 users
func.func @scores_have_user(%q: tensor<4x?x8xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %s : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=masked_scores_have_user | Remark="expected no user of this value but attention, got 2 users
func.func @masked_scores_have_user(%q: tensor<4x?x8xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %m : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=sizes_of_scores | Remark="expected no sizes taken of the scores but for their masks, since fused attention does not have the scores; give another value of these sizes after 'like'"
func.func @sizes_of_scores(%q: tensor<4x?x8xf32>, %keys: tensor<?xf32>) -> (tensor<4x?x8xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %b = gpt.broadcast %keys like %s : tensor<?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %b : tensor<4x?x8xf32>, tensor<4x?x?xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=values_transposed | Remark="expected values [..., Sk, D] without transpose_b"
func.func @values_transposed(%q: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x8x8xf32>, tensor<4x8x8xf32> -> tensor<4x8x8xf32>
  %p = gpt.softmax %s : tensor<4x8x8xf32>
  %o = gpt.matmul %p, %q transpose_b : tensor<4x8x8xf32>, tensor<4x8x8xf32> -> tensor<4x8x8xf32>
  return %o : tensor<4x8x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=keys_transposed | Remark="expected keys [..., Sk, D] with transpose_b"
func.func @keys_transposed(%q: tensor<4x?x8xf32>, %k: tensor<4x8x?xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k : tensor<4x?x8xf32>, tensor<4x8x?xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=scores_are_argument | Remark="expected scores from gpt.matmul, got an argument"
func.func @scores_are_argument(%s: tensor<4x?x?xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=other_op | Remark="expected gpt.matmul, scale, softcap, alibi, mask or causal_mask before the softmax, got math.absf; additive masks are arith.addf or gpt.mask, boolean ones gpt.mask or arith.select with a constant, runtime scales stand at the product"
func.func @other_op(%q: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %a = math.absf %s : tensor<4x?x?xf32>
  %p = gpt.softmax %a : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=other_groups | Remark="expected groups 2 as in the product of queries and keys, got 1"
func.func @other_groups(%q: tensor<4x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=value_size | Remark="expected keys and values of one type"
func.func @value_size(%q: tensor<4x?x8xf32>, %v: tensor<4x?x16xf32>) -> tensor<4x?x16xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
  return %o : tensor<4x?x16xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=head_size | Remark="expected a static head size D of queries, keys and values"
func.func @head_size(%q: tensor<4x?x?xf32>) -> tensor<4x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  return %o : tensor<4x?x?xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=result_type | Remark="expected a result of the queries' type"
func.func @result_type(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>) -> tensor<4x3x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x3x?xf32>
  %p = gpt.softmax %s : tensor<4x3x?xf32>
  %o = gpt.matmul %p, %k : tensor<4x3x?xf32>, tensor<4x?x8xf32> -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

//===----------------------------------------------------------------------===//
// Orders that mean something else than the fused op's
//===----------------------------------------------------------------------===//

// CHECK: [Missed] fuse-attention {{.*}}Function=scale_after_mask | Remark="expected the scale before the additive mask, whose numbers it would change; scale the product of queries and keys, or scale the mask by itself"
func.func @scale_after_mask(%q: tensor<4x?x8xf32>, %mask: tensor<?x?xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %mask : tensor<4x?x?xf32>, tensor<?x?xf32>
  %t = gpt.scale %m by 0.5 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=negative_past_causal | Remark="expected a scale above 0 past the mask, since -inf times -0.5{{0*}} is no hidden score; scale the product of queries and keys"
func.func @negative_past_causal(%q: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<4x?x?xf32>
  %t = gpt.scale %m by -0.5 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=zero_past_boolean | Remark="expected a scale above 0 past the mask, since -inf times 0.0{{0*}} is no hidden score
func.func @zero_past_boolean(%q: tensor<4x?x8xf32>, %mask: tensor<?xi1>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %mask : tensor<4x?x?xf32>, tensor<?xi1>
  %t = gpt.scale %m by 0.0 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=zero_past_softcap | Remark="expected a scale other than 0 past the softcap"
func.func @zero_past_softcap(%q: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.softcap %s at 5.0 : tensor<4x?x?xf32>
  %t = gpt.scale %m by 0.0 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=factors_vanish | Remark="expected scales whose product is a number of f32"
func.func @factors_vanish(%q: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 1.0e-30 : tensor<4x?x?xf32>
  %u = gpt.scale %t by 1.0e-30 : tensor<4x?x?xf32>
  %p = gpt.softmax %u : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=softcap_past_mask | Remark="expected the softcap before the mask: it would turn -inf into -cap, which is not hidden"
func.func @softcap_past_mask(%q: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<4x?x?xf32>
  %t = gpt.softcap %m at 50.0 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=softcap_past_alibi | Remark="expected one softcap, before alibi"
func.func @softcap_past_alibi(%q: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.alibi %s slopes [0.5, 0.25] : tensor<2x?x?xf32>
  %t = gpt.softcap %m at 50.0 : tensor<2x?x?xf32>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=two_alibis | Remark="expected one alibi; add the slopes of both"
func.func @two_alibis(%q: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.alibi %s slopes [0.5, 0.25] : tensor<2x?x?xf32>
  %t = gpt.alibi %m slopes [0.5, 0.25] : tensor<2x?x?xf32>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=alibi_past_fill | Remark="expected alibi before a mask that fills with a finite number, which it would change"
func.func @alibi_past_fill(%q: tensor<2x?x8xf32>, %mask: tensor<?xi1>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.mask %s, %mask fill -1.0e4 : tensor<2x?x?xf32>, tensor<?xi1>
  %t = gpt.alibi %m slopes [0.5, 0.25] : tensor<2x?x?xf32>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=fill_past_causal | Remark="expected a mask that fills with a finite number before gpt.causal_mask: it would bring later keys back"
func.func @fill_past_causal(%q: tensor<2x?x8xf32>, %mask: tensor<?xi1>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %t = gpt.mask %m, %mask fill -1.0e4 : tensor<2x?x?xf32>, tensor<?xi1>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=two_fills | Remark="expected boolean masks that fill alike, as the one fill of fused attention; give all of them the same number"
func.func @two_fills(%q: tensor<2x?x8xf32>, %a: tensor<?x?xi1>, %mask: tensor<?xi1>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.mask %s, %a fill -1.0e4 : tensor<2x?x?xf32>, tensor<?x?xi1>
  %t = gpt.mask %m, %mask : tensor<2x?x?xf32>, tensor<?xi1>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// The second number is right, but the scale has changed the first one.
// CHECK: [Missed] fuse-attention {{.*}}Function=scaled_fill | Remark="expected boolean masks that fill alike
func.func @scaled_fill(%q: tensor<2x?x8xf32>, %a: tensor<?x?xi1>, %mask: tensor<?xi1>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.mask %s, %a fill -1.0e4 : tensor<2x?x?xf32>, tensor<?x?xi1>
  %h = gpt.scale %m by 0.5 : tensor<2x?x?xf32>
  %t = gpt.mask %h, %mask fill -1.0e4 : tensor<2x?x?xf32>, tensor<?xi1>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

//===----------------------------------------------------------------------===//
// Over the KV cache
//===----------------------------------------------------------------------===//

// CHECK: [Missed] fuse-attention {{.*}}Function=not_causal_over_cache | Remark="expected gpt.causal_mask over the KV cache"
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

// CHECK: [Missed] fuse-attention {{.*}}Function=mask_over_cache | Remark="expected no mask beside the causal one over the KV cache, which holds real tokens only: a batch is ragged, not padded; use a window, or named tensors instead of a cache"
func.func @mask_over_cache(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>,
                           %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>, %mask: tensor<?xi1>)
    -> (tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>) {
  %c1 = gpt.kv_append %c, %k, %k at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %q, %K transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %t = gpt.mask %m, %mask : tensor<2x?x?xf32>, tensor<?xi1>
  %p = gpt.softmax %t : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %V : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %c1 : tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=keys_as_values | Remark="expected keys and values of one gpt.kv_read"
func.func @keys_as_values(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>,
                          %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> (tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>) {
  %c1 = gpt.kv_append %c, %k, %k at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %q, %K transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %K : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %c1 : tensor<2x?x8xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=old_cache | Remark="expected a cache that this step appended to"
func.func @old_cache(%q: tensor<2x?x8xf32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>) -> tensor<2x?x8xf32> {
  %K, %V = gpt.kv_read %c layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %q, %K transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %V : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK: [Missed] fuse-attention {{.*}}Function=other_layer | Remark="expected layer 1 as in the append, got 0"
func.func @other_layer(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>,
                       %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> (tensor<2x?x8xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>) {
  %c1 = gpt.kv_append %c, %k, %k at %pos, %seq layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %q, %K transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %V : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o, %c1 : tensor<2x?x8xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}
