// REQUIRES: gptc
// What becomes of a score is a struct; the loops are building blocks of the precision.
// RUN: gptc %s --target=cuda --emit=cu --precision=f32 | FileCheck %s --check-prefixes=CHECK,F32
// RUN: gptc %s --target=cuda --emit=cu --precision=f16 | FileCheck %s --check-prefixes=CHECK,F16
module attributes {gpt.name = "one"} {
  func.func @attend(%q: tensor<4x?x40xf32>, %k: tensor<2x?x40xf32>, %v: tensor<2x?x40xf32>, %m: tensor<?x?xi1>) -> tensor<4x?x40xf32> {
    %o = gpt.flash_attention %q, %k, %v mask %m causal window 256 scale 0.125 softcap 50.0 alibi [0.5, 0.25, 0.125, 0.0625] groups 2 : tensor<4x?x40xf32>, tensor<2x?x40xf32> mask tensor<?x?xi1>
    return %o : tensor<4x?x40xf32>
  }
}

// Only the blocks in use.
// F32-NOT: ===- mma.cuh
// F32: ===- attention.cuh
// F32-NOT: ===- attention_mma.cuh
// F16-NOT: ===- attention.cuh
// F16: ===- attention_mma.cuh
// CHECK: __device__ const float attention_h4_d40_causal_window256_softcap_alibi_mask_slopes[4] = {
// CHECK-NEXT: 0.5f, 0.25f, 0.125f, 0.0625f};
// CHECK: static constexpr int groups = 2, heads = 4, splits = 32;
// CHECK-NEXT: static constexpr bool causal = true;
// CHECK-NEXT: static constexpr long long window = 256;
// CHECK-NEXT: static constexpr float scale = 0.125f;
// CHECK-NEXT: const int *mask;
// CHECK: struct MaskRow { long long mask0; };
// CHECK-NEXT: __device__ MaskRow mask_row(long long row) const {
// CHECK-NEXT: MaskRow at = {};
// CHECK-NEXT: {
// CHECK-NEXT: long long offset = 0;
// CHECK-NEXT: offset += (row % d0) * d1;
// CHECK-NEXT: at.mask0 = offset;
// CHECK-NEXT: }
// CHECK-NEXT: return at;
// CHECK: s = gptc::softcap(s, 50.0f);
// CHECK-NEXT: s = fmaf(attention_h4_d40_causal_window256_softcap_alibi_mask_slopes[head], float(int(key - query)), s);
// CHECK-NEXT: s = mask[at.mask0 + key] ? s : -gptc::infinity();
// CHECK-NEXT: return s;
// CHECK: // Launch: grid (ceil(2 * d0 / 64), 2, 1), {{(256|128)}} threads
// F32: using Tile = gptc::AttentionTile<64, 64, 40>;
// F16: using Tile = gptc::MmaAttentionTile<gptc::F16, 64, 40>;
