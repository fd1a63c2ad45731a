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
  // expected-error @+1 {{[mask-C2] expected a mask of shape [4, 5], got 'tensor<5x4xf32>'}}
  %0 = gpt.mask %s, %m : tensor<6x4x5xf32>, tensor<5x4xf32>
  return
}

// -----

func.func @mixture(%q: tensor<?x24xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>) {
  // expected-error @+1 {{[flash_attention-C1] expected k and v, or a cache with positions, sequences and a layer, got a mixture}}
  %0 = "gpt.flash_attention"(%q, %c) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 0, 0>, scale = 1.0 : f64} : (tensor<?x24xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>) -> tensor<?x24xf32>
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
  %0 = "gpt.flash_attention"(%q, %c, %p, %p) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1>, causal, layer = 0 : i64, scale = 1.0 : f64} : (tensor<?x12xf32>, !gpt.kv_cache<2 x 3 x 4, page 16, f32>, tensor<5xi32>, tensor<5xi32>) -> tensor<?x12xf32>
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

func.func @scale(%q: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[flash_attention-C8] expected a finite scale, got 0x7FF0000000000000 : f64}}
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
