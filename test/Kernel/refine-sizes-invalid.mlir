// RUN: gptc-opt %s --gpt-outline-kernels --split-input-file --verify-diagnostics

// Two static sizes of one `?`.
func.func @conflict(%s: tensor<2x?x?xf32>, %m: tensor<3xf32>, %n: tensor<4xf32>) -> tensor<2x?x?xf32> {
  %o = gpt.mask %s, %m : tensor<2x?x?xf32>, tensor<3xf32>
  // expected-error @+1 {{expected sizes that agree, got 3 and 4 for dimension 2 of 'tensor<2x?x?xf32>'}}
  %p = gpt.mask %o, %n : tensor<2x?x?xf32>, tensor<4xf32>
  return %p : tensor<2x?x?xf32>
}

// -----

func.func @groups(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>) -> tensor<?x?x?xf32> {
  // expected-error @+1 {{expected a static number of heads beside groups 2, got 'tensor<?x?x8xf32>'}}
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<?x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x?xf32>
  return %s : tensor<?x?x?xf32>
}
