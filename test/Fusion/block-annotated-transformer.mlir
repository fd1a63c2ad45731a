// RUN: gptc-opt %s --gpt-fusion-pipeline | FileCheck %s

// A block in the spelling of The Annotated Transformer: separate W_q, W_k and W_v
// with biases, scores divided by sqrt(d_k), a mask that the host gives and that
// is added, ReLU; norms behind the sublayers as in the paper. A mask argument
// makes it an entry of its own.

// CHECK-LABEL: func @layer
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<?x64xf32> {gpt.arg = "x"}, %[[MASK:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK:       %[[QKV:.*]]:3 = gpt.fused_gemm %[[X]] : tensor<?x64xf32> sections {
// CHECK-NEXT:    %wq : tensor<64x64xf32> bias %b -> tensor<?x64xf32>,
// CHECK-NEXT:    %wk : tensor<64x64xf32> bias %b -> tensor<?x64xf32>,
// CHECK-NEXT:    %wv : tensor<64x64xf32> bias %b -> tensor<?x64xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[Q:.*]] = gpt.split_heads %[[QKV]]#0
// CHECK-NEXT:  %[[K:.*]] = gpt.split_heads %[[QKV]]#1
// CHECK-NEXT:  %[[V:.*]] = gpt.split_heads %[[QKV]]#2
// CHECK-NEXT:  %[[O:.*]] = gpt.flash_attention %[[Q]], %[[K]], %[[V]] mask %[[MASK]] scale 0.35355338{{[0-9]*}} : {{.*}} mask tensor<?x?xf32>
// CHECK-NEXT:  %[[C:.*]] = gpt.merge_heads %[[O]]
// CHECK-NEXT:  %[[S1:.*]] = gpt.fused_gemm %[[C]] : tensor<?x64xf32> residual %[[X]] section %wo : tensor<64x64xf32> bias %b epilogue (%[[ACC:[a-z]+]], %[[R:[a-z]+]]) {
// CHECK-NEXT:    %[[Y:.*]] = arith.addf %[[R]], %[[ACC]] : f32
// CHECK-NEXT:    gpt.yield %[[Y]]
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[X1:.*]] = gpt.layer_norm %[[S1]], %a_2, %b eps 1.0e-6
// CHECK-NEXT:  %[[H:.*]] = gpt.fused_gemm %[[X1]] : tensor<?x64xf32> section %w1 : tensor<256x64xf32> bias %b1 epilogue (%[[ACC1:[a-z]+]]) {
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[RELU:.*]] = arith.maximumf %[[ACC1]], %[[ZERO]] : f32
// CHECK-NEXT:    gpt.yield %[[RELU]]
// CHECK-NEXT:  } -> tensor<?x256xf32>
// CHECK-NEXT:  %[[S2:.*]] = gpt.fused_gemm %[[H]] : tensor<?x256xf32> residual %[[X1]] section %w2 : tensor<64x256xf32> bias %b epilogue
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    gpt.yield
// CHECK-NEXT:  } -> tensor<?x64xf32>
// CHECK-NEXT:  %[[OUT:.*]] = gpt.layer_norm %[[S2]], %a_2, %b eps 1.0e-6
// CHECK-NEXT:  return %[[OUT]]
module attributes {gpt.name = "annotated"} {
  ml_program.global private @wq(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wk(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wv(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @wo(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
  ml_program.global private @w1(#ml_program.extern<tensor<256x64xf32>>) : tensor<256x64xf32>
  ml_program.global private @w2(#ml_program.extern<tensor<64x256xf32>>) : tensor<64x256xf32>
  ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  ml_program.global private @b1(#ml_program.extern<tensor<256xf32>>) : tensor<256xf32>
  ml_program.global private @a_2(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
  func.func @layer(%x: tensor<?x64xf32> {gpt.arg = "x"}, %mask: tensor<?x?xf32> {gpt.arg = "mask"}) -> (tensor<?x64xf32> {gpt.result = "y"}) {
    %wq = ml_program.global_load_const @wq : tensor<64x64xf32>
    %wk = ml_program.global_load_const @wk : tensor<64x64xf32>
    %wv = ml_program.global_load_const @wv : tensor<64x64xf32>
    %wo = ml_program.global_load_const @wo : tensor<64x64xf32>
    %w1 = ml_program.global_load_const @w1 : tensor<256x64xf32>
    %w2 = ml_program.global_load_const @w2 : tensor<64x256xf32>
    %b = ml_program.global_load_const @b : tensor<64xf32>
    %b1 = ml_program.global_load_const @b1 : tensor<256xf32>
    %a_2 = ml_program.global_load_const @a_2 : tensor<64xf32>

    // x @ W^T + b, the bias added by an op of its own.
    %q0 = gpt.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %qb = gpt.broadcast %b like %q0 : tensor<64xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
    %q = arith.addf %q0, %qb : tensor<?x64xf32>
    %k = gpt.linear %x, %wk bias %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %v = gpt.linear %x, %wv bias %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %qh = gpt.split_heads %q : tensor<?x64xf32> -> tensor<8x?x8xf32>
    %kh = gpt.split_heads %k : tensor<?x64xf32> -> tensor<8x?x8xf32>
    %vh = gpt.split_heads %v : tensor<?x64xf32> -> tensor<8x?x8xf32>
    %scores = gpt.matmul %qh, %kh transpose_b : tensor<8x?x8xf32>, tensor<8x?x8xf32> -> tensor<8x?x?xf32>
    %d_k = arith.constant dense<2.82842708> : tensor<1xf32>
    %root = gpt.broadcast %d_k like %scores : tensor<1xf32>, tensor<8x?x?xf32> -> tensor<8x?x?xf32>
    %scaled = arith.divf %scores, %root : tensor<8x?x?xf32>
    %wide = gpt.broadcast %mask like %scores : tensor<?x?xf32>, tensor<8x?x?xf32> -> tensor<8x?x?xf32>
    %masked = arith.addf %scaled, %wide : tensor<8x?x?xf32>
    %p_attn = gpt.softmax %masked : tensor<8x?x?xf32>
    %drop = gpt.dropout %p_attn p 0.1 : tensor<8x?x?xf32>
    %o = gpt.matmul %drop, %vh : tensor<8x?x?xf32>, tensor<8x?x8xf32> -> tensor<8x?x8xf32>
    %c = gpt.merge_heads %o : tensor<8x?x8xf32> -> tensor<?x64xf32>
    %attn = gpt.linear %c, %wo bias %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %s1 = arith.addf %x, %attn : tensor<?x64xf32>
    %x1 = gpt.layer_norm %s1, %a_2, %b eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>

    %h = gpt.linear %x1, %w1 bias %b1 : tensor<?x64xf32>, tensor<256x64xf32>, tensor<256xf32> -> tensor<?x256xf32>
    %none = arith.constant dense<0.0> : tensor<1xf32>
    %zero = gpt.broadcast %none like %h : tensor<1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
    %relu = arith.maximumf %h, %zero : tensor<?x256xf32>
    %f = gpt.linear %relu, %w2 bias %b : tensor<?x256xf32>, tensor<64x256xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %s2 = arith.addf %x1, %f : tensor<?x64xf32>
    %y = gpt.layer_norm %s2, %a_2, %b eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    return %y : tensor<?x64xf32>
  }
}
