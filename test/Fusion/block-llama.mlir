// RUN: gptc-opt %s --gpt-derive-step --gpt-fusion-pipeline | FileCheck %s

// LLaMA's block, written by hand: weights transposed as some exporters store
// them, V before K before Q, the scale on Q before the rope, up before gate,
// residuals on the right.

// CHECK-LABEL: func @step
// CHECK-SAME:  %[[IDS:[a-z0-9]+]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:[a-z0-9]+]]: {{.*}} "positions"}, %[[SEQ:[a-z0-9]+]]: {{.*}} "sequences"}, %[[ROWS:[a-z0-9]+]]: {{.*}} "rows"}, %[[C:[a-z0-9]+]]: !gpt.kv_cache<1 x 2 x 16, page 64, f32>
// CHECK:       %[[CS:.*]] = gpt.rope_table %[[POS]] <base 5.0e5, pairs half, dim 16>
// CHECK:       %[[X:.*]] = gpt.embedding %{{.*}}, %[[IDS]]
// CHECK-NEXT:  %[[XR:.*]] = gpt.select_rows %[[X]], %[[ROWS]]
// CHECK:       %[[N:.*]] = gpt.rms_norm %[[X]], %attn_norm eps 1.0e-6
// CHECK:       %[[QKV:.*]]:2 = gpt.fused_gemm %[[N]] : tensor<?x64xf32> at %[[POS]], %[[SEQ]] rope %[[CS]] : tensor<?x2x16xf32> cache %[[C]] : {{.*}} layer 0 sections {
// CHECK-NEXT:    %wq : tensor<64x64xf32> in_out rope half epilogue (%[[ACC:[a-z]+]], %[[PARTNER:[a-z]+]], %[[COS:[a-z]+]], %[[SIN:[a-z]+]]) {
// CHECK-NEXT:      %[[A:.*]] = arith.mulf %[[ACC]], %[[COS]] : f32
// CHECK-NEXT:      %[[B:.*]] = math.fma %[[PARTNER]], %[[SIN]], %[[A]] : f32
// CHECK-NEXT:      gpt.yield %[[B]]
// CHECK-NEXT:    } -> tensor<?x64xf32>,
// CHECK-NEXT:    %wk : tensor<64x32xf32> in_out rope half append keys epilogue
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      math.fma
// CHECK-NEXT:      gpt.yield
// CHECK-NEXT:    },
// CHECK-NEXT:    %wv : tensor<32x64xf32> append values
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[O:.*]] = gpt.flash_attention %[[QKV]]#0 cache %[[QKV]]#1 at %[[POS]], %[[SEQ]] layer 0 causal scale 0.25 groups 2
// CHECK:       %[[OR:.*]] = gpt.select_rows %[[O]], %[[ROWS]]
// CHECK:       %[[X1:.*]] = gpt.fused_gemm %[[OR]] : tensor<?x64xf32> residual %[[XR]] section %wo : tensor<64x64xf32> epilogue (%[[ACC1:[a-z]+]], %[[R:[a-z]+]]) {
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[ACC1]], %[[R]] : f32
// CHECK-NEXT:    gpt.yield %[[S]]
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[N1:.*]] = gpt.rms_norm %[[X1]], %ffn_norm eps 1.0e-6
// CHECK:       %[[H:.*]] = gpt.fused_gemm %[[N1]] : tensor<?x64xf32> lanes (%w3 : tensor<160x64xf32>, %w1 : tensor<160x64xf32>) epilogue (%[[UP:[a-z]+]], %[[GATE:[a-z0-9_]+]]) {
// CHECK-NEXT:    %[[ACT:.*]] = gpt.silu %[[GATE]] : f32
// CHECK-NEXT:    %[[M:.*]] = arith.mulf %[[ACT]], %[[UP]] : f32
// CHECK-NEXT:    gpt.yield %[[M]]
// CHECK-NEXT:  } -> tensor<?x160xf32>
// CHECK:       %[[X2:.*]] = gpt.fused_gemm %[[H]] : tensor<?x160xf32> residual %[[X1]] section %w2 : tensor<64x160xf32> epilogue
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    gpt.yield
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[NF:.*]] = gpt.rms_norm %[[X2]], %attn_norm eps 1.0e-6
// CHECK-NEXT:  %[[L:.*]] = gpt.fused_gemm %[[NF]] : tensor<?x64xf32> section %emb : tensor<96x64xf32> -> tensor<?x96xf32>
// CHECK-NEXT:  return %[[L]], %[[QKV]]#1
module attributes {gpt.name = "llama", gpt.context = 64 : i64} {
  ml_program.global private @emb(#ml_program.extern<tensor<96x64xf32>>) : tensor<96x64xf32>
  ml_program.global private @attn_norm(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @ffn_norm(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @wq(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wk(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>
  ml_program.global private @wv(#ml_program.extern<tensor<32x64xf32>>) : tensor<32x64xf32>
  ml_program.global private @wo(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @w1(#ml_program.extern<tensor<160x64xf32>>) : tensor<160x64xf32>
  ml_program.global private @w2(#ml_program.extern<tensor<64x160xf32>>) : tensor<64x160xf32>
  ml_program.global private @w3(#ml_program.extern<tensor<160x64xf32>>) : tensor<160x64xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x96xf32> {gpt.result = "logits"}) {
    %emb = ml_program.global_load_const @emb : tensor<96x64xf32>
    %attn_norm = ml_program.global_load_const @attn_norm : tensor<64xf32>
    %ffn_norm = ml_program.global_load_const @ffn_norm : tensor<64xf32>
    %x = gpt.embedding %emb, %tokens : tensor<96x64xf32>, tensor<?xi32> -> tensor<?x64xf32>

    %n = gpt.rms_norm %x, %attn_norm eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>
    %wv = ml_program.global_load_const @wv : tensor<32x64xf32>
    %v = gpt.linear %n, %wv : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    %wk = ml_program.global_load_const @wk : tensor<64x32xf32>
    %k = gpt.linear %n, %wk in_out : tensor<?x64xf32>, tensor<64x32xf32> -> tensor<?x32xf32>
    %wq = ml_program.global_load_const @wq : tensor<64x64xf32>
    %q = gpt.linear %n, %wq in_out : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %vh = gpt.split_heads %v : tensor<?x32xf32> -> tensor<2x?x16xf32>
    %kh = gpt.split_heads %k : tensor<?x32xf32> -> tensor<2x?x16xf32>
    %qs = gpt.scale %q by 0.25 : tensor<?x64xf32>
    %qh = gpt.split_heads %qs : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %pos = gpt.positions %tokens : tensor<?xi32>
    %kr = gpt.rope %kh, %pos <base 5.0e5, pairs half, dim 16> : tensor<2x?x16xf32>, tensor<?xi32>
    %qr = gpt.rope %qh, %pos <base 5.0e5, pairs half, dim 16> : tensor<4x?x16xf32>, tensor<?xi32>
    %s = gpt.matmul %qr, %kr transpose_b groups 2 : tensor<4x?x16xf32>, tensor<2x?x16xf32> -> tensor<4x?x?xf32>
    %m = gpt.causal_mask %s : tensor<4x?x?xf32>
    %p = gpt.softmax %m : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %vh groups 2 : tensor<4x?x?xf32>, tensor<2x?x16xf32> -> tensor<4x?x16xf32>
    %c = gpt.merge_heads %o : tensor<4x?x16xf32> -> tensor<?x64xf32>
    %wo = ml_program.global_load_const @wo : tensor<64x64xf32>
    %a = gpt.linear %c, %wo : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %x1 = arith.addf %a, %x : tensor<?x64xf32>

    %n1 = gpt.rms_norm %x1, %ffn_norm eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>
    %w3 = ml_program.global_load_const @w3 : tensor<160x64xf32>
    %up = gpt.linear %n1, %w3 : tensor<?x64xf32>, tensor<160x64xf32> -> tensor<?x160xf32>
    %w1 = ml_program.global_load_const @w1 : tensor<160x64xf32>
    %gate = gpt.linear %n1, %w1 : tensor<?x64xf32>, tensor<160x64xf32> -> tensor<?x160xf32>
    %act = gpt.silu %gate : tensor<?x160xf32>
    %h = arith.mulf %act, %up : tensor<?x160xf32>
    %w2 = ml_program.global_load_const @w2 : tensor<64x160xf32>
    %d = gpt.linear %h, %w2 : tensor<?x160xf32>, tensor<64x160xf32> -> tensor<?x64xf32>
    %x2 = arith.addf %d, %x1 : tensor<?x64xf32>

    %nf = gpt.rms_norm %x2, %attn_norm eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>
    %logits = gpt.linear %nf, %emb : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    return %logits : tensor<?x96xf32>
  }
}
