// RUN: gptc-opt %s --gpt-derive-step --gpt-fusion-pipeline | FileCheck %s

// GPT-J's block: attention and MLP side by side from one norm, rotary pairs of
// adjacent channels on the first 8 of 16, no biases in attention.

// CHECK-LABEL: func @step
// CHECK-SAME:  %[[IDS:[a-z0-9]+]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:[a-z0-9]+]]: {{.*}} "positions"}, %[[SEQ:[a-z0-9]+]]: {{.*}} "sequences"}, %[[ROWS:[a-z0-9]+]]: {{.*}} "rows"}, %[[C:[a-z0-9]+]]: !gpt.kv_cache<1 x 4 x 16, page 64, f32>
// CHECK:       %[[CS:.*]] = gpt.rope_table %[[POS]] <base 10000.0, pairs adjacent, dim 16, rotary 8>
// CHECK:       %[[X:.*]] = gpt.embedding %{{.*}}, %[[IDS]]
// CHECK-NEXT:  %[[XR:.*]] = gpt.select_rows %[[X]], %[[ROWS]]
// CHECK-NEXT:  %[[N:.*]] = gpt.layer_norm %[[X]], %{{.*}} eps 1.0e-5
// CHECK-NEXT:  %[[NR:.*]] = gpt.select_rows %[[N]], %[[ROWS]]
// CHECK-NEXT:  %[[QKV:.*]]:2 = gpt.fused_gemm %[[N]] : tensor<?x64xf32> at %[[POS]], %[[SEQ]] rope %[[CS]] : tensor<?x2x16xf32> rotary 8 cache %[[C]] : {{.*}} layer 0 sections {
// CHECK-NEXT:    %q_proj : tensor<64x64xf32> rope adjacent epilogue (%[[ACC:[a-z]+]], %[[PARTNER:[a-z]+]], %[[COS:[a-z]+]], %[[SIN:[a-z]+]]) {
// CHECK-NEXT:      %[[A:.*]] = arith.mulf %[[ACC]], %[[COS]] : f32
// CHECK-NEXT:      %[[B:.*]] = math.fma %[[PARTNER]], %[[SIN]], %[[A]] : f32
// CHECK-NEXT:      gpt.yield %[[B]]
// CHECK-NEXT:    } -> tensor<?x64xf32>,
// CHECK-NEXT:    %k_proj : tensor<64x64xf32> rope adjacent append keys epilogue
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      math.fma
// CHECK-NEXT:      gpt.yield
// CHECK-NEXT:    },
// CHECK-NEXT:    %v_proj : tensor<64x64xf32> append values
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[O:.*]] = gpt.flash_attention %[[QKV]]#0 cache %[[QKV]]#1 at %[[POS]], %[[SEQ]] layer 0 causal scale 0.25 :
// CHECK-NEXT:  %[[OR:.*]] = gpt.select_rows %[[O]], %[[ROWS]]
// CHECK-NEXT:  %[[ATTN:.*]] = gpt.fused_gemm %[[OR]] : tensor<?x64xf32> section %out_proj : tensor<64x64xf32> -> tensor<?x64xf32>
// CHECK-NEXT:  %[[H:.*]] = gpt.fused_gemm %[[NR]] : tensor<?x64xf32> section %fc_in : tensor<256x64xf32> bias %fc_in_b epilogue (%[[ACC1:[a-z]+]]) {
// CHECK-NEXT:    %[[G:.*]] = gpt.gelu tanh %[[ACC1]] : f32
// CHECK-NEXT:    gpt.yield %[[G]]
// CHECK-NEXT:  } -> tensor<?x256xf32>
// CHECK-NEXT:  %[[X1:.*]] = gpt.fused_gemm %[[H]] : tensor<?x256xf32> residual %[[ATTN]], %[[XR]] section %fc_out : tensor<64x256xf32> bias %{{.*}} epilogue (%[[ACC2:[a-z]+]], %[[R0:[a-z]+]], %[[R1:[a-z0-9_]+]]) {
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[R0]], %[[ACC2]] : f32
// CHECK-NEXT:    %[[T:.*]] = arith.addf %[[S]], %[[R1]] : f32
// CHECK-NEXT:    gpt.yield %[[T]]
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[NF:.*]] = gpt.layer_norm %[[X1]], %{{.*}} eps 1.0e-5
// CHECK-NEXT:  %[[L:.*]] = gpt.fused_gemm %[[NF]] : tensor<?x64xf32> section %wte : tensor<96x64xf32> bias %head_b -> tensor<?x96xf32>
// CHECK-NEXT:  return %[[L]], %[[QKV]]#1
module attributes {gpt.name = "gptj", gpt.context = 64 : i64} {
  ml_program.global private @wte(#ml_program.extern<tensor<96x64xf32>>) : tensor<96x64xf32>
  ml_program.global private @g(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @q_proj(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @k_proj(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @v_proj(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @out_proj(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @fc_in(#ml_program.extern<tensor<256x64xf32>>) : tensor<256x64xf32>
  ml_program.global private @fc_in_b(#ml_program.extern<tensor<256xf32>>) : tensor<256xf32>
  ml_program.global private @fc_out(#ml_program.extern<tensor<64x256xf32>>) : tensor<64x256xf32>
  ml_program.global private @head_b(#ml_program.extern<tensor<96xf32>>) : tensor<96xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x96xf32> {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte : tensor<96x64xf32>
    %g = ml_program.global_load_const @g : tensor<64xf32>
    %b = ml_program.global_load_const @b : tensor<64xf32>
    %q_proj = ml_program.global_load_const @q_proj : tensor<64x64xf32>
    %k_proj = ml_program.global_load_const @k_proj : tensor<64x64xf32>
    %v_proj = ml_program.global_load_const @v_proj : tensor<64x64xf32>
    %out_proj = ml_program.global_load_const @out_proj : tensor<64x64xf32>
    %fc_in = ml_program.global_load_const @fc_in : tensor<256x64xf32>
    %fc_in_b = ml_program.global_load_const @fc_in_b : tensor<256xf32>
    %fc_out = ml_program.global_load_const @fc_out : tensor<64x256xf32>
    %head_b = ml_program.global_load_const @head_b : tensor<96xf32>
    %pos = gpt.positions %tokens : tensor<?xi32>
    %x = gpt.embedding %wte, %tokens : tensor<96x64xf32>, tensor<?xi32> -> tensor<?x64xf32>

    %n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %q = gpt.linear %n, %q_proj : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %k = gpt.linear %n, %k_proj : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %v = gpt.linear %n, %v_proj : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %qh = gpt.split_heads %q : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %kh = gpt.split_heads %k : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %vh = gpt.split_heads %v : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %qr = gpt.rope %qh, %pos <base 10000.0, pairs adjacent, dim 16, rotary 8> : tensor<4x?x16xf32>, tensor<?xi32>
    %kr = gpt.rope %kh, %pos <base 10000.0, pairs adjacent, dim 16, rotary 8> : tensor<4x?x16xf32>, tensor<?xi32>
    %s = gpt.matmul %qr, %kr transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %ss = gpt.scale %s by 0.25 : tensor<4x?x?xf32>
    %m = gpt.causal_mask %ss : tensor<4x?x?xf32>
    %p = gpt.softmax %m : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %vh : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %c = gpt.merge_heads %o : tensor<4x?x16xf32> -> tensor<?x64xf32>
    %attn = gpt.linear %c, %out_proj : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>

    %fc = gpt.linear %n, %fc_in bias %fc_in_b : tensor<?x64xf32>, tensor<256x64xf32>, tensor<256xf32> -> tensor<?x256xf32>
    %act = gpt.gelu tanh %fc : tensor<?x256xf32>
    %mlp = gpt.linear %act, %fc_out bias %b : tensor<?x256xf32>, tensor<64x256xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %both = arith.addf %attn, %mlp : tensor<?x64xf32>
    %x1 = arith.addf %both, %x : tensor<?x64xf32>

    %nf = gpt.layer_norm %x1, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %logits = gpt.linear %nf, %wte bias %head_b : tensor<?x64xf32>, tensor<96x64xf32>, tensor<96xf32> -> tensor<?x96xf32>
    return %logits : tensor<?x96xf32>
  }
}
