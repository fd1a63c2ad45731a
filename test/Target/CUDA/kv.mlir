// REQUIRES: gptc
// The element of the KV cache: the precision's, if --kv does not say another. A step entry of the model's own says it.
// RUN: split-file %s %t
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu | FileCheck %s --check-prefix=BF16
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu --precision=f16 | FileCheck %s --check-prefix=F16
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu --precision=f32 | FileCheck %s --check-prefix=F32
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu --kv=f32 | FileCheck %s --check-prefix=F32
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu --precision=f32 --kv=f16 | FileCheck %s --check-prefix=F16
// RUN: gptc %t/forward.mlir --target=cuda --emit=cu -O0 | FileCheck %s --check-prefix=UNFUSED
// RUN: gptc %t/step.mlir --target=cuda --emit=cu | FileCheck %s --check-prefix=F32
// RUN: not gptc %t/step.mlir --target=cuda --emit=cu --kv=bf16 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not gptc %t/narrow.mlir --emit=kernels 2>&1 | FileCheck %s --check-prefix=CPU

//--- forward.mlir
func.func @forward(%q: tensor<?xi32>) -> tensor<?x32xf32> {
  %t = ml_program.global_load_const @t : tensor<32x32xf32>
  %x = gpt.embedding %t, %q : tensor<32x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %h = gpt.split_heads %x : tensor<?x32xf32> -> tensor<2x?x16xf32>
  %s = gpt.matmul %h, %h transpose_b : tensor<2x?x16xf32>, tensor<2x?x16xf32> -> tensor<2x?x?xf32>
  %m = gpt.causal_mask %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %h : tensor<2x?x?xf32>, tensor<2x?x16xf32> -> tensor<2x?x16xf32>
  %c = gpt.merge_heads %o : tensor<2x?x16xf32> -> tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}
ml_program.global private @t(#ml_program.extern) : tensor<32x32xf32> {gpt.stored = #gpt.stored<"", "t", f32>}

//--- step.mlir
!cache = !gpt.kv_cache<1 x 2 x 16, page 64, f32>
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %c: !cache) -> (tensor<?x32xf32>, !cache) {
  %t = ml_program.global_load_const @t : tensor<32x32xf32>
  %x = gpt.embedding %t, %tokens : tensor<32x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %h = gpt.split_heads %x : tensor<?x32xf32> -> tensor<2x?x16xf32>
  %c1 = gpt.kv_append %c, %h, %h at %positions, %sequences layer 0 : !cache, tensor<2x?x16xf32>, tensor<?xi32>
  %o = gpt.flash_attention %x cache %c1 at %positions, %sequences layer 0 causal scale 0.25 : tensor<?x32xf32>, !cache
  %y = gpt.select_rows %o, %rows : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %c1 : tensor<?x32xf32>, !cache
}
ml_program.global private @t(#ml_program.extern) : tensor<32x32xf32> {gpt.stored = #gpt.stored<"", "t", f32>}

//--- narrow.mlir
!cache = !gpt.kv_cache<1 x 2 x 16, page 64, f16>
func.func @append(%c: !cache, %h: tensor<2x?x16xf32>, %p: tensor<?xi32>) -> !cache {
  %c1 = gpt.kv_append %c, %h, %h at %p, %p layer 0 : !cache, tensor<2x?x16xf32>, tensor<?xi32>
  return %c1 : !cache
}

// BF16: gptc::kv_append<256, gptc::Cache<gptc::Bf16, 1, 2, 16, 64>>(
// BF16: gptc::decode_split<Tile, gptc::Cache<gptc::Bf16, 1, 2, 16, 64>>(
// BF16: gptc::attention_paged<Tile, gptc::Cache<gptc::Bf16, 1, 2, 16, 64>>(
// F16: gptc::kv_append<256, gptc::Cache<gptc::F16, 1, 2, 16, 64>>(
// F16: gptc::attention_paged<Tile, gptc::Cache<gptc::F16, 1, 2, 16, 64>>(
// F32: gptc::kv_append<256, gptc::Cache<float, 1, 2, 16, 64>>(
// F32: gptc::attention_paged<Tile, gptc::Cache<float, 1, 2, 16, 64>>(
// UNFUSED: gptc::kv_read<256, gptc::Cache<gptc::Bf16, 1, 2, 16, 64>>(
// OTHER: step.mlir:2:1: error: 'func.func' op --kv=bf16: expected a cache of bf16, got '!gpt.kv_cache<1 x 2 x 16, page 64, f32>'
// CPU: narrow.mlir:3:9: error: 'gpt.kv_append' op expected a KV cache of f32 for the CPU target, got 'f16'; compile with --kv=f32
