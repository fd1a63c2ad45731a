// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @x_rank(%x: tensor<2x?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{expected x of rank 2, got 'tensor<2x?x8xf32>'}}
  %0 = gpt.fused_gemm %x : tensor<2x?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @x_rank_generic(%x: tensor<2x?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C1] expected x of rank 2, got 'tensor<2x?x8xf32>'}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: false>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<2x?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @flags(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C2] expected 1 in_out flags (one per weight), got 2}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: false>, in_out = array<i1: false, true>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @biases(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C2] expected 1 biases (as many as has_bias says), got 0}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: true>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @no_weight(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C2] expected at least one weight, got none}}
  "gpt.fused_gemm"(%x) <{appends = [], has_bias = array<i1>, in_out = array<i1>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0>, ropes = []}> : (tensor<?x8xf32>) -> ()
  return
}

// -----

func.func @regions(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C3] expected 1 epilogues (one per section), got 0}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: false>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @rope_kind(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C3] expected ropes of rope_pairs or unit, got "half"}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: false>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = ["half"]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @append_kind(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C3] expected appends of gpt.append, got unit}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [unit], has_bias = array<i1: false>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @weight_shape(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C4] expected weight 0 of static shape, got 'tensor<?x8xf32>'}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<?x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @in_features(%x: tensor<?x8xf32>, %w: tensor<8x12xf32>) {
  // expected-error @+1 {{[fused_gemm-C4] expected input features of weight 0 to be 8, got 12}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<8x12xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @bias_shape(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C4] expected bias of weight 0 of shape [12], got 'tensor<8xf32>'}}
  %0 = "gpt.fused_gemm"(%x, %w, %b) <{appends = [#gpt<append none>], has_bias = array<i1: true>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @lanes(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %u: tensor<16x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C5] expected lanes of equal output features 12, got 16 in weight 1}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> lanes (%w : tensor<12x8xf32>, %u : tensor<16x8xf32>) epilogue (%a, %b) {
    gpt.yield %a : f32
  } -> tensor<?x12xf32>
  return
}

// -----

func.func @no_table(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C6] expected a rope table for the sections with a rope, got none}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> rope half -> tensor<?x12xf32>
  return
}

// -----

func.func @table_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %cs: tensor<?x2x4xf32>) {
  // expected-error @+1 {{[fused_gemm-C6] expected no rope table without a rope, got one}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> rope %cs : tensor<?x2x4xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @table_shape(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %cs: tensor<?x4xf32>) {
  // expected-error @+1 {{[fused_gemm-C6] expected a rope table of shape [?, 2, ?], got 'tensor<?x4xf32>'}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> rope %cs : tensor<?x4xf32> section %w : tensor<12x8xf32> rope half -> tensor<?x12xf32>
  return
}

// -----

func.func @whole_heads(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %cs: tensor<?x2x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C6] expected the 12 output features of section 0 to be whole heads of 8}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> rope %cs : tensor<?x2x8xf32> section %w : tensor<12x8xf32> rope half -> tensor<?x12xf32>
  return
}

// -----

func.func @no_cache(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected cache with a section that appends, got none}}
  gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> append keys
  return
}

// -----

func.func @cache_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected no cache without a section that appends, got one}}
  %0, %1 = gpt.fused_gemm %x : tensor<?x8xf32> cache %c : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 0 section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @twice(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected at most one section that appends keys and one that appends values, got 2 and 0}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> at %p, %p cache %c : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 0 sections {
    %w : tensor<12x8xf32> append keys, %w : tensor<12x8xf32> append keys
  }
  return
}

// -----

func.func @append_width(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected output features of section 0, which appends, to be 12, got 16}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> at %p, %p cache %c : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 0 section %w : tensor<16x8xf32> append keys
  return
}

// -----

func.func @layer(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected layer between 0 and 1, got 2}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> at %p, %p cache %c : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 2 section %w : tensor<12x8xf32> append values
  return
}

// -----

func.func @head_size(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %cs: tensor<?x2x6xf32>, %c: !gpt.kv_cache<2 x 3 x 4, page 16, f32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[fused_gemm-C7] expected a rope table of the cache's head size 4, got 'tensor<?x2x6xf32>'}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> at %p, %p rope %cs : tensor<?x2x6xf32> cache %c : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 0 section %w : tensor<12x8xf32> rope half append keys
  return
}

// -----

func.func @outputs(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected 1 tensor results (one per value of a section that it does not append), got 0}}
  gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32>
  return
}

// -----

func.func @output_shape(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected a result of section 0 of shape [?, 12], got 'tensor<?x8xf32>'}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @residual(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C9] expected residuals beside one section or lanes, without a cache, got 2 sections}}
  %0, %1 = gpt.fused_gemm %x : tensor<?x8xf32> residual %x sections {
    %w : tensor<8x8xf32> -> tensor<?x8xf32>, %w : tensor<8x8xf32> -> tensor<?x8xf32>
  }
  return
}

// -----

func.func @arguments(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C10] expected epilogue 0 with 1 arguments (accumulators, rope, residuals), got 2}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%a, %b) {
    gpt.yield %a : f32
  } -> tensor<?x12xf32>
  return
}

// -----

func.func @foreign(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C11] expected scalar arith, math, gpt.gelu, gpt.silu and gpt.softcap ops in an epilogue, got tensor.splat}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%a) {
    // expected-note @+1 {{the op is here}}
    %t = tensor.splat %a : tensor<1xf32>
    gpt.yield %a : f32
  } -> tensor<?x12xf32>
  return
}

// -----

func.func @yields(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C12] expected epilogue 0 to end in a gpt.yield of f32 numbers, one or more}}
  gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%a) {
    gpt.yield
  }
  return
}

// -----

func.func @values(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected 2 tensor results (one per value of a section that it does not append), got 1}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%a) {
    gpt.yield %a, %a : f32, f32
  } -> tensor<?x12xf32>
  return
}

// -----

func.func @residual_row(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{[fused_gemm-C9] expected residuals of type 'tensor<?x8xf32>' or 'tensor<8xf32>', got 'tensor<4xf32>'}}
  %0 = "gpt.fused_gemm"(%x, %w, %r) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32, %b: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rotary(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %cs: tensor<?x2x6xf32>) {
  // expected-error @+1 {{[fused_gemm-C13] expected an even number of rotary channels between 2 and the head size 6, got 8}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> rope %cs : tensor<?x2x6xf32> rotary 8 section %w : tensor<12x8xf32> rope half -> tensor<?x12xf32>
  return
}

// -----

func.func @rotary_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C13] expected no rotary channels without a rope, got 2}}
  %0 = "gpt.fused_gemm"(%x, %w) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], rotary = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

// An epilogue sees only its arguments, so that a kernel can take it along.
func.func @capture(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %s: f32) {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = "gpt.fused_gemm"(%x, %w) <{appends = [#gpt<append none>], has_bias = array<i1: false>, in_out = array<i1: false>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>, ropes = [unit]}> ({
  ^bb0(%acc: f32):
    // expected-error @+1 {{'gpt.silu' op using value defined outside the region}}
    %y = gpt.silu %s : f32
    gpt.yield %acc : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @no_body(%x: tensor<?x8xf32>) {
  gpt.fused_gemm %x : tensor<?x8xf32>
  // expected-error @+1 {{expected section, sections or lanes}}
  return
}

// -----

func.func @append_word(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{expected append keys or values, got scores}}
  gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> append scores
  return
}

// -----

func.func @empty_epilogue(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{op expects a non-empty block}}
  gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%a) {} -> tensor<?x12xf32>
  return
}

// -----

func.func @norm_no_gamma(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected gamma with a norm, got none}}
  %0 = "gpt.fused_gemm"(%x, %w) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], norm = #gpt<norm_kind rms>, eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @norm_no_eps(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected eps with a norm, got none}}
  %0 = "gpt.fused_gemm"(%x, %w, %g) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], norm = #gpt<norm_kind rms>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @gamma_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected no gamma without a norm, got one}}
  %0 = "gpt.fused_gemm"(%x, %w, %g) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @rms_beta(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected no beta with the norm rms, got one}}
  %0 = gpt.fused_gemm norm(rms %g, %g eps 1.0e-5) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @sample_of_one(%x: tensor<?x1xf32>, %w: tensor<12x1xf32>, %g: tensor<1xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected at least 2 input features with the norm sample, got 1}}
  %0 = gpt.fused_gemm norm(sample %g eps 1.0e-6) %x : tensor<?x1xf32> section %w : tensor<12x1xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @norm_eps(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected an eps from 1.2e-38 to 3.4e38, got 0.0}}
  %0 = gpt.fused_gemm norm(rms %g eps 0.0) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @norm_gamma(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<12xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected gamma and beta}}
  %0 = "gpt.fused_gemm"(%x, %w, %g) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], norm = #gpt<norm_kind rms>, eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<12xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @norm_word(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected norm layer, sample or rms, got batch}}
  %0 = gpt.fused_gemm norm(batch %g eps 1.0e-5) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @eps_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected no eps without a norm, got one}}
  %0 = "gpt.fused_gemm"(%x, %w) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @beta_alone(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{[fused_gemm-C14] expected no beta without a norm, got one}}
  %0 = "gpt.fused_gemm"(%x, %w, %b) <{in_out = array<i1: false>, has_bias = array<i1: false>, ropes = [unit], appends = [#gpt<append none>], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    gpt.yield %a : f32
  }) : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<?x12xf32>
  return
}

// -----

func.func @argmax_block_8(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax over blocks of a power of two from 16 to 4096 columns, got 8}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 8 section %w : tensor<40x8xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return
}

// -----

func.func @argmax_block_100(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax over blocks of a power of two from 16 to 4096 columns, got 100}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 100 section %w : tensor<40x8xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return
}

// -----

func.func @argmax_block_8192(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax over blocks of a power of two from 16 to 4096 columns, got 8192}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 8192 section %w : tensor<40x8xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return
}

// -----

func.func @argmax_values(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax beside one section or lanes of one value, without rope and append, got 1 sections, the first of 2 values}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 16 section %w : tensor<40x8xf32> epilogue (%acc) {
    gpt.yield %acc, %acc : f32, f32
  } -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return
}

// -----

func.func @argmax_sections(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax beside one section or lanes of one value, without rope and append, got 2 sections, the first of 1 values}}
  %0:4 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 16 sections {
    %w : tensor<40x8xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>),
    %w : tensor<40x8xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  }
  return
}

// -----

func.func @argmax_rope(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>, %cs: tensor<?x2x4xf32>) {
  // expected-error @+1 {{[fused_gemm-C15] expected an argmax beside one section or lanes of one value, without rope and append, got 1 sections, the first of 1 values}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> rope %cs : tensor<?x2x4xf32> argmax 16 section %w : tensor<40x8xf32> rope half -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return
}

// -----

func.func @argmax_results(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected 2 tensor results (numbers and columns of an argmax), got 1}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 16 section %w : tensor<40x8xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @argmax_order(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected result 0 of section 0 of f32, got 'tensor<?x3xi32>'}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 16 section %w : tensor<40x8xf32> -> (tensor<?x3xi32>, tensor<?x3xf32>)
  return
}

// -----

func.func @columns_without_argmax(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected result 0 of section 0 of f32, got 'tensor<?x40xi32>'}}
  %0 = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<40x8xf32> -> tensor<?x40xi32>
  return
}

// -----

func.func @argmax_blocks(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>) {
  // expected-error @+1 {{[fused_gemm-C8] expected a result of section 0}}
  %0:2 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 16 section %w : tensor<40x8xf32> -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return
}

// -----

func.func @merge_rank(%v: tensor<3xf32>, %c: tensor<3xi32>) {
  // expected-error @+1 {{[merge_argmax-C1] expected values}}
  %0 = gpt.merge_argmax %v, %c : tensor<3xf32>, tensor<3xi32> -> tensor<3xi32>
  return
}

// -----

func.func @merge_columns(%v: tensor<?x3xf32>, %c: tensor<?x2xi32>) {
  // expected-error @+1 {{[merge_argmax-C2] expected columns}}
  %0 = gpt.merge_argmax %v, %c : tensor<?x3xf32>, tensor<?x2xi32> -> tensor<?xi32>
  return
}

// -----

func.func @merge_result(%v: tensor<4x3xf32>, %c: tensor<4x3xi32>) {
  // expected-error @+1 {{[merge_argmax-C3] expected a result}}
  %0 = gpt.merge_argmax %v, %c : tensor<4x3xf32>, tensor<4x3xi32> -> tensor<5xi32>
  return
}
