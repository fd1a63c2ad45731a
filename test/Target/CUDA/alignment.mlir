// REQUIRES: gptc, nvcc
// Rows of x are read 16 bytes at a time where each begins at a multiple of that, else by the element; a result is written by the
// element. Weights are packed in rows of 32 bytes or more, whatever their matrix is.
// RUN: gptc %s --target=cuda --emit=ptx | FileCheck %s
// RUN: gptc %s --target=cuda --emit=ptx --precision=f32 | FileCheck %s --check-prefix=F32
module attributes {gpt.name = "one"} {
  ml_program.global private @even(#ml_program.extern) : tensor<40x768xf32> {gpt.stored = #gpt.stored<"", "even", bf16>}
  ml_program.global private @odd(#ml_program.extern) : tensor<41x770xf32> {gpt.stored = #gpt.stored<"", "odd", bf16>}
  func.func @project(%x: tensor<?x768xf32>, %z: tensor<?x770xf32>) -> (tensor<?x40xf32>, tensor<?x41xf32>) {
    %even = ml_program.global_load_const @even : tensor<40x768xf32>
    %odd = ml_program.global_load_const @odd : tensor<41x770xf32>
    %y = gpt.linear %x, %even : tensor<?x768xf32>, tensor<40x768xf32> -> tensor<?x40xf32>
    %o = gpt.linear %z, %odd : tensor<?x770xf32>, tensor<41x770xf32> -> tensor<?x41xf32>
    return %y, %o : tensor<?x40xf32>, tensor<?x41xf32>
  }
}

// CHECK: .entry gemm_k768_n40_bf16(
// CHECK: ld.global.nc.v4.f32
// CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16
// CHECK-NOT: st.global.v
// CHECK: .entry gemm_k770_n41_bf16_rows1(
// CHECK-NOT: ld.global.nc.v4.f32
// CHECK-NOT: st.global.v
// CHECK: .entry gemm_k770_n41_bf16(
// CHECK-NOT: ld.global.nc.v4.f32
// CHECK: ld.global.nc.f32
// CHECK-NOT: ld.global.nc.v4.f32
// CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16
// CHECK-NOT: ld.global.nc.v4.f32
// CHECK-NOT: st.global.v

// F32: .entry gemm_k768_n40_bf16(
// F32: ld.global.nc.v4.f32
// F32: .entry gemm_k770_n41_bf16_rows1(
// F32-NOT: ld.global.nc.v4.f32
// F32: .entry gemm_k770_n41_bf16(
// F32-NOT: ld.global.nc.v4.f32
