// REQUIRES: gptc
// Weights of 4 and 8 bits beside rows of f32 and bf16: where sums of products of bytes are fast, rows become whole numbers of three
// or two bytes, of bf16 beside 4 bits of 12 bits; elsewhere weights become f32, few rows in a stream and many once.
// RUN: gptc %s --emit=mlir -march=sapphirerapids | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: gptc %s --emit=mlir -march=sapphirerapids --precision=bf16 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: gptc %s --emit=kernels -march=sapphirerapids | FileCheck %s --check-prefix=KERNELS
// RUN: gptc %s --emit=asm -march=sapphirerapids | FileCheck %s --check-prefix=ASM
// RUN: gptc %s --emit=mlir -march=x86-64-v4 | FileCheck %s --check-prefix=FLOATS
// RUN: gptc %s --emit=mlir -march=x86-64-v4 --precision=bf16 | FileCheck %s --check-prefix=FLOATS
// RUN: gptc %s --emit=kernels -march=x86-64-v4 | FileCheck %s --check-prefix=PLAIN
module attributes {gpt.name = "one"} {
  ml_program.global private @q(#ml_program.extern) : tensor<128x64xf32> {gpt.stored = #gpt.stored<"", "q", q4_1>}
  ml_program.global private @e(#ml_program.extern) : tensor<128x64xf32> {gpt.stored = #gpt.stored<"", "e", q8_0>}
  func.func @project(%x: tensor<?x64xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
    %q = ml_program.global_load_const @q : tensor<128x64xf32>
    %e = ml_program.global_load_const @e : tensor<128x64xf32>
    %a = gpt.linear %x, %q : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
    %b = gpt.linear %x, %e : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
    return %a, %b : tensor<?x128xf32>, tensor<?x128xf32>
  }
}

// Few rows read the codes as they lie, four panels at a time; many rows meet them unpacked to bytes.
// CHECK-LABEL: func.func @gemm_k64_n128_q4_1(
// THREE: call @quantize_row_q4_1_3_k64
// THREE: call @micro_bytes_q4_1_3_4x128_stream_p4
// THREE: call @unpack_codes_q4_1_n32
// THREE: call @micro_bytes_q4_1_3_7x32_packed_acc
// TWO: call @quantize_row_q4_1_2_k64
// TWO: call @micro_bytes_q4_1_2_4x128_stream_p4
// TWO: call @unpack_codes_q4_1_twice_n32
// TWO: call @micro_bytes_q4_1_2_7x32_packed_acc

// Two shifts join the sums of three digits; they become a number once a block.
// THREE-LABEL: func.func private @micro_bytes_q4_1_3_7x32_packed_acc
// THREE: scf.for {{.*}} iter_args
// THREE: scf.for {{.*}} iter_args
// THREE-COUNT-14: vpdpbusd.512
// THREE: scf.yield
// THREE-COUNT-14: arith.shli
// THREE: scf.for {{.*}} iter_args
// THREE-COUNT-14: vpdpbusd.512
// THREE: scf.yield
// THREE-COUNT-14: arith.shli
// THREE: scf.for {{.*}} iter_args
// THREE-COUNT-14: vpdpbusd.512
// THREE: scf.yield
// THREE-COUNT-14: arith.sitofp

// Of 12 bits one sum takes both digits and is a number as it is.
// TWO-LABEL: func.func private @micro_bytes_q4_1_2_7x32_packed_acc
// TWO-NOT: arith.shli
// TWO-NOT: arith.sitofp
// TWO-COUNT-2: scf.for {{.*}} iter_args
// TWO-COUNT-14: vpdpbusd.512
// TWO: scf.yield
// TWO: scf.for {{.*}} iter_args
// TWO-COUNT-14: vpdpbusd.512
// TWO: scf.yield
// TWO-COUNT-14: arith.subf
// TWO: return
// CHECK-LABEL: func.func @gemm_k64_n128_q8_0(
// THREE: call @micro_bytes_q8_0x4_3_4x128_stream_p4
// TWO: call @micro_bytes_q8_0x4_2_4x128_stream_p4

// Bytes lie in words of four.
// KERNELS-DAG: @gemm_k64_n128_q8_0({{.*}}gpt.storage = "q8_0x4"{{.*}}row_tile = 7
// KERNELS-DAG: @gemm_k64_n128_q4_1({{.*}}gpt.storage = "q4_1"{{.*}}row_tile = 7
// PLAIN-DAG: @gemm_k64_n128_q8_0({{.*}}gpt.storage = "q8_0"}{{.*}}row_tile = 14

// The sums of one row stay in registers.
// ASM-LABEL: micro_bytes_q4_1_3_1x128_stream_p4:
// ASM: vpdpbusd
// ASM-NOT: zmm{{.*}}(%rsp)
// ASM: retq

// FLOATS-NOT: vpdpbusd
// FLOATS: call @micro_q4_1_
// FLOATS: call @unpack_q4_1_n32
// FLOATS: call @micro_f32_14x32_packed_acc
