// RUN: gptc-opt %s --gpt-remove-dropout --gpt-derive-step --gpt-fusion-pipeline | FileCheck %s

// One GPT-2 layer (packed Conv1D projection, learned positions, dropout): four
// GEMMs, one attention, the LM head on the wanted rows.

// CHECK-LABEL: func @step
// CHECK-SAME:  %[[TOKENS:.*]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:.*]]: tensor<?xi32> {gpt.arg = "positions"}
// CHECK-SAME:  %[[SEQ:.*]]: tensor<?xi32> {gpt.arg = "sequences"}, %[[ROWS:.*]]: tensor<?xi32> {gpt.arg = "rows"}
// CHECK-SAME:  %[[CACHE:.*]]: !gpt.kv_cache<1 x 4 x 16, page 64, f32> {gpt.arg = "cache"}
// CHECK-NOT:   gpt.dropout
// CHECK:       gpt.embedding %{{.*}}, %[[TOKENS]]
// CHECK:       gpt.embedding %{{.*}}, %[[POS]]
// CHECK:       %[[X:.*]] = arith.addf
// CHECK:       %[[N:.*]] = gpt.layer_norm %[[X]]
// CHECK:       %[[WQ:.*]] = tensor.extract_slice %{{.*}}[0, 0] [64, 64] [1, 1]
// CHECK:       %[[BQ:.*]] = tensor.extract_slice %{{.*}}[0] [64] [1]
// CHECK:       %[[WK:.*]] = tensor.extract_slice %{{.*}}[0, 64] [64, 64] [1, 1]
// CHECK:       %[[BK:.*]] = tensor.extract_slice %{{.*}}[64] [64] [1]
// CHECK:       %[[WV:.*]] = tensor.extract_slice %{{.*}}[0, 128] [64, 64] [1, 1]
// CHECK:       %[[BV:.*]] = tensor.extract_slice %{{.*}}[128] [64] [1]
// CHECK:       %[[QKV:.*]]:2 = gpt.fused_gemm %[[N]] {{.*}} cache %[[CACHE]] {{.*}} layer 0 sections {
// CHECK-NEXT:    %[[WQ]] : tensor<64x64xf32> bias %[[BQ]] in_out -> tensor<?x64xf32>
// CHECK-NEXT:    %[[WK]] : tensor<64x64xf32> bias %[[BK]] in_out append keys
// CHECK-NEXT:    %[[WV]] : tensor<64x64xf32> bias %[[BV]] in_out append values
// CHECK:       %[[A:.*]] = gpt.flash_attention %[[QKV]]#0 cache %[[QKV]]#1 at %[[POS]], %[[SEQ]] layer 0 causal scale 0.25
// CHECK:       %[[AR:.*]] = gpt.select_rows %[[A]], %[[ROWS]]
// CHECK:       %[[Y:.*]] = gpt.fused_gemm %[[AR]] {{.*}} residual
// CHECK:       %[[N2:.*]] = gpt.layer_norm %[[Y]]
// CHECK:       %[[H:.*]] = gpt.fused_gemm %[[N2]] {{.*}} epilogue (%[[ACC:.*]]) {
// CHECK-NEXT:    gpt.gelu tanh %[[ACC]]
// CHECK:       %[[X2:.*]] = gpt.fused_gemm %[[H]] {{.*}} residual %[[Y]]
// CHECK:       %[[NF:.*]] = gpt.layer_norm %[[X2]]
// CHECK:       %[[LOGITS:.*]] = gpt.fused_gemm %[[NF]]
// CHECK-NEXT:  return %[[LOGITS]], %[[QKV]]#1
module {
  ml_program.global private @wte(#ml_program.extern<tensor<257x64xf32>>) : tensor<257x64xf32>
  ml_program.global private @wpe(#ml_program.extern<tensor<128x64xf32>>) : tensor<128x64xf32>
  ml_program.global private @g(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @wa(#ml_program.extern<tensor<64x192xf32>>) : tensor<64x192xf32>
  ml_program.global private @ba(#ml_program.extern<tensor<192xf32>>) : tensor<192xf32>
  ml_program.global private @wp(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wf(#ml_program.extern<tensor<64x256xf32>>) : tensor<64x256xf32>
  ml_program.global private @bf(#ml_program.extern<tensor<256xf32>>) : tensor<256xf32>
  ml_program.global private @wf2(#ml_program.extern<tensor<256x64xf32>>) : tensor<256x64xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x257xf32> {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte : tensor<257x64xf32>
    %wpe = ml_program.global_load_const @wpe : tensor<128x64xf32>
    %g = ml_program.global_load_const @g : tensor<64xf32>
    %b = ml_program.global_load_const @b : tensor<64xf32>
    %pos = gpt.positions %tokens : tensor<?xi32>
    %e = gpt.embedding %wte, %tokens : tensor<257x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %pe = gpt.embedding %wpe, %pos : tensor<128x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %e1 = arith.addf %e, %pe : tensor<?x64xf32>
    %x = gpt.dropout %e1 p 0.1 : tensor<?x64xf32>
    %n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %wa = ml_program.global_load_const @wa : tensor<64x192xf32>
    %ba = ml_program.global_load_const @ba : tensor<192xf32>
    %qkv = gpt.linear %n, %wa bias %ba in_out : tensor<?x64xf32>, tensor<64x192xf32>, tensor<192xf32> -> tensor<?x192xf32>
    %q, %k, %v = gpt.split %qkv : tensor<?x192xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %qh = gpt.split_heads %q : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %kh = gpt.split_heads %k : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %vh = gpt.split_heads %v : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %s = gpt.matmul %qh, %kh transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %ss = gpt.scale %s by 0.25 : tensor<4x?x?xf32>
    %m = gpt.causal_mask %ss : tensor<4x?x?xf32>
    %p0 = gpt.softmax %m : tensor<4x?x?xf32>
    %p = gpt.dropout %p0 p 0.1 : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %vh : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %c = gpt.merge_heads %o : tensor<4x?x16xf32> -> tensor<?x64xf32>
    %wp = ml_program.global_load_const @wp : tensor<64x64xf32>
    %a = gpt.linear %c, %wp bias %b in_out : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %y = arith.addf %x, %a : tensor<?x64xf32>
    %n2 = gpt.layer_norm %y, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %wf = ml_program.global_load_const @wf : tensor<64x256xf32>
    %bf = ml_program.global_load_const @bf : tensor<256xf32>
    %f = gpt.linear %n2, %wf bias %bf in_out : tensor<?x64xf32>, tensor<64x256xf32>, tensor<256xf32> -> tensor<?x256xf32>
    %ge = gpt.gelu tanh %f : tensor<?x256xf32>
    %wf2 = ml_program.global_load_const @wf2 : tensor<256x64xf32>
    %d = gpt.linear %ge, %wf2 bias %b in_out : tensor<?x256xf32>, tensor<256x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %x2 = arith.addf %y, %d : tensor<?x64xf32>
    %nf = gpt.layer_norm %x2, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    %logits = gpt.linear %nf, %wte : tensor<?x64xf32>, tensor<257x64xf32> -> tensor<?x257xf32>
    return %logits : tensor<?x257xf32>
  }
}
