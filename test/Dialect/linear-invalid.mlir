// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @scalar(%x: tensor<f32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[linear-C1] expected x of rank 1 or more, got 'tensor<f32>'}}
  %0 = gpt.linear %x, %w : tensor<f32>, tensor<12x8xf32> -> tensor<12xf32>
  return
}

// -----

func.func @weight_rank(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{[linear-C1] expected a weight of rank 2, got 'tensor<8xf32>'}}
  %0 = gpt.linear %x, %w : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @features(%x: tensor<?x8xf32>, %w: tensor<8x12xf32>) {
  // expected-error @+1 {{[linear-C2] expected a weight with 8 input features ([out, in]), got 'tensor<8x12xf32>'}}
  %0 = gpt.linear %x, %w : tensor<?x8xf32>, tensor<8x12xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @in_out_features(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[linear-C2] expected a weight with 8 input features ([in, out]), got 'tensor<12x8xf32>'}}
  %0 = gpt.linear %x, %w in_out : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @bias(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{[linear-C3] expected a bias of shape [12], got 'tensor<8xf32>'}}
  %0 = gpt.linear %x, %w bias %b : tensor<?x8xf32>, tensor<12x8xf32>, tensor<8xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @result(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  // expected-error @+1 {{[linear-C4] expected a result of shape [?, 12], got 'tensor<?x8xf32>'}}
  %0 = gpt.linear %x, %w : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @matmul_rank(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) {
  // expected-error @+1 {{[matmul-C1] expected a of rank 3 or more, got 'tensor<?x8xf32>'}}
  %0 = gpt.matmul %a, %b transpose_b : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @groups_zero(%a: tensor<6x?x4xf32>, %b: tensor<3x?x4xf32>) {
  // expected-error @+1 {{[matmul-C2] expected groups of at least 1, got 0}}
  %0 = gpt.matmul %a, %b transpose_b groups 0 : tensor<6x?x4xf32>, tensor<3x?x4xf32> -> tensor<6x?x?xf32>
  return
}

// -----

func.func @groups_divide(%a: tensor<6x?x4xf32>, %b: tensor<1x?x4xf32>) {
  // expected-error @+1 {{[matmul-C2] expected groups to divide the 6 heads of a, got 4}}
  %0 = gpt.matmul %a, %b transpose_b groups 4 : tensor<6x?x4xf32>, tensor<1x?x4xf32> -> tensor<6x?x?xf32>
  return
}

// -----

func.func @heads(%a: tensor<6x?x4xf32>, %b: tensor<6x?x4xf32>) {
  // expected-error @+1 {{[matmul-C3] expected heads of b to be 3, got 6}}
  %0 = gpt.matmul %a, %b transpose_b groups 2 : tensor<6x?x4xf32>, tensor<6x?x4xf32> -> tensor<6x?x?xf32>
  return
}

// -----

func.func @batch(%a: tensor<2x6x?x4xf32>, %b: tensor<3x6x?x4xf32>) {
  // expected-error @+1 {{[matmul-C4] expected batch dimension 0 of b to be 2, got 3}}
  %0 = gpt.matmul %a, %b transpose_b : tensor<2x6x?x4xf32>, tensor<3x6x?x4xf32> -> tensor<2x6x?x?xf32>
  return
}

// -----

func.func @summed(%a: tensor<6x?x4xf32>, %b: tensor<6x5x4xf32>) {
  // expected-error @+1 {{[matmul-C5] expected the summed dimension of b to be 4, got 5}}
  %0 = gpt.matmul %a, %b : tensor<6x?x4xf32>, tensor<6x5x4xf32> -> tensor<6x?x4xf32>
  return
}

// -----

func.func @product(%a: tensor<6x?x4xf32>, %b: tensor<6x5x4xf32>) {
  // expected-error @+1 {{[matmul-C6] expected a result of shape [6, ?, 5], got 'tensor<6x?x4xf32>'}}
  %0 = gpt.matmul %a, %b transpose_b : tensor<6x?x4xf32>, tensor<6x5x4xf32> -> tensor<6x?x4xf32>
  return
}
