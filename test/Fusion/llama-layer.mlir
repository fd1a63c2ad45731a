// RUN: gptc-opt %s --gpt-derive-step --gpt-fusion-pipeline | FileCheck %s
// RUN: gptc-opt %s --gpt-derive-step --gpt-unfused-pipeline | FileCheck %s --check-prefix=UNFUSED

// One LLaMA layer (GQA, RoPE, SwiGLU): four GEMMs, one attention, the LM head
// on the wanted rows.

// CHECK-LABEL: func @step
// CHECK-SAME:  %[[TOKENS:.*]]: tensor<?xi32> {gpt.arg = "tokens"}, %[[POS:.*]]: tensor<?xi32> {gpt.arg = "positions"}
// CHECK-SAME:  %[[SEQ:.*]]: tensor<?xi32> {gpt.arg = "sequences"}, %[[ROWS:.*]]: tensor<?xi32> {gpt.arg = "rows"}
// CHECK-SAME:  %[[CACHE:.*]]: !gpt.kv_cache<1 x 2 x 16, page 64, f32> {gpt.arg = "cache"}
// CHECK-DAG:   %[[TABLE:.*]] = gpt.rope_table %[[POS]] <base 1.0e5, pairs half, dim 16>
// CHECK-DAG:   %[[X:.*]] = gpt.embedding
// CHECK:       %[[XR:.*]] = gpt.select_rows %[[X]], %[[ROWS]]
// CHECK:       %[[N:.*]] = gpt.rms_norm %[[X]]
// CHECK:       %[[QKV:.*]]:2 = gpt.fused_gemm %[[N]] {{.*}} at %[[POS]], %[[SEQ]] rope %[[TABLE]] {{.*}} cache %[[CACHE]] {{.*}} layer 0 sections {
// CHECK-NEXT:    tensor<64x64xf32> rope half epilogue (%[[ACC:.*]], %[[PARTNER:.*]], %[[COS:.*]], %[[SIN:.*]]) {
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[ACC]], %[[COS]]
// CHECK-NEXT:      %[[ROT:.*]] = math.fma %[[PARTNER]], %[[SIN]], %[[SCALED]]
// CHECK-NEXT:      gpt.yield %[[ROT]]
// CHECK-NEXT:    } -> tensor<?x64xf32>
// CHECK-NEXT:    tensor<32x64xf32> rope half append keys epilogue
// CHECK:         tensor<32x64xf32> append values
// CHECK:       %[[A:.*]] = gpt.flash_attention %[[QKV]]#0 cache %[[QKV]]#1 at %[[POS]], %[[SEQ]] layer 0 causal scale 0.25 groups 2
// CHECK:       %[[AR:.*]] = gpt.select_rows %[[A]], %[[ROWS]]
// CHECK:       %[[Y:.*]] = gpt.fused_gemm %[[AR]] {{.*}} residual %[[XR]] section
// CHECK:       %[[N2:.*]] = gpt.rms_norm %[[Y]]
// CHECK:       %[[H:.*]] = gpt.fused_gemm %[[N2]] {{.*}} lanes (%{{.*}} : tensor<128x64xf32>, %{{.*}} : tensor<128x64xf32>) epilogue (%[[G:.*]], %[[U:.*]]) {
// CHECK-NEXT:    %[[S:.*]] = gpt.silu %[[G]]
// CHECK-NEXT:    %[[GU:.*]] = arith.mulf %[[S]], %[[U]]
// CHECK:       %[[X2:.*]] = gpt.fused_gemm %[[H]] {{.*}} residual %[[Y]] section
// CHECK:       %[[NF:.*]] = gpt.rms_norm %[[X2]]
// CHECK:       %[[LOGITS:.*]] = gpt.fused_gemm %[[NF]] {{.*}} section %{{.*}} : tensor<300x64xf32> -> tensor<?x300xf32>
// CHECK-NEXT:  return %[[LOGITS]], %[[QKV]]#1

// UNFUSED-LABEL: func @step
// UNFUSED-NOT:   gpt.rope %
// UNFUSED-COUNT-1: gpt.rope_table
// UNFUSED-COUNT-2: gpt.rotate
// UNFUSED:       gpt.kv_append
// UNFUSED-NEXT:  gpt.kv_read
// UNFUSED-NOT:   gpt.fused_gemm
module {
  ml_program.global private @emb(#ml_program.extern<tensor<300x64xf32>>) : tensor<300x64xf32>
  ml_program.global private @an(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @wq(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wk(#ml_program.extern<tensor<32x64xf32>>) : tensor<32x64xf32>
  ml_program.global private @wv(#ml_program.extern<tensor<32x64xf32>>) : tensor<32x64xf32>
  ml_program.global private @wo(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wg(#ml_program.extern<tensor<128x64xf32>>) : tensor<128x64xf32>
  ml_program.global private @wu(#ml_program.extern<tensor<128x64xf32>>) : tensor<128x64xf32>
  ml_program.global private @wd(#ml_program.extern<tensor<64x128xf32>>) : tensor<64x128xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x300xf32> {gpt.result = "logits"}) {
    %emb = ml_program.global_load_const @emb : tensor<300x64xf32>
    %x = gpt.embedding %emb, %tokens : tensor<300x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %pos = gpt.positions %tokens : tensor<?xi32>
    %an = ml_program.global_load_const @an : tensor<64xf32>
    %n = gpt.rms_norm %x, %an eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
    %wq = ml_program.global_load_const @wq : tensor<64x64xf32>
    %wk = ml_program.global_load_const @wk : tensor<32x64xf32>
    %wv = ml_program.global_load_const @wv : tensor<32x64xf32>
    %q = gpt.linear %n, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %k = gpt.linear %n, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    %v = gpt.linear %n, %wv : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    %qh = gpt.split_heads %q : tensor<?x64xf32> -> tensor<4x?x16xf32>
    %kh = gpt.split_heads %k : tensor<?x32xf32> -> tensor<2x?x16xf32>
    %vh = gpt.split_heads %v : tensor<?x32xf32> -> tensor<2x?x16xf32>
    %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 16> : tensor<4x?x16xf32>, tensor<?xi32>
    %kr = gpt.rope %kh, %pos <base 1.0e5, pairs half, dim 16> : tensor<2x?x16xf32>, tensor<?xi32>
    %s = gpt.matmul %qr, %kr transpose_b groups 2 : tensor<4x?x16xf32>, tensor<2x?x16xf32> -> tensor<4x?x?xf32>
    %ss = gpt.scale %s by 0.25 : tensor<4x?x?xf32>
    %m = gpt.causal_mask %ss : tensor<4x?x?xf32>
    %p = gpt.softmax %m : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %vh groups 2 : tensor<4x?x?xf32>, tensor<2x?x16xf32> -> tensor<4x?x16xf32>
    %c = gpt.merge_heads %o : tensor<4x?x16xf32> -> tensor<?x64xf32>
    %wo = ml_program.global_load_const @wo : tensor<64x64xf32>
    %a = gpt.linear %c, %wo : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %y = arith.addf %x, %a : tensor<?x64xf32>
    %n2 = gpt.rms_norm %y, %an eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
    %wg = ml_program.global_load_const @wg : tensor<128x64xf32>
    %wu = ml_program.global_load_const @wu : tensor<128x64xf32>
    %g = gpt.linear %n2, %wg : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
    %u = gpt.linear %n2, %wu : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
    %sa = gpt.silu %g : tensor<?x128xf32>
    %h = arith.mulf %sa, %u : tensor<?x128xf32>
    %wd = ml_program.global_load_const @wd : tensor<64x128xf32>
    %d = gpt.linear %h, %wd : tensor<?x128xf32>, tensor<64x128xf32> -> tensor<?x64xf32>
    %x1 = arith.addf %y, %d : tensor<?x64xf32>
    %nf = gpt.rms_norm %x1, %an eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
    %logits = gpt.linear %nf, %emb : tensor<?x64xf32>, tensor<300x64xf32> -> tensor<?x300xf32>
    return %logits : tensor<?x300xf32>
  }
}
