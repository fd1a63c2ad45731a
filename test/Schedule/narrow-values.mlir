// RUN: split-file %s %t
// RUN: gptc-opt %t/layer.mlir --gpt-outline-kernels --gpt-narrow-values | FileCheck %s
// RUN: gptc-opt %t/layer.mlir --gpt-outline-kernels --gpt-narrow-values=element=f16 | FileCheck %s --check-prefix=F16
// RUN: not gptc-opt %t/layer.mlir --gpt-narrow-values=element=f32 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: gptc-opt %t/argmax.mlir --gpt-outline-kernels --gpt-narrow-values | FileCheck %s --check-prefix=ARGMAX
// RUN: gptc-opt %t/missed.mlir --gpt-outline-kernels --gpt-narrow-values | FileCheck %s --check-prefix=MISSED
// ELEMENT: error: expected bf16 or f16 as the element of narrow values, got 'f32'

// Normalised rows, activated rows, queries and attention's output are read by GEMMs and attention only; the sum is a residual stream.
//--- layer.mlir
!x = tensor<?x64xf32>
!cache = !gpt.kv_cache<1 x 4 x 16, page 64, bf16>
ml_program.global private @g(#ml_program.extern) : tensor<64xf32>
ml_program.global private @w(#ml_program.extern) : tensor<64x64xf32>
ml_program.global private @u(#ml_program.extern) : tensor<128x64xf32>
ml_program.global private @d(#ml_program.extern) : tensor<64x128xf32>
func.func @layer(%x: !x, %p: tensor<?xi32>, %c: !cache) -> (!x, !cache) {
  %g = ml_program.global_load_const @g : tensor<64xf32>
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %u = ml_program.global_load_const @u : tensor<128x64xf32>
  %d = ml_program.global_load_const @d : tensor<64x128xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : !x, tensor<64xf32>
  %q = gpt.linear %n, %w : !x, tensor<64x64xf32> -> !x
  %a = gpt.flash_attention %q cache %c at %p, %p layer 0 causal scale 0.25 : !x, !cache
  %up = gpt.fused_gemm %a : !x section %u : tensor<128x64xf32> epilogue (%acc) {
    %s = gpt.silu %acc : f32
    gpt.yield %s : f32
  } -> tensor<?x128xf32>
  %y = gpt.fused_gemm %up : tensor<?x128xf32> residual %x section %d : tensor<64x128xf32> epilogue (%acc, %r) {
    %s = arith.addf %acc, %r : f32
    gpt.yield %s : f32
  } -> !x
  return %y, %c : !x, !cache
}
// CHECK: gpt.kernel @rms_norm{{.*}}(%{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<64xf32>{{.*}}) -> (tensor<?x64xf32> {gpt.element = bf16})
// CHECK: gpt.kernel @gemm_k64_n64{{.*}}(%{{.*}}: tensor<?x64xf32> {gpt.element = bf16}, %{{.*}}: tensor<64x64xf32>{{.*}}) -> (tensor<?x64xf32> {gpt.element = bf16})
// CHECK: gpt.kernel @attention{{.*}}(%{{.*}}: tensor<?x64xf32> {gpt.element = bf16}, {{.*}}) -> (tensor<?x64xf32> {gpt.element = bf16})
// CHECK: gpt.kernel @gemm_k64_n128{{.*}}(%{{.*}}: tensor<?x64xf32> {gpt.element = bf16}, {{.*}}) -> (tensor<?x128xf32> {gpt.element = bf16})
// CHECK: gpt.kernel @gemm_k128_n64{{.*}}(%{{.*}}: tensor<?x128xf32> {gpt.element = bf16}, %{{.*}}: tensor<64x128xf32>{{.*}}, %{{.*}}: tensor<?x64xf32>) -> tensor<?x64xf32>
// F16: gpt.kernel @rms_norm{{.*}} -> (tensor<?x64xf32> {gpt.element = f16})

// An LM head with its argmax reads narrow rows; the largest logits and their columns stay as they are.
//--- argmax.mlir
!x = tensor<?x64xf32>
ml_program.global private @g(#ml_program.extern) : tensor<64xf32>
ml_program.global private @head(#ml_program.extern) : tensor<300x64xf32>
func.func @next(%x: !x) -> tensor<?xi32> {
  %g = ml_program.global_load_const @g : tensor<64xf32>
  %w = ml_program.global_load_const @head : tensor<300x64xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : !x, tensor<64xf32>
  %v, %c = gpt.fused_gemm %n : !x argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  %t = gpt.merge_argmax %v, %c : tensor<?x3xf32>, tensor<?x3xi32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}
// ARGMAX: gpt.kernel @rms_norm{{.*}} -> (tensor<?x64xf32> {gpt.element = bf16})
// ARGMAX: gpt.kernel @gemm_k64_n300{{.*}}(%{{.*}}: tensor<?x64xf32> {gpt.element = bf16}, {{.*}}) -> (tensor<?x3xf32>, tensor<?x3xi32>)

// Two calls of one kernel: the second norm's rows are the entry's result, so the first one's are not narrow either, nor is what its reader
// could have. A value with a reader that adds stays wide.
//--- missed.mlir
!x = tensor<?x64xf32>
ml_program.global private @g(#ml_program.extern) : tensor<64xf32>
ml_program.global private @w(#ml_program.extern) : tensor<64x64xf32>
func.func @twice(%x: !x) -> (!x, !x) {
  %g = ml_program.global_load_const @g : tensor<64xf32>
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : !x, tensor<64xf32>
  %y = gpt.linear %n, %w : !x, tensor<64x64xf32> -> !x
  %z = arith.addf %y, %x : !x
  %m = gpt.rms_norm %z, %g eps 1.0e-5 : !x, tensor<64xf32>
  %v = gpt.linear %m, %w : !x, tensor<64x64xf32> -> !x
  return %m, %v : !x, !x
}
// MISSED-NOT: gpt.element
