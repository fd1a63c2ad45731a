// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @scores(%s: tensor<4xf32>) {
  // expected-error @+1 {{[causal_mask-C1] expected scores of rank 2 or more, got 'tensor<4xf32>'}}
  %0 = gpt.causal_mask %s : tensor<4xf32>
  return
}

// -----

func.func @masked_scores(%s: tensor<4xf32>, %m: tensor<4xf32>) {
  // expected-error @+1 {{[mask-C1] expected scores of rank 2 or more, got 'tensor<4xf32>'}}
  %0 = gpt.mask %s, %m : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @mask(%s: tensor<6x4x5xf32>, %m: tensor<5x4xf32>) {
  // expected-error @+1 {{[mask-C2] expected a mask of the last dimensions of [6, 4, 5], each equal or 1, got 'tensor<5x4xf32>'}}
  %0 = gpt.mask %s, %m : tensor<6x4x5xf32>, tensor<5x4xf32>
  return
}

// -----

func.func @mixture(%q: tensor<?x24xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>) {
  // expected-error @+1 {{[flash_attention-C1] expected k and v, or a cache with positions, sequences and a layer, got a mixture}}
  %0 = "gpt.flash_attention"(%q, %c) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 0, 0, 0>, scale = 1.0 : f64} : (tensor<?x24xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>) -> tensor<?x24xf32>
  return
}

// -----

func.func @groups(%q: tensor<6x?x4xf32>, %k: tensor<3x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C2] expected groups to divide the 6 heads of q, got 4}}
  %0 = gpt.flash_attention %q, %k, %k scale 0.5 groups 4 : tensor<6x?x4xf32>, tensor<3x?x4xf32>
  return
}

// -----

func.func @groups_negative(%q: tensor<6x?x4xf32>, %k: tensor<3x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C2] expected groups of at least 1, got -2}}
  %0 = gpt.flash_attention %q, %k, %k scale 0.5 groups -2 : tensor<6x?x4xf32>, tensor<3x?x4xf32>
  return
}

// -----

func.func @heads(%q: tensor<6x?x4xf32>, %k: tensor<3x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C3] expected k of shape [6, ?, 4], got 'tensor<3x?x4xf32>'}}
  %0 = gpt.flash_attention %q, %k, %k scale 0.5 : tensor<6x?x4xf32>, tensor<3x?x4xf32>
  return
}

// -----

func.func @lengths(%q: tensor<6x?x4xf32>, %k: tensor<6x7x4xf32>, %v: tensor<6x8x4xf32>) {
  // expected-error @+1 {{[flash_attention-C3] expected v of shape [6, 7, 4], got 'tensor<6x8x4xf32>'}}
  %0 = gpt.flash_attention %q, %k, %v scale 0.5 : tensor<6x?x4xf32>, tensor<6x7x4xf32>, tensor<6x8x4xf32>
  return
}

// -----

func.func @cached_heads(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[flash_attention-C4] expected q with groups * 3 heads of 4 channels and groups = 2, got 12 channels}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 0 causal scale 0.5 groups 2 : tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  return
}

// -----

func.func @cached_rank(%q: tensor<3x?x4xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<3xi32>) {
  // expected-error @+1 {{[flash_attention-C4] expected q of rank 2, got 'tensor<3x?x4xf32>'}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 0 causal scale 0.5 : tensor<3x?x4xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  return
}

// -----

func.func @rows(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<5xi32>) {
  // expected-error @+1 {{[flash_attention-C5] expected positions and sequences of q's ? rows, got 'tensor<5xi32>'}}
  %0 = "gpt.flash_attention"(%q, %c, %p, %p) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>, causal, layer = 0 : i64, scale = 1.0 : f64} : (tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<5xi32>, tensor<5xi32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @not_causal(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[flash_attention-C6] expected causal}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 0 scale 0.5 : tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  return
}

// -----

func.func @layer(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[flash_attention-C7] expected layer between 0 and 1, got 2}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 2 causal scale 0.5 : tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  return
}

// -----

func.func @scale_in_f32(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C8] expected a scale that is finite in f32, got -9.9999999999999994E+38 : f64}}
  %0 = gpt.flash_attention %q, %q, %q scale -1.0e39 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  return
}

// -----

func.func @scale(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C8] expected a scale that is finite in f32, got 0x7FF0000000000000 : f64}}
  %0 = gpt.flash_attention %q, %q, %q scale 0x7FF0000000000000 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  return
}

// -----

func.func @result(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C9] expected a result of shape [6, ?, 4], got 'tensor<?x24xf32>'}}
  %0 = gpt.flash_attention %q, %q, %q scale 0.5 : tensor<6x?x4xf32>, tensor<6x?x4xf32> -> tensor<?x24xf32>
  return
}

// -----

func.func @types(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{expected 2 or 3 types (q, k, v), got 1}}
  %0 = gpt.flash_attention %q, %q, %q scale 0.5 : tensor<6x?x4xf32>
  return
}

// -----

func.func @append_keys(%c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %k: tensor<6x?x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[kv_append-C1] expected keys of shape [3, ?, 4], got 'tensor<6x?x4xf32>'}}
  %0 = gpt.kv_append %c, %k, %k at %p, %p layer 0 : !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<6x?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @append_positions(%c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %k: tensor<3x5x4xf32>, %p: tensor<6xi32>) {
  // expected-error @+1 {{[kv_append-C2] expected the number of positions to be 5, got 6}}
  %0 = gpt.kv_append %c, %k, %k at %p, %p layer 0 : !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<3x5x4xf32>, tensor<6xi32>
  return
}

// -----

func.func @append_layer(%c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %k: tensor<3x?x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[kv_append-C3] expected layer between 0 and 1, got -1}}
  %0 = gpt.kv_append %c, %k, %k at %p, %p layer -1 : !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<3x?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @read(%c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>) {
  // expected-error @+1 {{[kv_read-C1] expected keys of shape [3, ?, 4], got 'tensor<3x?x8xf32>'}}
  %0, %1 = gpt.kv_read %c layer 0 : !gpt.kv_cache<2 x 3 x 4, page 16, f32> -> tensor<3x?x8xf32>
  return
}

// -----

func.func @read_layer(%c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>) {
  // expected-error @+1 {{[kv_read-C2] expected layer between 0 and 1, got 2}}
  %0, %1 = gpt.kv_read %c layer 2 : !gpt.kv_cache<2 x 3 x 4, page 16, f32> -> tensor<3x?x4xf32>
  return
}

// -----

func.func @softmax(%x: tensor<f32>) {
  // expected-error @+1 {{[softmax-C1] expected x of rank 1 or more, got 'tensor<f32>'}}
  %0 = gpt.softmax %x : tensor<f32>
  return
}

// -----

func.func @mask_rank(%s: tensor<4x5xf32>, %m: tensor<1x4x5xi1>) {
  // expected-error @+1 {{[mask-C2] expected a mask of the last dimensions of [4, 5], each equal or 1, got 'tensor<1x4x5xi1>'}}
  %0 = gpt.mask %s, %m : tensor<4x5xf32>, tensor<1x4x5xi1>
  return
}

// -----

func.func @mask_fill(%s: tensor<4x5xf32>, %m: tensor<4x5xf32>) {
  // expected-error @+1 {{[mask-C3] expected fill beside a boolean mask only}}
  %0 = gpt.mask %s, %m fill -1.0e9 : tensor<4x5xf32>, tensor<4x5xf32>
  return
}

// -----

func.func @mask_fill_large(%s: tensor<4x5xf32>, %m: tensor<4x5xi1>) {
  // expected-error @+1 {{[mask-C3] expected fill below infinity in f32, got 1.0e39}}
  %0 = gpt.mask %s, %m fill 1.0e39 : tensor<4x5xf32>, tensor<4x5xi1>
  return
}

// -----

func.func @window(%s: tensor<4x5xf32>) {
  // expected-error @+1 {{[causal_mask-C2] expected a window of at least 1 key, got 0}}
  %0 = gpt.causal_mask %s window 0 : tensor<4x5xf32>
  return
}

// -----

func.func @alibi_rank(%s: tensor<4x5xf32>) {
  // expected-error @+1 {{[alibi-C1] expected scores of rank 3 or more, got 'tensor<4x5xf32>'}}
  %0 = gpt.alibi %s slopes [0.5] : tensor<4x5xf32>
  return
}

// -----

func.func @alibi_slopes(%s: tensor<2x4x5xf32>) {
  // expected-error @+1 {{[alibi-C2] expected a slope for each of the 2 heads, got 1}}
  %0 = gpt.alibi %s slopes [0.5] : tensor<2x4x5xf32>
  return
}

// -----

// One at which a bias over 2^31 positions is not finite.
func.func @alibi_steep(%s: tensor<1x4x5xf32>) {
  // expected-error @+1 {{[alibi-C2] expected slopes from -1e29 to 1e29, got 1.0e30}}
  %0 = gpt.alibi %s slopes [1.0e30] : tensor<1x4x5xf32>
  return
}

// -----

func.func @alibi_finite(%s: tensor<1x4x5xf32>) {
  // expected-error @+1 {{[alibi-C2] expected slopes from -1e29 to 1e29, got -1.0e40}}
  %0 = gpt.alibi %s slopes [-1.0e40] : tensor<1x4x5xf32>
  return
}

// -----

func.func @broadcast(%x: tensor<3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{[broadcast-C1] expected x of the last dimensions of [4, 5], each equal or 1, got 'tensor<3xf32>'}}
  %0 = gpt.broadcast %x like %y : tensor<3xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
  return
}

// -----

func.func @broadcast_shape(%x: tensor<5xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{[broadcast-C2] expected a result of shape [4, 5], got 'tensor<5x4xf32>'}}
  %0 = gpt.broadcast %x like %y : tensor<5xf32>, tensor<4x5xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @broadcast_element(%x: tensor<5xi1>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{[broadcast-C2] expected a result of 'i1' as x, got 'tensor<4x5xf32>'}}
  %0 = gpt.broadcast %x like %y : tensor<5xi1>, tensor<4x5xf32> -> tensor<4x5xf32>
  return
}

// -----

func.func @broadcast_likes(%x: tensor<5xf32>, %y: tensor<4x1xf32>, %z: tensor<3x5xf32>) {
  // expected-error @+1 {{[broadcast-C3] expected tensors after like whose dimensions, from the last on, are equal or 1, got 'tensor<4x1xf32>', 'tensor<3x5xf32>'}}
  %0 = gpt.broadcast %x like %y, %z : tensor<5xf32>, tensor<4x1xf32>, tensor<3x5xf32> -> tensor<4x5xf32>
  return
}

// -----

func.func @broadcast_like_nothing(%x: tensor<5xf32>) {
  // expected-error @+1 {{[broadcast-C3] expected a tensor after like}}
  %0 = "gpt.broadcast"(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @broadcast_joint(%x: tensor<5xf32>, %y: tensor<4x1xf32>) {
  // expected-error @+1 {{[broadcast-C2] expected a result of shape [4, 5], got 'tensor<5x5xf32>'}}
  %0 = gpt.broadcast %x like %y, %x : tensor<5xf32>, tensor<4x1xf32>, tensor<5xf32> -> tensor<5x5xf32>
  return
}

// -----

func.func @cached_mask(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>, %m: tensor<?xi1>) {
  // expected-error @+1 {{[flash_attention-C10] expected a mask in the dense form only, got one over the cache}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 0 mask %m causal scale 0.5 : tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32> mask tensor<?xi1>
  return
}

// -----

func.func @dense_mask(%q: tensor<6x?x4xf32>, %k: tensor<3x7x4xf32>, %m: tensor<3x1x7xf32>) {
  // expected-error @+1 {{[flash_attention-C11] expected a mask of the last dimensions of [6, ?, 7], each equal or 1, got 'tensor<3x1x7xf32>'}}
  %0 = gpt.flash_attention %q, %k, %k mask %m scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x7x4xf32> mask tensor<3x1x7xf32>
  return
}

// -----

func.func @window_zero(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C12] expected a window of at least 1 key, got -3}}
  %0 = gpt.flash_attention %q, %q, %q causal window -3 scale 0.5 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  return
}

// -----

func.func @window_alone(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C12] expected causal beside a window}}
  %0 = "gpt.flash_attention"(%q, %q, %q) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, window = 4 : i64, scale = 1.0 : f64} : (tensor<6x?x4xf32>, tensor<6x?x4xf32>, tensor<6x?x4xf32>) -> tensor<6x?x4xf32>
  return
}

// -----

func.func @softcap_zero(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C13] expected a cap from 1.2e-38 to 3.4e38, got 0.0}}
  %0 = gpt.flash_attention %q, %q, %q scale 0.5 softcap 0.0 : tensor<6x?x4xf32>, tensor<6x?x4xf32>
  return
}

// -----

func.func @attention_slopes(%q: tensor<?x12xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[flash_attention-C14] expected a slope for each of the 3 heads, got 2}}
  %0 = gpt.flash_attention %q cache %c at %p, %p layer 0 causal scale 0.5 alibi [0.5, 0.25] : tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>
  return
}

// -----

func.func @second_mask(%q: tensor<6x?x4xf32>, %k: tensor<3x7x4xf32>, %m: tensor<7xf32>, %n: tensor<6xi1>) {
  // expected-error @+1 {{[flash_attention-C11] expected a mask of the last dimensions of [6, ?, 7], each equal or 1, got 'tensor<6xi1>'}}
  %0 = gpt.flash_attention %q, %k, %k mask %m, %n scale 0.5 groups 2 : tensor<6x?x4xf32>, tensor<3x7x4xf32> mask tensor<7xf32>, tensor<6xi1>
  return
}

// -----

func.func @mask_types(%q: tensor<6x?x4xf32>, %m: tensor<1xf32>) {
  // expected-error @+1 {{number of operands and types do not match: got 2 operands and 1 types}}
  %0 = gpt.flash_attention %q, %q, %q mask %m, %m scale 0.5 : tensor<6x?x4xf32>, tensor<6x?x4xf32> mask tensor<1xf32>
  return
}

// -----

func.func @fills(%q: tensor<6x?x4xf32>, %m: tensor<1x1xf32>) {
  // expected-error @+1 {{[flash_attention-C15] expected fill beside a boolean mask only}}
  %0 = gpt.flash_attention %q, %q, %q mask %m, %m fill -1.0e9 scale 0.5 : tensor<6x?x4xf32>, tensor<6x?x4xf32> mask tensor<1x1xf32>, tensor<1x1xf32>
  return
}

// -----

func.func @attention_fill(%q: tensor<6x?x4xf32>, %m: tensor<1x1xf32>) {
  // expected-error @+1 {{[flash_attention-C15] expected fill beside a boolean mask only}}
  %0 = gpt.flash_attention %q, %q, %q mask %m fill -1.0e9 scale 0.5 : tensor<6x?x4xf32>, tensor<6x?x4xf32> mask tensor<1x1xf32>
  return
}

// -----

func.func @head_size(%q: tensor<6x?x?xf32>) {
  // expected-error @+1 {{[flash_attention-C3] expected q with a static head size, got 'tensor<6x?x?xf32>'}}
  %0 = gpt.flash_attention %q, %q, %q scale 0.5 : tensor<6x?x?xf32>, tensor<6x?x?xf32>
  return
}
