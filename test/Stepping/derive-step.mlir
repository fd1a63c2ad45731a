// RUN: gptc-opt %s --gpt-derive-step | FileCheck %s
// RUN: gptc-opt %s --gpt-derive-step=page-size=16 | FileCheck %s --check-prefix=PAGE
// RUN: gptc-opt %s --gpt-derive-step=element=bf16 | FileCheck %s --check-prefix=BF16
// RUN: gptc-opt %s --gpt-derive-step=element=f16 | FileCheck %s --check-prefix=F16
// RUN: not gptc-opt %s --gpt-derive-step=element=f8 2>&1 | FileCheck %s --check-prefix=ELEMENT

// Two layers, the second with its values computed after its scores, and an
// embedding that is also the result of the function.

// PAGE: !gpt.kv_cache<2 x 2 x 8, page 16, f32>
// BF16: !gpt.kv_cache<2 x 2 x 8, page 64, bf16>
// F16: !gpt.kv_cache<2 x 2 x 8, page 64, f16>
// ELEMENT: error: expected f32, bf16 or f16 as the element of the KV cache, got 'f8'

// CHECK-NOT:   @forward
// CHECK-LABEL: func @step
// CHECK-SAME:  %[[TOKENS:.*]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:.*]]: tensor<?xi32> {gpt.arg = "positions"}
// CHECK-SAME:  %[[SEQ:.*]]: tensor<?xi32> {gpt.arg = "sequences"}, %[[ROWS:.*]]: tensor<?xi32> {gpt.arg = "rows"}
// CHECK-SAME:  %[[C0:.*]]: !gpt.kv_cache<2 x 2 x 8, page 64, f32> {gpt.arg = "cache"}
// CHECK-SAME:  -> (tensor<?x16xf32> {gpt.result = "logits"}, tensor<?x16xf32> {gpt.result = "hidden"}, !gpt.kv_cache<2 x 2 x 8, page 64, f32> {gpt.result = "cache"})
func.func @forward(%tokens: tensor<?xi32>)
    -> (tensor<?x16xf32> {gpt.result = "logits"}, tensor<?x16xf32> {gpt.result = "hidden"}) {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // CHECK:      %[[X:.*]] = gpt.embedding
  // CHECK:      %[[XR:.*]] = gpt.select_rows %[[X]], %[[ROWS]]
  // CHECK:      %[[H:.*]] = gpt.split_heads %[[X]]
  // CHECK:      %[[R:.*]] = gpt.rope %[[H]], %[[POS]]
  %pos = gpt.positions %tokens : tensor<?xi32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %r = gpt.rope %h, %pos <base 1.0e4, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>

  // CHECK:      %[[C1:.*]] = gpt.kv_append %[[C0]], %[[R]], %[[H]] at %[[POS]], %[[SEQ]] layer 0
  // CHECK-NEXT: %[[K:.*]], %[[V:.*]] = gpt.kv_read %[[C1]] layer 0
  // CHECK-NEXT: %[[S:.*]] = gpt.matmul %[[R]], %[[K]] transpose_b
  // CHECK-NEXT: %[[M:.*]] = gpt.causal_mask %[[S]]
  // CHECK-NEXT: %[[P:.*]] = gpt.softmax %[[M]]
  // CHECK-NEXT: %[[O:.*]] = gpt.matmul %[[P]], %[[V]]
  %s = gpt.matmul %r, %r transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>

  // CHECK:      %[[V1:.*]] = gpt.scale %[[O]]
  // CHECK-NEXT: %[[C2:.*]] = gpt.kv_append %[[C1]], %[[O]], %[[V1]] at %[[POS]], %[[SEQ]] layer 1
  // CHECK-NEXT: %[[K1:.*]], %[[VV1:.*]] = gpt.kv_read %[[C2]] layer 1
  // CHECK-NEXT: gpt.matmul %[[O]], %[[K1]] transpose_b
  %s1 = gpt.matmul %o, %o transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m1 = gpt.causal_mask %s1 : tensor<2x?x?xf32>
  %p1 = gpt.softmax %m1 : tensor<2x?x?xf32>
  %v1 = gpt.scale %o by 0.5 : tensor<2x?x8xf32>
  %o1 = gpt.matmul %p1, %v1 : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>

  // The residual and the head work on the wanted rows only.
  // CHECK:      %[[C:.*]] = gpt.merge_heads
  // CHECK-NEXT: %[[CR:.*]] = gpt.select_rows %[[C]], %[[ROWS]]
  // CHECK-NEXT: %[[Y:.*]] = arith.addf %[[XR]], %[[CR]]
  // CHECK-NEXT: %[[L:.*]] = gpt.linear %[[Y]]
  // CHECK-NEXT: return %[[L]], %[[XR]], %[[C2]]
  %c = gpt.merge_heads %o1 : tensor<2x?x8xf32> -> tensor<?x16xf32>
  %y = arith.addf %x, %c : tensor<?x16xf32>
  %l = gpt.linear %y, %wte : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %l, %x : tensor<?x16xf32>, tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>
