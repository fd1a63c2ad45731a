// REQUIRES: gptc
// No instruction of a higher level than asked for.
// RUN: gptc %s --emit=asm -march=x86-64-v2 | FileCheck %s --check-prefix=CHECK-V2
// RUN: gptc %s --emit=asm -march=x86-64-v3 | FileCheck %s --check-prefix=CHECK-V3
// RUN: gptc %s --emit=asm -march=x86-64-v4 | FileCheck %s --check-prefix=CHECK-V4
module attributes {gpt.name = "one"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", f16>}
  func.func @project(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    %z = gpt.gelu erf %y : tensor<?x96xf32>
    return %z : tensor<?x96xf32>
  }
}

// CHECK-V2-NOT: %{{[yz]}}mm
// CHECK-V2: one_gemm
// CHECK-V2-NOT: %{{[yz]}}mm
// CHECK-V3-NOT: %zmm
// CHECK-V3: vfmadd
// CHECK-V3-NOT: %zmm
// CHECK-V4: vfmadd{{.*}}%zmm
