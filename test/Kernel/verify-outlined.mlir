// RUN: gptc-opt %s --gpt-verify-outlined --split-input-file --verify-diagnostics

// What is added to a weight, and nothing else, may be a constant.
ml_program.global private @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
func.func @shifted(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %b = ml_program.global_load_const @b : tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %g = arith.addf %b, %one : tensor<4xf32>
  %y = gpt.call @scaled(%x, %g) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
gpt.kernel @scaled(%x: tensor<?x4xf32>, %g: tensor<4xf32> {gpt.storage = "f32"}) -> tensor<?x4xf32> attributes {gpt.dims = [array<i64: -1, 4>, array<i64: 4>, array<i64: -1, 4>]} {
  %y = gpt.rms_norm %x, %g eps 1.0e-6 : tensor<?x4xf32>, tensor<4xf32>
  gpt.return %y : tensor<?x4xf32>
}

// -----

func.func @constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{stands in an entry after outlining}}
  // expected-note @+1 {{gpt-outline-kernels should have removed it}}
  %one = arith.constant dense<1.0> : tensor<4xf32>
  return %one : tensor<4xf32>
}

// -----

func.func @left_over(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{stands in an entry after outlining}}
  // expected-note @+1 {{gpt-outline-kernels should have removed it}}
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
