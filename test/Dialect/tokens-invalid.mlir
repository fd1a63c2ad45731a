// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @rank(%table: tensor<8xf32>, %ids: tensor<?xi32>) {
  // expected-error @+1 {{[embedding-C1] expected a table of rank 2, got 'tensor<8xf32>'}}
  %0 = gpt.embedding %table, %ids : tensor<8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return
}

// -----

func.func @width(%table: tensor<257x8xf32>, %ids: tensor<?xi32>) {
  // expected-error @+1 {{[embedding-C2] expected a result of shape [?, 8], got 'tensor<?x9xf32>'}}
  %0 = gpt.embedding %table, %ids : tensor<257x8xf32>, tensor<?xi32> -> tensor<?x9xf32>
  return
}

// -----

func.func @ids(%table: tensor<257x8xf32>, %ids: tensor<?xi64>) {
  // expected-error @+1 {{operand #1 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?xi64>'}}
  %0 = gpt.embedding %table, %ids : tensor<257x8xf32>, tensor<?xi64> -> tensor<?x8xf32>
  return
}

// -----

func.func @rows(%x: tensor<?x8xf32>, %rows: tensor<3xi32>) {
  // expected-error @+1 {{[select_rows-C2] expected a result of shape [3, 8], got 'tensor<4x8xf32>'}}
  %0 = gpt.select_rows %x, %rows : tensor<?x8xf32>, tensor<3xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @rows_rank(%x: tensor<2x?x8xf32>, %rows: tensor<3xi32>) {
  // expected-error @+1 {{[select_rows-C1] expected x of rank 2}}
  %0 = gpt.select_rows %x, %rows : tensor<2x?x8xf32>, tensor<3xi32> -> tensor<3x8xf32>
  return
}
