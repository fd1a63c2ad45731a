// RUN: gptc-opt %s --gpt-verify-outlined --verify-diagnostics

func.func @left_over(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{stands in an entry after outlining}}
  // expected-note @+1 {{gpt-outline-kernels should have removed it}}
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
