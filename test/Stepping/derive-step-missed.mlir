// RUN: gptc-opt %s --gpt-derive-step --split-input-file --remarks-filter=stepping --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-derive-step --split-input-file | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.kv_cache

// A function that cannot step stays as it is.
// SAME-COUNT-5: func @forward

// CHECK: [Missed] derive-step {{.*}} Remark="expected a causal attention over the tokens"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %x : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// An encoder: no causal mask.
// CHECK: [Missed] derive-step {{.*}} Remark="expected a causal mask: without one every token sees later tokens"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// The scores are a value of their own.
// CHECK: [Missed] derive-step {{.*}} Remark="expected the only user of this value of attention to be the next op of it"
func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x16xf32>, tensor<2x?x?xf32>) {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c, %s : tensor<?x16xf32>, tensor<2x?x?xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// Something else mixes the tokens.
// CHECK: [Missed] derive-step {{.*}}'gpt.select_rows' may mix tokens
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %reverse = arith.constant dense<[2, 1, 0]> : tensor<3xi32>
  %cast = tensor.cast %reverse : tensor<3xi32> to tensor<?xi32>
  %x0 = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %x = gpt.select_rows %x0, %cast : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// Not a model over tokens: attention with named tensors.
// CHECK: [Missed] derive-step {{.*}} Remark="expected one argument, the tokens: tensor<?xi32>"
func.func @forward(%q: tensor<2x?x8xf32> {gpt.arg = "q"}, %k: tensor<2x?x8xf32> {gpt.arg = "k"}) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %k : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}
