// RUN: gptc-opt %s --gpt-remove-dropout --gpt-derive-step --gpt-fusion-pipeline | FileCheck %s

// nanoGPT's block, written by hand: merged c_attn, scale and mask by ops, GELU
// (erf), dropout, layer norms with bias, tied head.

// CHECK-LABEL: func @step
// CHECK-SAME:  %[[IDS:[a-z0-9]+]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:[a-z0-9]+]]: {{.*}} "positions"}, %[[SEQ:[a-z0-9]+]]: {{.*}} "sequences"}, %[[ROWS:[a-z0-9]+]]: {{.*}} "rows"}, %[[C:[a-z0-9]+]]: !gpt.kv_cache<1 x 4 x 16, page 64, f32>
// CHECK:       %[[TOK:.*]] = gpt.embedding %{{.*}}, %[[IDS]]
// CHECK-NEXT:  %[[P:.*]] = gpt.embedding %{{.*}}, %[[POS]]
// CHECK-NEXT:  %[[X:.*]] = arith.addf %[[TOK]], %[[P]] : tensor<?x64xf32>
// CHECK-NEXT:  %[[XR:.*]] = gpt.select_rows %[[X]], %[[ROWS]]
// CHECK-NEXT:  %[[N1:.*]] = gpt.layer_norm %[[X]], %{{.*}} eps 1.0e-5
// CHECK-DAG:   %[[WQ:.*]] = tensor.extract_slice %c_attn[0, 0] [64, 64]
// CHECK-DAG:   %[[BQ:.*]] = tensor.extract_slice %c_attn_b[0] [64]
// CHECK-DAG:   %[[WK:.*]] = tensor.extract_slice %c_attn[64, 0] [64, 64]
// CHECK-DAG:   %[[BK:.*]] = tensor.extract_slice %c_attn_b[64] [64]
// CHECK-DAG:   %[[WV:.*]] = tensor.extract_slice %c_attn[128, 0] [64, 64]
// CHECK-DAG:   %[[BV:.*]] = tensor.extract_slice %c_attn_b[128] [64]
// CHECK:       %[[QKV:.*]]:2 = gpt.fused_gemm %[[N1]] : tensor<?x64xf32> at %[[POS]], %[[SEQ]] cache %[[C]] : {{.*}} layer 0 sections {
// CHECK-NEXT:    %[[WQ]] : tensor<64x64xf32> bias %[[BQ]] -> tensor<?x64xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<64x64xf32> bias %[[BK]] append keys,
// CHECK-NEXT:    %[[WV]] : tensor<64x64xf32> bias %[[BV]] append values
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[Y:.*]] = gpt.flash_attention %[[QKV]]#0 cache %[[QKV]]#1 at %[[POS]], %[[SEQ]] layer 0 causal scale 0.25 :
// CHECK-NEXT:  %[[YR:.*]] = gpt.select_rows %[[Y]], %[[ROWS]]
// CHECK-NEXT:  %[[X1:.*]] = gpt.fused_gemm %[[YR]] : tensor<?x64xf32> residual %[[XR]] section %c_proj : tensor<64x64xf32> bias %{{.*}} epilogue (%[[ACC:[a-z]+]], %[[R:[a-z]+]]) {
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[R]], %[[ACC]] : f32
// CHECK-NEXT:    gpt.yield %[[S]]
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[N2:.*]] = gpt.layer_norm %[[X1]], %{{.*}} eps 1.0e-5
// CHECK-NEXT:  %[[H:.*]] = gpt.fused_gemm %[[N2]] : tensor<?x64xf32> section %c_fc : tensor<256x64xf32> bias %c_fc_b epilogue (%[[ACC2:[a-z]+]]) {
// CHECK-NEXT:    %[[G:.*]] = gpt.gelu erf %[[ACC2]] : f32
// CHECK-NEXT:    gpt.yield %[[G]]
// CHECK-NEXT:  } -> tensor<?x256xf32>
// CHECK-NEXT:  %[[X2:.*]] = gpt.fused_gemm %[[H]] : tensor<?x256xf32> residual %[[X1]] section %mlp_proj : tensor<64x256xf32> bias %{{.*}} epilogue
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    gpt.yield
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[NF:.*]] = gpt.layer_norm %[[X2]], %{{.*}} eps 1.0e-5
// CHECK-NEXT:  %[[L:.*]] = gpt.fused_gemm %[[NF]] : tensor<?x64xf32> section %wte : tensor<96x64xf32> -> tensor<?x96xf32>
// CHECK-NEXT:  return %[[L]], %[[QKV]]#1
module attributes {gpt.name = "nanogpt"} {
  ml_program.global private @wte(#ml_program.extern<tensor<96x64xf32>>) : tensor<96x64xf32>
  ml_program.global private @wpe(#ml_program.extern<tensor<32x64xf32>>) : tensor<32x64xf32>
  ml_program.global private @g(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @c_attn(#ml_program.extern<tensor<192x64xf32>>) : tensor<192x64xf32>
  ml_program.global private @c_attn_b(#ml_program.extern<tensor<192xf32>>) : tensor<192xf32>
  ml_program.global private @c_proj(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @c_fc(#ml_program.extern<tensor<256x64xf32>>) : tensor<256x64xf32>
  ml_program.global private @c_fc_b(#ml_program.extern<tensor<256xf32>>) : tensor<256xf32>
  ml_program.global private @mlp_proj(#ml_program.extern<tensor<64x256xf32>>) : tensor<64x256xf32>
  func.func @forward(%idx: tensor<?xi32>) -> (tensor<?x96xf32> {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte : tensor<96x64xf32>
    %wpe = ml_program.global_load_const @wpe : tensor<32x64xf32>
    %g = ml_program.global_load_const @g : tensor<64xf32>
    %b = ml_program.global_load_const @b : tensor<64xf32>
    %c_attn = ml_program.global_load_const @c_attn : tensor<192x64xf32>
    %c_attn_b = ml_program.global_load_const @c_attn_b : tensor<192xf32>
    %c_proj = ml_program.global_load_const @c_proj : tensor<64x64xf32>
    %c_fc = ml_program.global_load_const @c_fc : tensor<256x64xf32>
    %c_fc_b = ml_program.global_load_const @c_fc_b : tensor<256xf32>
    %mlp_proj = ml_program.global_load_const @mlp_proj : tensor<64x256xf32>

    %tok = gpt.embedding %wte, %idx : tensor<96x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %p = gpt.positions %idx : tensor<?xi32>
    %pos = gpt.embedding %wpe, %p : tensor<32x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %sum = arith.addf %tok, %pos : tensor<?x64xf32>
    %x = gpt.dropout %sum p 0.1 : tensor<?x64xf32>

    %n1 = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %qkv = gpt.linear %n1, %c_attn bias %c_attn_b : tensor<?x64xf32>, tensor<192x64xf32>, tensor<192xf32> -> tensor<?x192xf32>
    %q, %k, %v = gpt.split %qkv : tensor<?x192xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %kh = gpt.split_heads %k : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %qh = gpt.split_heads %q : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %vh = gpt.split_heads %v : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %att = gpt.matmul %qh, %kh transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %scaled = gpt.scale %att by 0.25 : tensor<4x?x?xf32>
    %masked = gpt.causal_mask %scaled : tensor<4x?x?xf32>
    %soft = gpt.softmax %masked : tensor<4x?x?xf32>
    %drop = gpt.dropout %soft p 0.1 : tensor<4x?x?xf32>
    %y = gpt.matmul %drop, %vh : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %ym = gpt.merge_heads %y : tensor<4x?x16xf32> -> tensor<?x64xf32>
    %proj = gpt.linear %ym, %c_proj bias %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %projd = gpt.dropout %proj p 0.1 : tensor<?x64xf32>
    %x1 = arith.addf %x, %projd : tensor<?x64xf32>

    %n2 = gpt.layer_norm %x1, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %fc = gpt.linear %n2, %c_fc bias %c_fc_b : tensor<?x64xf32>, tensor<256x64xf32>, tensor<256xf32> -> tensor<?x256xf32>
    %act = gpt.gelu erf %fc : tensor<?x256xf32>
    %mlp = gpt.linear %act, %mlp_proj bias %b : tensor<?x256xf32>, tensor<64x256xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %mlpd = gpt.dropout %mlp p 0.1 : tensor<?x64xf32>
    %x2 = arith.addf %x1, %mlpd : tensor<?x64xf32>

    %nf = gpt.layer_norm %x2, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %logits = gpt.linear %nf, %wte : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    return %logits : tensor<?x96xf32>
  }
}
