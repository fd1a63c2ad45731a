// A GPT in plain gpt ops: vocabulary 96, context 64, 2 layers, 4 heads, width 32, computed as GPT-2 does (without biases).
// No weight says where it is stored: the host hands all of them over, by name, when it opens the compiled package.
!x = tensor<?x32xf32>    // a row for every token
!h = tensor<4x?x8xf32>   // its part in each head
!s = tensor<4x?x?xf32>   // scores of queries and keys
!qkv = tensor<?x96xf32>  !ffn = tensor<?x128xf32>  !logits = tensor<?x96xf32>
!c = tensor<32xf32>  !cc = tensor<32x32xf32>  !c3 = tensor<96x32xf32>  !c4 = tensor<128x32xf32>  !down = tensor<32x128xf32>
!wpe = tensor<64x32xf32>

module attributes {gpt.name = "picogpt", gpt.context = 64 : i64, gpt.vocab = 96 : i64} {
  ml_program.global private @wte(#ml_program.extern<!c3>) : !c3  ml_program.global private @wpe(#ml_program.extern<!wpe>) : !wpe
  ml_program.global private @ln1.0(#ml_program.extern<!c>) : !c  ml_program.global private @qkv.0(#ml_program.extern<!c3>) : !c3
  ml_program.global private @proj.0(#ml_program.extern<!cc>) : !cc  ml_program.global private @ln2.0(#ml_program.extern<!c>) : !c
  ml_program.global private @up.0(#ml_program.extern<!c4>) : !c4  ml_program.global private @down.0(#ml_program.extern<!down>) : !down
  ml_program.global private @ln1.1(#ml_program.extern<!c>) : !c  ml_program.global private @qkv.1(#ml_program.extern<!c3>) : !c3
  ml_program.global private @proj.1(#ml_program.extern<!cc>) : !cc  ml_program.global private @ln2.1(#ml_program.extern<!c>) : !c
  ml_program.global private @up.1(#ml_program.extern<!c4>) : !c4  ml_program.global private @down.1(#ml_program.extern<!down>) : !down
  ml_program.global private @ln(#ml_program.extern<!c>) : !c

  func.func @forward(%tokens: tensor<?xi32>) -> (!logits {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte : !c3  %wpe = ml_program.global_load_const @wpe : !wpe  %ln = ml_program.global_load_const @ln : !c
    %ids = gpt.positions %tokens : tensor<?xi32>
    %token = gpt.embedding %wte, %tokens : !c3, tensor<?xi32> -> !x
    %position = gpt.embedding %wpe, %ids : !wpe, tensor<?xi32> -> !x
    %x0 = arith.addf %token, %position : !x

    // Layer 0: x += proj(attention(ln1(x))), then x += down(gelu(up(ln2(x)))).
    %ln1.0 = ml_program.global_load_const @ln1.0 : !c  %qkv.0 = ml_program.global_load_const @qkv.0 : !c3
    %ln2.0 = ml_program.global_load_const @ln2.0 : !c  %proj.0 = ml_program.global_load_const @proj.0 : !cc
    %up.0 = ml_program.global_load_const @up.0 : !c4  %down.0 = ml_program.global_load_const @down.0 : !down
    %a0 = gpt.layer_norm %x0, %ln1.0 eps 1.0e-5 : !x, !c  %qkv0 = gpt.linear %a0, %qkv.0 : !x, !c3 -> !qkv
    %q0, %k0, %v0 = gpt.split %qkv0 : !qkv -> !x, !x, !x
    %qh0 = gpt.split_heads %q0 : !x -> !h  %kh0 = gpt.split_heads %k0 : !x -> !h  %vh0 = gpt.split_heads %v0 : !x -> !h
    %qk0 = gpt.matmul %qh0, %kh0 transpose_b : !h, !h -> !s  %scaled0 = gpt.scale %qk0 by 0.35355339059327379 : !s
    %masked0 = gpt.causal_mask %scaled0 : !s  %probs0 = gpt.softmax %masked0 : !s
    %heads0 = gpt.matmul %probs0, %vh0 : !s, !h -> !h  %merged0 = gpt.merge_heads %heads0 : !h -> !x
    %attn0 = gpt.linear %merged0, %proj.0 : !x, !cc -> !x  %x1 = arith.addf %x0, %attn0 : !x
    %b0 = gpt.layer_norm %x1, %ln2.0 eps 1.0e-5 : !x, !c  %up0 = gpt.linear %b0, %up.0 : !x, !c4 -> !ffn
    %act0 = gpt.gelu tanh %up0 : !ffn  %down0 = gpt.linear %act0, %down.0 : !ffn, !down -> !x
    %x2 = arith.addf %x1, %down0 : !x

    // Layer 1: x += proj(attention(ln1(x))), then x += down(gelu(up(ln2(x)))).
    %ln1.1 = ml_program.global_load_const @ln1.1 : !c  %qkv.1 = ml_program.global_load_const @qkv.1 : !c3
    %ln2.1 = ml_program.global_load_const @ln2.1 : !c  %proj.1 = ml_program.global_load_const @proj.1 : !cc
    %up.1 = ml_program.global_load_const @up.1 : !c4  %down.1 = ml_program.global_load_const @down.1 : !down
    %a1 = gpt.layer_norm %x2, %ln1.1 eps 1.0e-5 : !x, !c  %qkv1 = gpt.linear %a1, %qkv.1 : !x, !c3 -> !qkv
    %q1, %k1, %v1 = gpt.split %qkv1 : !qkv -> !x, !x, !x
    %qh1 = gpt.split_heads %q1 : !x -> !h  %kh1 = gpt.split_heads %k1 : !x -> !h  %vh1 = gpt.split_heads %v1 : !x -> !h
    %qk1 = gpt.matmul %qh1, %kh1 transpose_b : !h, !h -> !s  %scaled1 = gpt.scale %qk1 by 0.35355339059327379 : !s
    %masked1 = gpt.causal_mask %scaled1 : !s  %probs1 = gpt.softmax %masked1 : !s
    %heads1 = gpt.matmul %probs1, %vh1 : !s, !h -> !h  %merged1 = gpt.merge_heads %heads1 : !h -> !x
    %attn1 = gpt.linear %merged1, %proj.1 : !x, !cc -> !x  %x3 = arith.addf %x2, %attn1 : !x
    %b1 = gpt.layer_norm %x3, %ln2.1 eps 1.0e-5 : !x, !c  %up1 = gpt.linear %b1, %up.1 : !x, !c4 -> !ffn
    %act1 = gpt.gelu tanh %up1 : !ffn  %down1 = gpt.linear %act1, %down.1 : !ffn, !down -> !x
    %x4 = arith.addf %x3, %down1 : !x

    %y = gpt.layer_norm %x4, %ln eps 1.0e-5 : !x, !c  %logits = gpt.linear %y, %wte : !x, !c3 -> !logits
    return %logits : !logits
  }
}
