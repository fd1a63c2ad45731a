// RUN: gptc-opt %s | gptc-opt | FileCheck %s
// RUN: gptc-opt %s -mlir-print-op-generic | gptc-opt | FileCheck %s

// Every op reads back as it is printed, from its own syntax and the generic one.

!cache = !gpt.kv_cache<2 x 3 x 4, page 16, f32>

// CHECK: module attributes {gpt.bos = 0 : i64, gpt.chat_template = "{{.*}}", gpt.checkpoint = "model.safetensors", gpt.context = 32 : i64, gpt.eos = 1 : i64, gpt.extra_ends = array<i64: 2, 3>, gpt.name = "tiny", gpt.tokenizer = "tokenizer.json", gpt.vocab = 257 : i64}
module attributes {gpt.name = "tiny", gpt.checkpoint = "model.safetensors", gpt.context = 32, gpt.vocab = 257,
                   gpt.tokenizer = "tokenizer.json", gpt.eos = 1, gpt.bos = 0, gpt.extra_ends = array<i64: 2, 3>,
                   gpt.chat_template = "{{ x }}"} {

// CHECK: ml_program.global private @w({{.*}}) : tensor<4x4xf32> {gpt.stored = #gpt.stored<"model.safetensors", "h.0.w", q8_0>}
ml_program.global private @w(#ml_program.extern : tensor<4x4xf32>) : tensor<4x4xf32> {gpt.stored = #gpt.stored<"model.safetensors", "h.0.w", q8_0>}

// CHECK-LABEL: @tokens
// CHECK-SAME: -> (tensor<?x8xf32> {gpt.result = "logits"})
func.func @tokens(%table: tensor<257x8xf32>, %ids: tensor<?xi32> {gpt.arg = "tokens"}, %rows: tensor<?xi32>) -> (tensor<?x8xf32> {gpt.result = "logits"}) {
  // CHECK: gpt.embedding %{{.*}}, %{{.*}} : tensor<257x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  %x = gpt.embedding %table, %ids : tensor<257x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  // CHECK: gpt.positions %{{.*}} : tensor<?xi32>
  %p = gpt.positions %ids : tensor<?xi32>
  // CHECK: gpt.select_rows %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  %y = gpt.select_rows %x, %rows : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %c: tensor<8x12xf32>, %b: tensor<12xf32>) {
  // CHECK: gpt.linear %arg0, %arg1 : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x12xf32>
  %0 = gpt.linear %x, %w : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x12xf32>
  // CHECK: gpt.linear %arg0, %arg1 bias %arg3 : tensor<?x8xf32>, tensor<12x8xf32>, tensor<12xf32> -> tensor<?x12xf32>
  %1 = gpt.linear %x, %w bias %b : tensor<?x8xf32>, tensor<12x8xf32>, tensor<12xf32> -> tensor<?x12xf32>
  // CHECK: gpt.linear %arg0, %arg2 bias %arg3 in_out : tensor<?x8xf32>, tensor<8x12xf32>, tensor<12xf32> -> tensor<?x12xf32>
  %2 = gpt.linear %x, %c bias %b in_out : tensor<?x8xf32>, tensor<8x12xf32>, tensor<12xf32> -> tensor<?x12xf32>
  return
}

// CHECK-LABEL: @heads
func.func @heads(%x: tensor<?x12xf32>, %pos: tensor<?xi32>) {
  // CHECK: gpt.split %{{.*}} : tensor<?x12xf32> -> tensor<?x8xf32>, tensor<?x4xf32>
  %a, %b = gpt.split %x : tensor<?x12xf32> -> tensor<?x8xf32>, tensor<?x4xf32>
  // CHECK: gpt.split_heads %{{.*}} : tensor<?x12xf32> -> tensor<3x?x4xf32>
  %h = gpt.split_heads %x : tensor<?x12xf32> -> tensor<3x?x4xf32>
  // CHECK: gpt.rope %{{.*}}, %{{.*}} <base 10000.0, pairs half, dim 4> : tensor<3x?x4xf32>, tensor<?xi32>
  %r = gpt.rope %h, %pos <base 10000.0, pairs half, dim 4> : tensor<3x?x4xf32>, tensor<?xi32>
  // CHECK: gpt.rope %{{.*}}, %{{.*}} <base 5.0e5, pairs adjacent, dim 4, scaling #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>>
  %s = gpt.rope %r, %pos <base 5.0e5, pairs adjacent, dim 4, scaling #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>> : tensor<3x?x4xf32>, tensor<?xi32>
  // CHECK: gpt.rope %{{.*}}, %{{.*}} <base 10000.0, pairs adjacent, dim 4, rotary 2, scaling #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>> : tensor<3x?x4xf32>
  %part = gpt.rope %r, %pos <base 10000.0, pairs adjacent, dim 4, rotary 2, scaling #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>> : tensor<3x?x4xf32>, tensor<?xi32>
  // CHECK: gpt.rope_table %{{.*}} <base 1.0e5, pairs half, dim 4> : tensor<?xi32> -> tensor<?x2x4xf32>
  %t = gpt.rope_table %pos <base 1.0e5, pairs half, dim 4> : tensor<?xi32> -> tensor<?x2x4xf32>
  // CHECK: gpt.rotate %{{.*}}, %{{.*}} half : tensor<3x?x4xf32>, tensor<?x2x4xf32>
  %u = gpt.rotate %s, %t half : tensor<3x?x4xf32>, tensor<?x2x4xf32>
  // CHECK: gpt.rotate %{{.*}}, %{{.*}} half rotary 2 : tensor<3x?x4xf32>, tensor<?x2x4xf32>
  %half = gpt.rotate %part, %t half rotary 2 : tensor<3x?x4xf32>, tensor<?x2x4xf32>
  // CHECK: gpt.argmax %{{.*}} : tensor<?x12xf32> -> tensor<?xi32>
  %best = gpt.argmax %x : tensor<?x12xf32> -> tensor<?xi32>
  // CHECK: gpt.merge_heads %{{.*}} : tensor<3x?x4xf32> -> tensor<?x12xf32>
  %m = gpt.merge_heads %u : tensor<3x?x4xf32> -> tensor<?x12xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<6x?x4xf32>, %k: tensor<3x?x4xf32>, %v: tensor<3x?x4xf32>, %add: tensor<?x?xf32>, %see: tensor<6x?x?xi1>, %keys: tensor<?xi1>, %one: tensor<1x1xf32>) {
  // CHECK: gpt.matmul %{{.*}}, %{{.*}} transpose_b groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32> -> tensor<6x?x?xf32>
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32> -> tensor<6x?x?xf32>
  // CHECK: gpt.scale %{{.*}} by 0.125 : tensor<6x?x?xf32>
  %ss = gpt.scale %s by 1.250000e-01 : tensor<6x?x?xf32>
  // CHECK: gpt.causal_mask %{{.*}} : tensor<6x?x?xf32>
  %m = gpt.causal_mask %ss : tensor<6x?x?xf32>
  // CHECK: gpt.mask %{{.*}}, %{{.*}} : tensor<6x?x?xf32>, tensor<?x?xf32>
  %m1 = gpt.mask %m, %add : tensor<6x?x?xf32>, tensor<?x?xf32>
  // CHECK: gpt.mask %{{.*}}, %{{.*}} : tensor<6x?x?xf32>, tensor<6x?x?xi1>
  %m2 = gpt.mask %m1, %see : tensor<6x?x?xf32>, tensor<6x?x?xi1>
  // CHECK: gpt.mask %{{.*}}, %{{.*}} fill -1.0e9 : tensor<6x?x?xf32>, tensor<?xi1>
  %m3 = gpt.mask %m2, %keys fill -1.0e+9 : tensor<6x?x?xf32>, tensor<?xi1>
  // CHECK: gpt.causal_mask %{{.*}} window 256 : tensor<6x?x?xf32>
  %m4 = gpt.causal_mask %m3 window 256 : tensor<6x?x?xf32>
  // CHECK: gpt.softcap %{{.*}} at 50.0 : tensor<6x?x?xf32>
  %m5 = gpt.softcap %m4 at 5.0e+1 : tensor<6x?x?xf32>
  // CHECK: gpt.alibi %{{.*}} slopes [0.5, 0.3535533905932738, 0.25, 0.1, 0.0, -2.0] : tensor<6x?x?xf32>
  %m6 = gpt.alibi %m5 slopes [0.5, 0.3535533905932738, 0.25, 0.1, 0.0, -2.0] : tensor<6x?x?xf32>
  // CHECK: gpt.broadcast %{{.*}} like %{{.*}} : tensor<1x1xf32>, tensor<6x?x?xf32> -> tensor<6x?x?xf32>
  %m7 = gpt.broadcast %one like %m6 : tensor<1x1xf32>, tensor<6x?x?xf32> -> tensor<6x?x?xf32>
  // CHECK: gpt.broadcast %{{.*}} like %{{.*}}, %{{.*}} : tensor<1x1xf32>, tensor<1x1xf32>, tensor<6x?x?xf32> -> tensor<6x?x?xf32>
  %m8 = gpt.broadcast %one like %one, %m6 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<6x?x?xf32> -> tensor<6x?x?xf32>
  // CHECK: gpt.softmax %{{.*}} : tensor<6x?x?xf32>
  %p = gpt.softmax %m7 : tensor<6x?x?xf32>
  // CHECK: gpt.log_softmax %{{.*}} : tensor<6x?x?xf32>
  %lp = gpt.log_softmax %m7 : tensor<6x?x?xf32>
  // CHECK: gpt.matmul %{{.*}}, %{{.*}} groups 2 : tensor<6x?x?xf32>, tensor<3x?x4xf32> -> tensor<6x?x4xf32>
  %o = gpt.matmul %p, %v groups 2 : tensor<6x?x?xf32>, tensor<3x?x4xf32> -> tensor<6x?x4xf32>
  // CHECK: gpt.matmul %{{.*}}, %{{.*}} : tensor<6x?x?xf32>, tensor<6x?x4xf32> -> tensor<6x?x4xf32>
  %o2 = gpt.matmul %p, %o : tensor<6x?x?xf32>, tensor<6x?x4xf32> -> tensor<6x?x4xf32>
  return
}

// CHECK-LABEL: @pointwise
func.func @pointwise(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // CHECK: gpt.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  %0 = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK: gpt.layer_norm %{{.*}}, %{{.*}} eps 1.0e-6 : tensor<?x8xf32>, tensor<8xf32>
  %1 = gpt.layer_norm %0, %g eps 1.0e-06 : tensor<?x8xf32>, tensor<8xf32>
  // CHECK: gpt.rms_norm %{{.*}}, %{{.*}} eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>
  %2 = gpt.rms_norm %1, %g eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>
  // CHECK: gpt.layer_norm %{{.*}}, %{{.*}}, %{{.*}} sample eps 1.0e-6 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  %sample = gpt.layer_norm %x, %g, %b sample eps 1.0e-6 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK: gpt.gelu erf %{{.*}} : tensor<?x8xf32>
  %3 = gpt.gelu erf %2 : tensor<?x8xf32>
  // CHECK: gpt.gelu tanh %{{.*}} : tensor<?x8xf32>
  %4 = gpt.gelu tanh %3 : tensor<?x8xf32>
  // CHECK: gpt.gelu quick %{{.*}} : tensor<?x8xf32>
  %5 = gpt.gelu quick %4 : tensor<?x8xf32>
  // CHECK: gpt.silu %{{.*}} : tensor<?x8xf32>
  %6 = gpt.silu %5 : tensor<?x8xf32>
  // CHECK: gpt.dropout %{{.*}} p 0.1 : tensor<?x8xf32>
  %7 = gpt.dropout %6 p 0.1 : tensor<?x8xf32>
  return
}

// CHECK-LABEL: @cache
func.func @cache(%c: !cache, %k: tensor<3x?x4xf32>, %v: tensor<3x?x4xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>) -> !cache {
  // CHECK: gpt.kv_append %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}}, %{{.*}} layer 1 : !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<3x?x4xf32>, tensor<?xi32>
  %d = gpt.kv_append %c, %k, %v at %pos, %seq layer 1 : !cache, tensor<3x?x4xf32>, tensor<?xi32>
  // CHECK: gpt.kv_read %{{.*}} layer 1 : !gpt.kv_cache<2 x 3 x 4, page 16, f32> -> tensor<3x?x4xf32>
  %k2, %v2 = gpt.kv_read %d layer 1 : !cache -> tensor<3x?x4xf32>
  return %d : !cache
}

// CHECK-LABEL: @flash_attention
func.func @flash_attention(%q: tensor<6x?x4xf32>, %k: tensor<3x?x4xf32>, %v: tensor<3x16x4xf32>, %x: tensor<?x24xf32>, %c: !cache, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %bias: tensor<6x?x?xf32>, %keys: tensor<1x16xi1>) {
  // CHECK: gpt.flash_attention %arg0, %arg1, %arg1 causal scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>
  %0 = gpt.flash_attention %q, %k, %k causal scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>
  // CHECK: gpt.flash_attention %arg0, %arg0, %arg0 scale -1.25 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  %1 = gpt.flash_attention %q, %q, %q scale -1.25 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  // CHECK: gpt.flash_attention %arg0, %arg1, %arg2 scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> -> tensor<6x7x4xf32>
  %2 = gpt.flash_attention %q, %k, %v scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> -> tensor<6x7x4xf32>
  // CHECK: gpt.flash_attention %arg0, %arg1, %arg1 mask %arg7 causal window 16 scale 0.5 softcap 30.0 alibi [0.5, 0.25, 0.125, 0.0, 1.0, 2.0] groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32> mask tensor<6x?x?xf32>
  %4 = gpt.flash_attention %q, %k, %k mask %bias causal window 16 scale 0.5 softcap 30.0 alibi [0.5, 0.25, 0.125, 0.0, 1.0, 2.0] groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32> mask tensor<6x?x?xf32>
  // CHECK: gpt.flash_attention %arg0, %arg1, %arg2 mask %arg8 fill -1.0e9 scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> mask tensor<1x16xi1> -> tensor<6x7x4xf32>
  %5 = gpt.flash_attention %q, %k, %v mask %keys fill -1.0e9 scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> mask tensor<1x16xi1> -> tensor<6x7x4xf32>
  // CHECK: gpt.flash_attention %arg0, %arg1, %arg2 mask %arg7, %arg8 fill -1.0e9 causal scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> mask tensor<6x?x?xf32>, tensor<1x16xi1> -> tensor<6x7x4xf32>
  %7 = gpt.flash_attention %q, %k, %v mask %bias, %keys fill -1.0e9 causal scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>, tensor<3x16x4xf32> mask tensor<6x?x?xf32>, tensor<1x16xi1> -> tensor<6x7x4xf32>
  // CHECK: gpt.flash_attention %arg3 cache %arg4 at %arg5, %arg6 layer 0 causal window 8 scale 0.5 softcap 30.0 groups 2 : tensor<?x24xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  %6 = gpt.flash_attention %x cache %c at %pos, %seq layer 0 causal window 8 scale 0.5 softcap 30.0 groups 2 : tensor<?x24xf32>, !cache
  // CHECK: gpt.flash_attention %arg3 cache %arg4 at %arg5, %arg6 layer 1 causal scale 0.5 groups 2 : tensor<?x24xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  %3 = gpt.flash_attention %x cache %c at %pos, %seq layer 1 causal scale 0.5 groups 2 : tensor<?x24xf32>, !cache
  return
}

// CHECK: gpt.kernel @gemm(%arg0: tensor<?x8xf32>, %arg1: tensor<12x8xf32> {gpt.storage = "f32"}) -> tensor<?x12xf32> schedule {rows = 14 : i64} attributes {gpt.dims = [array<i64: -1, 8>, array<i64: 12, 8>]} {
// CHECK-NEXT: %0 = gpt.linear
// CHECK-NEXT: gpt.return %0 : tensor<?x12xf32>
gpt.kernel @gemm(%x: tensor<?x8xf32>, %w: tensor<12x8xf32> {gpt.storage = "f32"}) -> tensor<?x12xf32> schedule {rows = 14} attributes {gpt.dims = [array<i64: -1, 8>, array<i64: 12, 8>]} {
  %y = gpt.linear %x, %w : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x12xf32>
  gpt.return %y : tensor<?x12xf32>
}

// CHECK-LABEL: @call
func.func @call(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) -> tensor<?x12xf32> {
  // CHECK: gpt.call @gemm(%arg0, %arg1) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  %y = gpt.call @gemm(%x, %w) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}
}

// CHECK-LABEL: func @head_part
func.func @head_part(%w: tensor<24x8xf32>) -> tensor<8x8xf32> {
  // CHECK: gpt.head_part %{{.*}} axis 0 from 4 take 4 of 12 : tensor<24x8xf32> -> tensor<8x8xf32>
  %k = gpt.head_part %w axis 0 from 4 take 4 of 12 : tensor<24x8xf32> -> tensor<8x8xf32>
  return %k : tensor<8x8xf32>
}
