// REQUIRES: gptc
// Inputs rounded to bf16 and int8, by the CPU's dot products where they are fast, else by what every CPU of the level has.
// RUN: gptc %s --emit=asm -march=znver5 --precision=bf16 | FileCheck %s --check-prefix=DOT
// RUN: gptc %s --emit=asm -march=sapphirerapids --precision=bf16 | FileCheck %s --check-prefix=HALVES
// RUN: gptc %s --emit=asm -march=x86-64-v3 --precision=bf16 | FileCheck %s --check-prefix=V3
// RUN: gptc %s --emit=asm -march=znver5 --precision=int8 | FileCheck %s --check-prefix=BYTES
// RUN: gptc %s --emit=asm -march=x86-64-v3 --precision=int8 | FileCheck %s --check-prefix=WORDS
// RUN: gptc %s --emit=kernels -march=x86-64-v4 --precision=int8 | FileCheck %s --check-prefix=PACKED
// RUN: gptc %s --emit=llvm -march=znver5,x86-64-v3 --precision=bf16 | FileCheck %s --check-prefix=FEATURES
module attributes {gpt.name = "one"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", f16>}
  ml_program.global private @q(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "q", q4_1>}
  ml_program.global private @e(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "e", q8_0>}
  func.func @project(%x: tensor<?x64xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>) {
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %q = ml_program.global_load_const @q : tensor<96x64xf32>
    %e = ml_program.global_load_const @e : tensor<96x64xf32>
    %a = gpt.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    %b = gpt.linear %x, %q : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    %c = gpt.linear %x, %e : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    return %a, %b, %c : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  }
}

// Products of pairs; rows are rounded by the CPU's conversion.
// DOT-DAG: vcvtneps2bf16
// DOT-DAG: vdpbf16ps{{.*}}%zmm
// Halves of the pairs, by multiply-adds: each pair of weights falls apart once for all rows.
// HALVES-LABEL: micro_bf16x2_14x32_packed_acc:
// HALVES-NOT: vdpbf16ps
// HALVES-COUNT-4: {{vpslld|vpandd|vpandq|vandps}}
// HALVES: vfmadd
// V3-NOT: vdpbf16ps
// V3-LABEL: micro_bf16x2_6x16_packed_acc:
// V3: vfmadd{{.*}}%ymm
// BYTES-DAG: vpdpbusd{{.*}}%zmm
// WORDS-NOT: vpdpbusd
// WORDS: vpmaddwd{{.*}}%ymm
// WORDS-NOT: vpdpbusd
// Dense weights have a scale for each feature, blocks their own; q8_0 lies in words of four.
// PACKED-DAG: @gemm_k64_n96_i8x4({{.*}}gpt.storage = "i8x4"
// PACKED-DAG: @gemm_k64_n96_q4_1({{.*}}gpt.storage = "q4_1"
// PACKED-DAG: @gemm_k64_n96_q8_0x4({{.*}}gpt.storage = "q8_0x4"
// What open asks of the CPU: the level, and what the precision needs beyond it.
// FEATURES: avx512vl,avx512bf16,avx512vnni\00
