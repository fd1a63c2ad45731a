// RUN: gptc-opt %s --gpt-select-schedule=march=x86-64-v4 -split-input-file -verify-diagnostics

// expected-error @below {{schedule: expected 'row_tile' to fit 32 registers: at most 14, got 20}}
gpt.kernel @too_tall(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> schedule {depth = 64 : i64, group = 4 : i64, panel = 32 : i64, row_block = 40 : i64, row_tile = 20 : i64, unit = 1 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// expected-error @below {{schedule: expected a positive integer 'depth'}}
gpt.kernel @missing(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> schedule {panel = 32 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// expected-error @below {{schedule: expected 'key_block' to be the cache's page of 64, got 32}}
gpt.kernel @block(%q: tensor<9x?x64xf32>, %k: tensor<3x?x64xf32>, %v: tensor<3x?x64xf32>) -> tensor<9x?x64xf32> schedule {chunk = 256 : i64, key_block = 32 : i64, row_block = 48 : i64, tokens = 16 : i64} attributes {gpt.dims = [array<i64: 9, -1, 64>, array<i64: 3, -2, 64>, array<i64: 3, -2, 64>, array<i64: 9, -1, 64>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32>
  gpt.return %o : tensor<9x?x64xf32>
}

// -----

// expected-error @below {{schedule: expected 'chunk' to be whole blocks of 64, got 100}}
gpt.kernel @chunk(%q: tensor<9x?x64xf32>, %k: tensor<3x?x64xf32>, %v: tensor<3x?x64xf32>) -> tensor<9x?x64xf32> schedule {chunk = 100 : i64, key_block = 64 : i64, row_block = 48 : i64, tokens = 16 : i64} attributes {gpt.dims = [array<i64: 9, -1, 64>, array<i64: 3, -2, 64>, array<i64: 3, -2, 64>, array<i64: 9, -1, 64>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32>
  gpt.return %o : tensor<9x?x64xf32>
}

// -----

// expected-error @below {{schedule: expected 'row_block' to be a multiple of 48, got 40}}
gpt.kernel @row_block(%q: tensor<9x?x64xf32>, %k: tensor<3x?x64xf32>, %v: tensor<3x?x64xf32>) -> tensor<9x?x64xf32> schedule {chunk = 256 : i64, key_block = 64 : i64, row_block = 40 : i64, tokens = 16 : i64} attributes {gpt.dims = [array<i64: 9, -1, 64>, array<i64: 3, -2, 64>, array<i64: 3, -2, 64>, array<i64: 9, -1, 64>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32>
  gpt.return %o : tensor<9x?x64xf32>
}

// -----

// Threads would share a block.
// expected-error @below {{schedule: expected 'unit' to hold whole heads or blocks of an argmax: a multiple of 4, got 2}}
gpt.kernel @cut_block(%x: tensor<?x64xf32>, %w: tensor<300x64xf32> {gpt.storage = "f32"}) -> (tensor<?x3xf32>, tensor<?x3xi32>) schedule {depth = 64 : i64, group = 4 : i64, panel = 32 : i64, row_block = 224 : i64, row_tile = 14 : i64, unit = 2 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 300, 64>, array<i64: -1, 3>, array<i64: -1, 3>]} {
  %v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  gpt.return %v, %c : tensor<?x3xf32>, tensor<?x3xi32>
}

// -----

// Slices would cut blocks.
// expected-error @below {{schedule: expected 'depth' to be whole blocks of 32, got 48}}
gpt.kernel @cut_slice(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> schedule {depth = 48 : i64, group = 4 : i64, panel = 32 : i64, row_block = 28 : i64, row_tile = 14 : i64, unit = 1 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// expected-error @below {{schedule: expected 'inputs' to be "f32", "bf16" or "int8"}}
gpt.kernel @inputs(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> schedule {depth = 64 : i64, group = 4 : i64, inputs = "f16", panel = 32 : i64, row_block = 28 : i64, row_tile = 14 : i64, unit = 1 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}
