// REQUIRES: gptc
// An LM head whose argmax is in its GEMM: the section returns its value, the largest of each block is kept, a kernel of its own merges the blocks.
// RUN: gptc %s --target=cuda --emit=cu | FileCheck %s
module attributes {gpt.name = "one"} {
  ml_program.global private @head(#ml_program.extern) : tensor<300x64xf32> {gpt.stored = #gpt.stored<"", "head", bf16>}
  func.func @next(%x: tensor<?x64xf32>) -> tensor<?xi32> {
    %w = ml_program.global_load_const @head : tensor<300x64xf32>
    %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<300x64xf32> -> tensor<?x300xf32>
    %capped = gpt.softcap %y at 30.0 : tensor<?x300xf32>
    %t = gpt.argmax %capped : tensor<?x300xf32> -> tensor<?xi32>
    return %t : tensor<?xi32>
  }
}

// CHECK: ===- argmax.cuh
// CHECK: ===- epilogue.cuh
// CHECK: the section of 300 features, of which the largest of each 128 is kept.
// CHECK-NEXT: struct [[S:.*]]_section0 {
// CHECK-NEXT: static constexpr int k = 64, features = 300, lanes = 1, argmax = 128;
// CHECK: float *out0;
// CHECK-NEXT: int *out1;
// CHECK: __device__ float operator()(const float *tile, long long row,
// CHECK-NEXT:{{^}}                              int column) const {
// CHECK-NEXT: const float acc = tile[0];
// CHECK-NEXT: const float capped = gptc::softcap(acc, 30.0f);
// CHECK-NEXT: return capped;
// CHECK-NEXT: }
// CHECK-NEXT: __device__ void keep(long long row, int block,
// CHECK-NEXT: gptc::Best best) const {
// CHECK-NEXT: out0[row * 3 + block] = best.value;
// CHECK-NEXT: out1[row * 3 + block] = best.index;
// Tiles hold whole blocks.
// CHECK: using Tile = gptc::GemvTile<1, 128,
// CHECK: using Tile = gptc::GemvTile<8, 128,
// CHECK: using Tile = gptc::MmaTile<gptc::Bf16, 64, 128, 1, 3>;
// CHECK: {{^}}merge_argmax_c3(
// CHECK: gptc::merge_argmax<128>(values, columns, out, 3);
