// REQUIRES: gptc
// The shapes that the GEMM generator gives its loops: register tiles of the target, weights read in their storage format when rows
// are few, unpacked once for packed rows when they are many.
// RUN: gptc %s --emit=mlir -march=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: gptc %s --emit=mlir -march=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
module attributes {gpt.name = "one"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", q4_1>}
  func.func @project(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    return %y : tensor<?x96xf32>
  }
}

// CHECK-LABEL: func.func @gemm_k64_n96_q4_1(
// Few rows: straight from the blocks.
// CHECK: call @micro_q4_1_
// Many rows: panels are unpacked, then full tiles of f32.
// CHECK: call @unpack_q4_1_
// V4: call @micro_f32_14x32_packed_acc
// V3: call @micro_f32_6x16_packed_acc

// Nibbles become floats by a table look-up where the target has one.
// V4-LABEL: func.func private @unpack_q4_1_n32
// V4: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// V3-LABEL: func.func private @unpack_q4_1_n16
// V3: arith.sitofp

// Every element is one chain of multiply-adds: one fma a row and vector, accumulators carried by the loop.
// V4-LABEL: func.func private @micro_f32_14x32_packed
// V4: scf.for {{.*}} iter_args
// V4-COUNT-28: math.fma {{.*}} : vector<16xf32>
// V4-NOT: math.fma
// V4: scf.yield
