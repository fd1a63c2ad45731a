// Tile sizes follow from shapes and the target; kernels without tiles get none, and a given schedule is kept.
// RUN: gptc-opt %s --gpt-select-schedule=march=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: gptc-opt %s --gpt-select-schedule=march=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
// RUN: gptc-opt %s --gpt-select-schedule=march=x86-64-v2 | FileCheck %s --check-prefixes=CHECK,V2

// CHECK-LABEL: gpt.kernel @gemm
// V4-SAME: schedule {depth = 128 : i64, group = 8 : i64, panel = 32 : i64, row_block = 560 : i64, row_tile = 14 : i64, unit = 1 : i64}
// V3-SAME: schedule {depth = 256 : i64, group = 16 : i64, panel = 16 : i64, row_block = 558 : i64, row_tile = 6 : i64, unit = 1 : i64}
gpt.kernel @gemm(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// A deep K leaves fewer packed rows, and half of them where numbers lie in pairs.
// CHECK-LABEL: gpt.kernel @deep
// V4-SAME: row_block = 126 : i64
// V2-SAME: row_block = 60 : i64
gpt.kernel @deep(%x: tensor<?x4096xf32>, %w: tensor<192x4096xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> attributes {gpt.dims = [array<i64: -1, 4096>, array<i64: 192, 4096>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x4096xf32>, tensor<192x4096xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// CHECK-LABEL: gpt.kernel @attention
// CHECK-SAME: schedule {chunk = 256 : i64, key_block = 64 : i64, row_block = 48 : i64, tokens = 128 : i64}
gpt.kernel @attention(%q: tensor<9x?x64xf32>, %k: tensor<3x?x64xf32>, %v: tensor<3x?x64xf32>) -> tensor<9x?x64xf32> attributes {gpt.dims = [array<i64: 9, -1, 64>, array<i64: 3, -2, 64>, array<i64: 3, -2, 64>, array<i64: 9, -1, 64>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32>
  gpt.return %o : tensor<9x?x64xf32>
}

// CHECK-LABEL: gpt.kernel @norm
// CHECK-NOT: schedule
// CHECK: gpt.rms_norm
gpt.kernel @norm(%x: tensor<?x64xf32>, %g: tensor<64xf32> {gpt.storage = "f32"}) -> tensor<?x64xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64>, array<i64: -1, 64>]} {
  %y = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
  gpt.return %y : tensor<?x64xf32>
}

// Units of an argmax are whole blocks of its columns.
// CHECK-LABEL: gpt.kernel @argmax
// V4-SAME: schedule {depth = 128 : i64, group = 8 : i64, panel = 32 : i64, row_block = 560 : i64, row_tile = 14 : i64, unit = 4 : i64}
// V3-SAME: schedule {depth = 256 : i64, group = 16 : i64, panel = 16 : i64, row_block = 558 : i64, row_tile = 6 : i64, unit = 8 : i64}
gpt.kernel @argmax(%x: tensor<?x64xf32>, %w: tensor<300x64xf32> {gpt.storage = "f32"}) -> (tensor<?x3xf32>, tensor<?x3xi32>) attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 300, 64>, array<i64: -1, 3>, array<i64: -1, 3>]} {
  %v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  gpt.return %v, %c : tensor<?x3xf32>, tensor<?x3xi32>
}

// Sums of blocks of bytes take two registers a column; every GEMM says what its inputs are rounded to.
// RUN: gptc-opt %s --gpt-select-schedule="march=x86-64-v4 precision=int8" | FileCheck %s --check-prefix=INT8
// RUN: gptc-opt %s --gpt-select-schedule="march=x86-64-v3 precision=bf16" | FileCheck %s --check-prefix=BF16
// INT8: @gemm({{.*}}schedule {{.*}}group = 4 : i64, inputs = "int8"{{.*}}row_tile = 6 : i64
// INT8: @attention({{.*}}schedule {chunk = 256 : i64, key_block = 64 : i64, row_block = 48 : i64, tokens = 128 : i64}
// INT8: @channels({{.*}}schedule {{.*}}inputs = "int8"{{.*}}row_tile = 14 : i64
// BF16: @gemm({{.*}}schedule {{.*}}inputs = "bf16"{{.*}}row_tile = 6 : i64
gpt.kernel @channels(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "i8x4"}) -> tensor<?x192xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}
