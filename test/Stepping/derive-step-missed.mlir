// RUN: gptc-opt %s --gpt-derive-step --split-input-file --remarks-filter=stepping --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-derive-step --split-input-file | FileCheck %s --check-prefix=SAME --implicit-check-not=gpt.kv_cache

// A function that cannot step stays as it is.
// SAME-COUNT-8: func @forward

// CHECK-NOT: warning:
// CHECK: [Missed] derive-step {{.*}} Remark="expected a causal attention over the tokens"
// CHECK-NOT: warning:
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
// CHECK: [Missed] derive-step {{.*}} Remark="expected no user of this value but attention, got 2 users; scores and weights
// CHECK: warning: @forward becomes an entry without a KV cache, which cannot be stepped (give it another name if that is meant): expected no user
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

// -----

// A mask beside the causal one.
// CHECK: [Missed] derive-step {{.*}} Remark="expected no mask beside the causal one: a step attends to the keys of the cache
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %c = gpt.causal_mask %s : tensor<2x?x?xf32>
  %see = arith.constant dense<true> : tensor<1xi1>
  %m = gpt.mask %c, %see : tensor<2x?x?xf32>, tensor<1xi1>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %y = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// A factor that depends on the token, and one that is different for each.
// CHECK: [Missed] derive-step {{.*}} Remark="expected a weight, got a value that depends on the tokens"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %y = gpt.broadcast %x like %x : tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %h = gpt.split_heads %y : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>

// -----

// CHECK: [Missed] derive-step {{.*}} Remark="expected the same numbers for every token"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %rows = ml_program.global_load_const @rows : tensor<?x1xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %y = gpt.broadcast %rows like %x : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %z = arith.mulf %x, %y : tensor<?x16xf32>
  %h = gpt.split_heads %z : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>
ml_program.global private @rows(#ml_program.extern) : tensor<?x1xf32>

// -----

// CHECK: [Missed] derive-step {{.*}} Remark="expected the tokens along one dimension"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?x16xf32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %one = ml_program.global_load_const @one : tensor<1x1xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %y = gpt.broadcast %one like %x, %tokens : tensor<1x1xf32>, tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %z = arith.mulf %x, %y : tensor<?x16xf32>
  %h = gpt.split_heads %z : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>
ml_program.global private @one(#ml_program.extern) : tensor<1x1xf32>

// -----

// CHECK: [Missed] derive-step {{.*}} Remark="expected @forward to return logits, of which the program that steps chooses; what returns tokens is an entry without a KV cache"
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?xi32> {
  %wte = ml_program.global_load_const @wte : tensor<16x16xf32>
  %x = gpt.embedding %wte, %tokens : tensor<16x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = gpt.split_heads %x : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %c = gpt.merge_heads %o : tensor<2x?x8xf32> -> tensor<?x16xf32>
  %t = gpt.argmax %c : tensor<?x16xf32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}
ml_program.global private @wte(#ml_program.extern) : tensor<16x16xf32>
