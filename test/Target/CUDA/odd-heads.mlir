// REQUIRES: gptc
// A head of 255 channels and panels of 16 features meet every 4080 columns: eight rows of them fit a block of sm_80, four one of sm_86.
// RUN: gptc %s --target=cuda -march=sm_80 --emit=cu | FileCheck %s --check-prefix=SM80
// RUN: gptc %s --target=cuda -march=sm_86 --emit=cu | FileCheck %s --check-prefix=SM86
module attributes {gpt.name = "one", gpt.context = 128 : i64} {
  ml_program.global private @emb(#ml_program.extern<tensor<255x255xf32>>) : tensor<255x255xf32>
  ml_program.global private @wq(#ml_program.extern<tensor<255x255xf32>>) : tensor<255x255xf32>
  ml_program.global private @wk(#ml_program.extern<tensor<255x255xf32>>) : tensor<255x255xf32>
  ml_program.global private @wv(#ml_program.extern<tensor<255x255xf32>>) : tensor<255x255xf32>
  ml_program.global private @head(#ml_program.extern<tensor<255x255xf32>>) : tensor<255x255xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x255xf32> {gpt.result = "logits"}) {
    %emb = ml_program.global_load_const @emb : tensor<255x255xf32>
    %wq = ml_program.global_load_const @wq : tensor<255x255xf32>
    %wk = ml_program.global_load_const @wk : tensor<255x255xf32>
    %wv = ml_program.global_load_const @wv : tensor<255x255xf32>
    %head = ml_program.global_load_const @head : tensor<255x255xf32>
    %x = gpt.embedding %emb, %tokens : tensor<255x255xf32>, tensor<?xi32> -> tensor<?x255xf32>
    %q = gpt.linear %x, %wq : tensor<?x255xf32>, tensor<255x255xf32> -> tensor<?x255xf32>
    %k = gpt.linear %x, %wk : tensor<?x255xf32>, tensor<255x255xf32> -> tensor<?x255xf32>
    %v = gpt.linear %x, %wv : tensor<?x255xf32>, tensor<255x255xf32> -> tensor<?x255xf32>
    %qh = gpt.split_heads %q : tensor<?x255xf32> -> tensor<1x?x255xf32>
    %kh = gpt.split_heads %k : tensor<?x255xf32> -> tensor<1x?x255xf32>
    %vh = gpt.split_heads %v : tensor<?x255xf32> -> tensor<1x?x255xf32>
    %s = gpt.matmul %qh, %kh transpose_b : tensor<1x?x255xf32>, tensor<1x?x255xf32> -> tensor<1x?x?xf32>
    %m = gpt.causal_mask %s : tensor<1x?x?xf32>
    %p = gpt.softmax %m : tensor<1x?x?xf32>
    %o = gpt.matmul %p, %vh : tensor<1x?x?xf32>, tensor<1x?x255xf32> -> tensor<1x?x255xf32>
    %c = gpt.merge_heads %o : tensor<1x?x255xf32> -> tensor<?x255xf32>
    %y = gpt.linear %c, %head : tensor<?x255xf32>, tensor<255x255xf32> -> tensor<?x255xf32>
    return %y : tensor<?x255xf32>
  }
}

// SM80: // Launch: d0 <= 1: grid (d0, 3, 1), 256 threads, 18368 bytes
// SM80: // Launch: grid (ceil(d0 / 8), 3, 1), 256 threads, 146944 bytes
// SM80: using Tile = gptc::GemvTile<8, 4080, 1, 255>;
// SM86: // Launch: grid (ceil(d0 / 4), 3, 1), 256 threads, 73472 bytes
// SM86: using Tile = gptc::GemvTile<4, 4080, 1, 255>;
