// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @dynamic(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{[split-C1] expected a static last dimension, got 'tensor<?x?xf32>'}}
  %0 = gpt.split %x : tensor<?x?xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @no_parts(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split-C2] expected at least one part, got none}}
  "gpt.split"(%x) : (tensor<?x12xf32>) -> ()
  return
}

// -----

func.func @part_shape(%x: tensor<4x12xf32>) {
  // expected-error @+1 {{[split-C3] expected part 1 of shape [4, 4], got 'tensor<5x4xf32>'}}
  %0, %1 = gpt.split %x : tensor<4x12xf32> -> tensor<4x8xf32>, tensor<5x4xf32>
  return
}

// -----

func.func @too_many(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split-C4] expected parts of together 12 channels, got more}}
  %0, %1 = gpt.split %x : tensor<?x12xf32> -> tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @too_few(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split-C4] expected parts of together 12 channels, got 8}}
  %0 = gpt.split %x : tensor<?x12xf32> -> tensor<?x8xf32>
  return
}

// -----

// The sum of the parts does not wrap around.
func.func @overflow(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split-C4] expected parts of together 12 channels, got more}}
  %0, %1, %2 = gpt.split %x : tensor<?x12xf32> -> tensor<?x9223372036854775807xf32>, tensor<?x9223372036854775807xf32>, tensor<?x14xf32>
  return
}

// -----

func.func @heads_rank(%x: tensor<12xf32>) {
  // expected-error @+1 {{[split_heads-C1] expected [..., T, H*D] of rank 2 or more, got 'tensor<12xf32>'}}
  %0 = gpt.split_heads %x : tensor<12xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @heads_length(%x: tensor<5x12xf32>) {
  // expected-error @+1 {{[split_heads-C2] expected T to be 5, got 6}}
  %0 = gpt.split_heads %x : tensor<5x12xf32> -> tensor<3x6x4xf32>
  return
}

// -----

func.func @heads_batch(%x: tensor<2x5x12xf32>) {
  // expected-error @+1 {{[split_heads-C2] expected batch dimension 0 to be 2, got 1}}
  %0 = gpt.split_heads %x : tensor<2x5x12xf32> -> tensor<1x3x5x4xf32>
  return
}

// -----

func.func @heads_dynamic(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split_heads-C3] expected static H and D, got 'tensor<?x?x4xf32>'}}
  %0 = gpt.split_heads %x : tensor<?x12xf32> -> tensor<?x?x4xf32>
  return
}

// -----

func.func @heads_divide(%x: tensor<?x12xf32>) {
  // expected-error @+1 {{[split_heads-C4] expected H*D channels with H = 5 and D = 2, got 12}}
  %0 = gpt.split_heads %x : tensor<?x12xf32> -> tensor<5x?x2xf32>
  return
}

// -----

func.func @merge(%x: tensor<3x?x4xf32>) {
  // expected-error @+1 {{[merge_heads-C4] expected H*D channels with H = 3 and D = 4, got 13}}
  %0 = gpt.merge_heads %x : tensor<3x?x4xf32> -> tensor<?x13xf32>
  return
}

// -----

func.func @rope_rank(%x: tensor<?x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[rope-C4] expected x of rank 3 or more, got 'tensor<?x4xf32>'}}
  %0 = gpt.rope %x, %p <base 1.0e5, pairs half, dim 4> : tensor<?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @rope_dim(%x: tensor<3x?x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{[rope-C5] expected the head size of x to be 8, got 4}}
  %0 = gpt.rope %x, %p <base 1.0e5, pairs half, dim 8> : tensor<3x?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @rope_positions(%x: tensor<3x5x4xf32>, %p: tensor<6xi32>) {
  // expected-error @+1 {{[rope-C6] expected the number of positions to be 5, got 6}}
  %0 = gpt.rope %x, %p <base 1.0e5, pairs half, dim 4> : tensor<3x5x4xf32>, tensor<6xi32>
  return
}

// -----

func.func @rope_table(%p: tensor<6xi32>) {
  // expected-error @+1 {{[rope_table-C1] expected a result of shape [6, 2, 4], got 'tensor<6x4xf32>'}}
  %0 = gpt.rope_table %p <base 1.0e5, pairs half, dim 4> : tensor<6xi32> -> tensor<6x4xf32>
  return
}

// -----

func.func @rotate_odd(%x: tensor<3x?x5xf32>, %t: tensor<?x2x5xf32>) {
  // expected-error @+1 {{[rotate-C2] expected an even head size, got 5}}
  %0 = gpt.rotate %x, %t half : tensor<3x?x5xf32>, tensor<?x2x5xf32>
  return
}

// -----

func.func @rotate_table(%x: tensor<3x?x4xf32>, %t: tensor<?x2x6xf32>) {
  // expected-error @+1 {{[rotate-C3] expected a table of shape [?, 2, 4], got 'tensor<?x2x6xf32>'}}
  %0 = gpt.rotate %x, %t half : tensor<3x?x4xf32>, tensor<?x2x6xf32>
  return
}

// -----

func.func @rotate_rank(%x: tensor<?x4xf32>, %t: tensor<?x2x4xf32>) {
  // expected-error @+1 {{[rotate-C1] expected x of rank 3 or more, got 'tensor<?x4xf32>'}}
  %0 = gpt.rotate %x, %t half : tensor<?x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

func.func @merge_rank(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{[merge_heads-C1] expected [..., H, T, D] of rank 3, got 'tensor<?x4xf32>'}}
  %0 = gpt.merge_heads %x : tensor<?x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @merge_length(%x: tensor<3x5x4xf32>) {
  // expected-error @+1 {{[merge_heads-C2] expected T to be 6, got 5}}
  %0 = gpt.merge_heads %x : tensor<3x5x4xf32> -> tensor<6x12xf32>
  return
}

// -----

func.func @merge_dynamic(%x: tensor<3x?x?xf32>) {
  // expected-error @+1 {{[merge_heads-C3] expected static H and D, got 'tensor<3x?x?xf32>'}}
  %0 = gpt.merge_heads %x : tensor<3x?x?xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @rotary(%x: tensor<2x?x4xf32>, %cs: tensor<?x2x4xf32>) {
  // expected-error @+1 {{[rotate-C4] expected an even number of rotary channels between 2 and the head size 4, got 5}}
  %0 = gpt.rotate %x, %cs half rotary 5 : tensor<2x?x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

func.func @part_of_dynamic(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{[head_part-C1] expected x of static shape and rank 1 or more, got 'tensor<?x4xf32>'}}
  %0 = gpt.head_part %x axis 1 from 0 take 1 of 2 : tensor<?x4xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @part_axis(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{[head_part-C2] expected an axis from 0 to 1, got 2}}
  %0 = gpt.head_part %x axis 2 from 0 take 1 of 2 : tensor<8x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @part_heads(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{[head_part-C3] expected heads that divide the 8 indices of the axis, got 3}}
  %0 = gpt.head_part %x axis 0 from 0 take 1 of 3 : tensor<8x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @part_beyond(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{[head_part-C4] expected a part within a head of 4, got 2 from 3}}
  %0 = gpt.head_part %x axis 0 from 3 take 2 of 4 : tensor<8x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @part_result(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{[head_part-C5] expected a result of shape [4, 4], got 'tensor<8x2xf32>'}}
  %0 = gpt.head_part %x axis 0 from 0 take 2 of 4 : tensor<8x4xf32> -> tensor<8x2xf32>
  return
}
