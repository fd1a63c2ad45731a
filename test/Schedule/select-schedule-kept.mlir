// A schedule that fits the target is kept as it is.
// RUN: gptc-opt %s --gpt-select-schedule=march=x86-64-v4 | FileCheck %s

// CHECK: schedule {depth = 64 : i64, group = 2 : i64, panel = 32 : i64, row_block = 16 : i64, row_tile = 8 : i64, unit = 1 : i64}
gpt.kernel @gemm(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> schedule {depth = 64 : i64, group = 2 : i64, panel = 32 : i64, row_block = 16 : i64, row_tile = 8 : i64, unit = 1 : i64} attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}
