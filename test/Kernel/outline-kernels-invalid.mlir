// RUN: gptc-opt %s --gpt-outline-kernels --split-input-file --verify-diagnostics

func.func @weight_is_argument(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{expected operand 1 to be a weight}}
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

func.func @constant_is_no_splat(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // expected-error @+1 {{expected constant operand 1 to have one value}}
  %y = arith.addf %x, %c : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @scalar(%x: f32) -> f32 {
  // expected-error @+1 {{has no kernel: expected tensors, got 'f32'}}
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// -----

// expected-error @+1 {{expected a result: an entry without one computes nothing}}
func.func @no_result(%x: tensor<?x8xf32>) {
  return
}

// -----

func.func @slice_of_activation(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  // expected-error @+1 {{has no kernel}}
  %y = tensor.extract_slice %x[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

func.func @empty(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  // expected-error @+1 {{expected dimensions from 1 to 2147483647, got 'tensor<?x0xf32>'}}
  %y = gpt.softmax %x : tensor<?x0xf32>
  return %y : tensor<?x0xf32>
}

// -----

func.func @huge(%x: tensor<1099511627776xf32>) -> tensor<1099511627776xf32> {
  // expected-error @+1 {{expected dimensions from 1 to 2147483647, got 'tensor<1099511627776xf32>'}}
  %y = gpt.silu %x : tensor<1099511627776xf32>
  return %y : tensor<1099511627776xf32>
}

// -----

func.func @expand_into_two(%x: tensor<6xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{has no kernel: expected gpt ops, arith or math ops on tensors, or tensor.expand_shape by dimensions of 1}}
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
