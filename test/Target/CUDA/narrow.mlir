// REQUIRES: gptc, nvcc
// Rows that only a GEMM reads lie in memory in its element: they are copied to shared memory like weights of that element. Workspace and
// manifest say so; -O0 and f32 keep f32.
// RUN: gptc %s --target=cuda --emit=cu | FileCheck %s
// RUN: gptc %s --target=cuda --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: gptc %s --target=cuda --emit=cu -O0 | FileCheck %s --check-prefix=WIDE
// RUN: gptc %s --target=cuda --emit=cu --precision=tf32 | FileCheck %s --check-prefix=WIDE
// RUN: rm -rf %t && gptc %s --target=cuda --no-weights -o %t && FileCheck %s --check-prefix=MANIFEST < %t/manifest.json
module attributes {gpt.name = "one"} {
  ml_program.global private @g(#ml_program.extern) : tensor<64xf32>
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", bf16>}
  func.func @project(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
    %g = ml_program.global_load_const @g : tensor<64xf32>
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
    %y = gpt.linear %n, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    return %y : tensor<?x96xf32>
  }
}

// CHECK: {{^}}rms_norm_c64(
// CHECK-NEXT: const float *__restrict__ x,
// CHECK-NEXT: const float *__restrict__ gamma,
// CHECK-NEXT: gptc::Bf16 *__restrict__ out,
// CHECK: {{^}}gemm_k64_n96_bf16(
// CHECK-NEXT: const gptc::Bf16 *__restrict__ x,
// CHECK: float *__restrict__ out0,
// Nothing is rounded on the way to the tensor cores.
// PTX: .entry gemm_k64_n96_bf16(
// PTX-NOT: cvt.rn.bf16
// PTX: mma.sync
// WIDE-NOT: gptc::Bf16 *
// MANIFEST: "workspace_bytes": [
// MANIFEST-NEXT: "128 * d0"
// MANIFEST: "name": "rms_norm_c64"
// MANIFEST: "results": [
// MANIFEST: "dtype": "bf16"
