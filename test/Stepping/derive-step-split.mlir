// RUN: gptc-opt %s --gpt-derive-step | FileCheck %s

// A packed projection of gate and up after the last attention: rows are chosen before it, not after its parts.

// CHECK-LABEL: func @step
func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x12xf32> {gpt.result = "logits"}) {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %w = ml_program.global_load_const @w : tensor<24x16xf32>
  // CHECK:      %[[X:.*]] = gpt.embedding
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  // CHECK:      %[[C:.*]] = gpt.merge_heads
  // CHECK-NEXT: %[[R:.*]] = gpt.select_rows %[[C]]
  // CHECK-NEXT: %[[B:.*]] = gpt.linear %[[R]]
  // CHECK-NEXT: %[[P:.*]]:2 = gpt.split %[[B]]
  // CHECK-NEXT: %[[A:.*]] = gpt.silu %[[P]]#0
  // CHECK-NEXT: arith.mulf %[[A]], %[[P]]#1
  // CHECK-NOT:  gpt.select_rows
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  %both = gpt.linear %c, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %gate, %up = gpt.split %both : tensor<?x24xf32> -> tensor<?x12xf32>, tensor<?x12xf32>
  %act = gpt.silu %gate : tensor<?x12xf32>
  %y = arith.mulf %act, %up : tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}
ml_program.global private @wte(#ml_program.extern : tensor<16x16xf32>) : tensor<16x16xf32>
ml_program.global private @w(#ml_program.extern : tensor<24x16xf32>) : tensor<24x16xf32>
