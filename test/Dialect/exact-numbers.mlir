// RUN: gptc-opt %s | gptc-opt -mlir-print-op-generic | FileCheck %s

// What was written reads back to the same 64 bits: each number is compared
// with its neighbours as the generic form prints them.

func.func @eps(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // CHECK: eps = 9.9999999999999991E-6 : f64
  %0 = gpt.rms_norm %x, %g eps 9.9999999999999991e-06 : tensor<?x8xf32>, tensor<8xf32>
  // CHECK: eps = 1.000000e-05 : f64
  %1 = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>
  // CHECK: eps = 1.0000000000000003E-5 : f64
  %2 = gpt.rms_norm %x, %g eps 1.0000000000000003e-05 : tensor<?x8xf32>, tensor<8xf32>
  // The f32 nearest to 1e-5, as a checkpoint may store it.
  // CHECK: eps = 9.9999997473787516E-6 : f64
  %3 = gpt.rms_norm %x, %g eps 9.999999747378752e-06 : tensor<?x8xf32>, tensor<8xf32>
  // The least denormal.
  // CHECK: p = 4.940660e-324 : f64
  %4 = gpt.dropout %x p 4.9406564584124654e-324 : tensor<?x8xf32>
  // CHECK: eps = 1.000000e+15 : f64
  %5 = gpt.rms_norm %x, %g eps 1000000000000000.0 : tensor<?x8xf32>, tensor<8xf32>
  // CHECK: p = 1.000000e-01 : f64
  %6 = gpt.dropout %x p 0.1 : tensor<?x8xf32>
  return
}

// CHECK: base 500000.00000000006, pairs half
func.func private @rope() attributes {rope = #gpt.rope<base 500000.00000000006, pairs half, dim 4>}
