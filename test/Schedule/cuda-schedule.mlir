// Tile sizes of CUDA kernels follow from shapes, precision and the target; kernels without tiles get none.
// RUN: gptc-opt %s --gpt-select-schedule="march=sm_80 precision=f32" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: gptc-opt %s --gpt-select-schedule="march=sm_86 precision=bf16" | FileCheck %s --check-prefixes=CHECK,BF16

// CHECK-LABEL: gpt.kernel @gemm
// F32-SAME: schedule {columns = 64 : i64, depth = 16 : i64, few_columns = 16 : i64, few_rows = 8 : i64, rows = 128 : i64, stages = 1 : i64}
// Weights that tensor cores take as they are have a stage more under way; few columns make lower tiles.
// BF16-SAME: schedule {columns = 64 : i64, depth = 32 : i64, few_columns = 16 : i64, few_rows = 8 : i64, rows = 64 : i64, stages = 3 : i64}
gpt.kernel @gemm(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "bf16"}) -> tensor<?x192xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 192, 64>, array<i64: -1, 192>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<192x64xf32> -> tensor<?x192xf32>
  gpt.return %y : tensor<?x192xf32>
}

// CHECK-LABEL: gpt.kernel @head
// Many features: four panels a block for few rows.
// BF16-SAME: few_columns = 64 : i64, few_rows = 8 : i64, rows = 128 : i64, stages = 2 : i64
gpt.kernel @head(%x: tensor<?x64xf32>, %w: tensor<49152x64xf32> {gpt.storage = "q8_0"}) -> tensor<?x49152xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 49152, 64>, array<i64: -1, 49152>]} {
  %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<49152x64xf32> -> tensor<?x49152xf32>
  gpt.return %y : tensor<?x49152xf32>
}

// Tiles hold whole blocks of an argmax. Three lanes of 128 columns would leave a thread too many sums: there is no tile.
// CHECK-LABEL: gpt.kernel @argmax
// CHECK-SAME: schedule {columns = 128 : i64, {{.*}}few_columns = 128 : i64, few_rows = 8 : i64, rows = {{128|64}} : i64
gpt.kernel @argmax(%x: tensor<?x64xf32>, %w: tensor<300x64xf32> {gpt.storage = "f16"}) -> (tensor<?x3xf32>, tensor<?x3xi32>) attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 300, 64>, array<i64: -1, 3>, array<i64: -1, 3>]} {
  %v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  gpt.return %v, %c : tensor<?x3xf32>, tensor<?x3xi32>
}
// CHECK-LABEL: gpt.kernel @argmax_lanes
// CHECK-SAME: schedule {columns = 128 : i64, {{.*}}few_columns = 128 : i64, few_rows = 8 : i64, rows = 8 : i64
gpt.kernel @argmax_lanes(%x: tensor<?x64xf32>, %w: tensor<300x64xf32> {gpt.storage = "f16"}, %u: tensor<300x64xf32> {gpt.storage = "f16"}, %s: tensor<300x64xf32> {gpt.storage = "f16"}) -> (tensor<?x3xf32>, tensor<?x3xi32>) attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 300, 64>, array<i64: 300, 64>, array<i64: 300, 64>, array<i64: -1, 3>, array<i64: -1, 3>]} {
  %v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 lanes (%w : tensor<300x64xf32>, %u : tensor<300x64xf32>, %s : tensor<300x64xf32>) epilogue (%a, %b, %d) {
    %m = arith.mulf %a, %b : f32
    %n = arith.mulf %m, %d : f32
    gpt.yield %n : f32
  } -> (tensor<?x3xf32>, tensor<?x3xi32>)
  gpt.return %v, %c : tensor<?x3xf32>, tensor<?x3xi32>
}

// A large head has half of the rows, or of the keys.
// CHECK-LABEL: gpt.kernel @attention
// F32-SAME: schedule {few_tokens = 64 : i64, keys = 64 : i64, rows = 32 : i64, split_heads = 3 : i64, splits = 32 : i64}
// BF16-SAME: schedule {few_tokens = 64 : i64, keys = 32 : i64, rows = 64 : i64, split_heads = 3 : i64, splits = 32 : i64}
gpt.kernel @attention(%q: tensor<9x?x256xf32>, %k: tensor<3x?x256xf32>, %v: tensor<3x?x256xf32>) -> tensor<9x?x256xf32> attributes {gpt.dims = [array<i64: 9, -1, 256>, array<i64: 3, -2, 256>, array<i64: 3, -2, 256>, array<i64: 9, -1, 256>]} {
  %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : tensor<9x?x256xf32>, tensor<3x?x256xf32>
  gpt.return %o : tensor<9x?x256xf32>
}

// CHECK-LABEL: gpt.kernel @norm
// CHECK-NOT: schedule
// CHECK: gpt.rms_norm
gpt.kernel @norm(%x: tensor<?x64xf32>, %g: tensor<64xf32> {gpt.storage = "f32"}) -> tensor<?x64xf32> attributes {gpt.dims = [array<i64: -1, 64>, array<i64: 64>, array<i64: -1, 64>]} {
  %y = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
  gpt.return %y : tensor<?x64xf32>
}
