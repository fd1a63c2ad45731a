// REQUIRES: gptc, nvcc
// Few rows read weights 16 bytes a lane, all of a warp's consecutive, several strips under way; 4-bit codes become numbers where they lie, without
// a conversion; nothing is spilled. The columns are weights of a lane in the loop, its streaming loads, instructions per weight.
// RUN: gptc %s --target=cuda --emit=ptx | %python %root/tools/bench/ptx_loops.py | FileCheck %s --strict-whitespace
// RUN: gptc %s --target=cuda --emit=fatbin -v 2>&1 >/dev/null | FileCheck %s --check-prefix=SPILL
module attributes {gpt.name = "one"} {
  ml_program.global private @f32(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "f32", f32>}
  ml_program.global private @bf16(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "bf16", bf16>}
  ml_program.global private @f16(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "f16", f16>}
  ml_program.global private @q8_0(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "q8_0", q8_0>}
  ml_program.global private @q4_0(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "q4_0", q4_0>}
  ml_program.global private @q4_1(#ml_program.extern) : tensor<128x4096xf32> {gpt.stored = #gpt.stored<"", "q4_1", q4_1>}
  func.func @project(%x: tensor<?x4096xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>) {
    %w_f32 = ml_program.global_load_const @f32 : tensor<128x4096xf32>
    %f32 = gpt.linear %x, %w_f32 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    %w_bf16 = ml_program.global_load_const @bf16 : tensor<128x4096xf32>
    %bf16 = gpt.linear %x, %w_bf16 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    %w_f16 = ml_program.global_load_const @f16 : tensor<128x4096xf32>
    %f16 = gpt.linear %x, %w_f16 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    %w_q8_0 = ml_program.global_load_const @q8_0 : tensor<128x4096xf32>
    %q8_0 = gpt.linear %x, %w_q8_0 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    %w_q4_0 = ml_program.global_load_const @q4_0 : tensor<128x4096xf32>
    %q4_0 = gpt.linear %x, %w_q4_0 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    %w_q4_1 = ml_program.global_load_const @q4_1 : tensor<128x4096xf32>
    %q4_1 = gpt.linear %x, %w_q4_1 : tensor<?x4096xf32>, tensor<128x4096xf32> -> tensor<?x128xf32>
    return %f32, %bf16, %f16, %q8_0, %q4_0, %q4_1 : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
  }
}

// CHECK: gemm_k4096_n128_rows1 {{ *}}16 {{ *}}4x16 {{ *}}{{[23]\.[0-9]+}}  {{.*}}
// CHECK: gemm_k4096_n128_bf16_rows1 {{ *}}32 {{ *}}4x16 {{ *}}{{[23]\.[0-9]+}}  {{.*}}
// CHECK: gemm_k4096_n128_f16_rows1 {{ *}}32 {{ *}}4x16 {{ *}}{{[23]\.[0-9]+}}  {{.*}}
// Codes and scales.
// CHECK: gemm_k4096_n128_q8_0_rows1 {{ *}}64 {{ *}}8x16 {{ *}}{{[45]\.[0-9]+}}  {{.*}}
// CHECK: gemm_k4096_n128_q4_0_rows1 {{ *}}128 {{ *}}4x16 4x8 {{ *}}{{[34]\.[0-9]+}}  {{.*}}
// Codes, scales and minimums.
// CHECK: gemm_k4096_n128_q4_1_rows1 {{ *}}128 {{ *}}4x16 8x8 {{ *}}{{[345]\.[0-9]+}}  {{.*}}
// SPILL-COUNT-18: registers, 0 bytes spilled
