// RUN: gptc-opt %s --gpt-select-schedule="march=sm_86 precision=bf16" -split-input-file -verify-diagnostics

// More stages than the shared memory of a block holds.
// expected-error @below {{schedule: expected a tile to take at most 101376 bytes of shared memory of a block of sm_86, got 131072}}
gpt.kernel @stages(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "bf16"}) -> tensor<?x192xf32> schedule {columns = 128 : i64, depth = 32 : i64, few_columns = 16 : i64, few_rows = 8 : i64, rows = 128 : i64, stages = 8 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// A stride that breaks a copy of 16 bytes.
// expected-error @below {{schedule: expected 'columns' to hold whole heads or blocks of an argmax, and panels of 16, whose rows are copied 16 bytes at a time: a multiple of 16, got 72}}
gpt.kernel @stride(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "bf16"}) -> tensor<?x192xf32> schedule {columns = 72 : i64, depth = 32 : i64, few_columns = 16 : i64, few_rows = 8 : i64, rows = 64 : i64, stages = 3 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// Halves of sums are exchanged, and rows of x lie in shared memory in whole pieces.
// expected-error @below {{schedule: expected 'few_rows' to be 2, 4 or 8, whose sums take at most half of a thread's 255 registers, got 6}}
gpt.kernel @few(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "bf16"}) -> tensor<?x192xf32> schedule {columns = 64 : i64, depth = 32 : i64, few_columns = 16 : i64, few_rows = 6 : i64, rows = 64 : i64, stages = 3 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// A block of an argmax in two tiles.
// expected-error @below {{schedule: expected 'columns' to hold whole heads or blocks of an argmax, and panels of 16, whose rows are copied 16 bytes at a time: a multiple of 128, got 64}}
gpt.kernel @argmax(%x: tensor<?x64xf32>, %w: tensor<300x64xf32> {gpt.storage = "bf16"}) -> (tensor<?x3xf32>, tensor<?x3xi32>) schedule {columns = 64 : i64, depth = 32 : i64, few_columns = 128 : i64, few_rows = 8 : i64, rows = 64 : i64, stages = 3 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 300, 64>, array<i64: -1, 3>, array<i64: -1, 3>]} {
  %v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  gpt.return %v, %c : tensor<?x3xf32>, tensor<?x3xi32>
}

// -----

// expected-error @below {{schedule: expected at most 65535 blocks of 'columns' in a grid, got 65536}}
gpt.kernel @grid(%x: tensor<?x64xf32>, %w: tensor<4194304x64xf32> {gpt.storage = "bf16"}) -> tensor<?x4194304xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 4194304, 64>, array<i64: -1, 4194304>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<4194304x64xf32> -> tensor<?x4194304xf32>
  gpt.return %y : tensor<?x4194304xf32>
}

// -----

// expected-error @below {{schedule: expected 'columns' to leave a thread 64 sums: at most 128, got 256}}
gpt.kernel @sums(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "bf16"}) -> tensor<?x192xf32> schedule {columns = 256 : i64, depth = 32 : i64, few_columns = 16 : i64, few_rows = 8 : i64, rows = 128 : i64, stages = 3 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// -----

// expected-error @below {{expected a head size of at most 256 for the CUDA target, got 320}}
gpt.kernel @head(%q: tensor<9x?x320xf32>, %k: tensor<3x?x320xf32>, %v: tensor<3x?x320xf32>) -> tensor<9x?x320xf32> attributes {gpt.dims = [array<i64: 9, -1, 320>, array<i64: 3, -2, 320>, array<i64: 3, -2, 320>, array<i64: 9, -1, 320>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x320xf32>, tensor<3x?x320xf32>
  gpt.return %o : tensor<9x?x320xf32>
}

// -----

// expected-error @below {{schedule: expected 'keys' to divide the cache's page of 16, got 32}}
gpt.kernel @page(%q: tensor<?x64xf32>, %c: !gpt.kv_cache<1 x 4 x 16, page 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x64xf32> schedule {few_tokens = 64 : i64, keys = 32 : i64, rows = 64 : i64, split_heads = 1 : i64, splits = 32 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64>, array<i64: -1>, array<i64: -1>, array<i64: -1, 64>]} {
  %o = gpt.flash_attention %q cache %c at %p, %s layer 0 causal scale 0.25 : tensor<?x64xf32>, !gpt.kv_cache<1 x 4 x 16, page 16, f32>
  gpt.return %o : tensor<?x64xf32>
}
