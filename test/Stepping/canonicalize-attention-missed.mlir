// RUN: gptc-opt %s --gpt-canonicalize-attention | FileCheck %s

// What is no attention, or cannot become one kernel, is left alone.

// CHECK-LABEL: func @no_softmax
// CHECK:       arith.mulf
// CHECK-NEXT:  gpt.matmul
func.func @no_softmax(%q: tensor<2x2x8xf32>) -> tensor<2x2x2xf32> {
  %half = arith.constant dense<0.5> : tensor<2x2x8xf32>
  %qs = arith.mulf %q, %half : tensor<2x2x8xf32>
  %s = gpt.matmul %qs, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  return %s : tensor<2x2x2xf32>
}

// CHECK-LABEL: func @scores_are_returned
// CHECK:       %[[S:.*]] = gpt.matmul
// CHECK-NEXT:  %[[D:.*]] = arith.divf %[[S]]
// CHECK-NEXT:  gpt.softmax %[[D]]
func.func @scores_are_returned(%q: tensor<2x2x8xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %three = arith.constant dense<3.0> : tensor<2x2x2xf32>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %d = arith.divf %s, %three : tensor<2x2x2xf32>
  %p = gpt.softmax %d : tensor<2x2x2xf32>
  return %p, %d : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

// A runtime factor for each key scales no query; past a mask it could be
// negative.
// CHECK-LABEL: func @runtime_factor_by_key
// CHECK:       %[[B:.*]] = gpt.broadcast
// CHECK-NEXT:  %[[M:.*]] = arith.mulf %{{.*}}, %[[B]]
// CHECK-NEXT:  gpt.softmax %[[M]]
// CHECK:       gpt.causal_mask
// CHECK:       arith.mulf
// CHECK-NEXT:  gpt.softmax
func.func @runtime_factor_by_key(%q: tensor<2x2x8xf32>, %f: tensor<2xf32>, %g: tensor<f32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %b = gpt.broadcast %f like %s : tensor<2xf32>, tensor<2x2x2xf32> -> tensor<2x2x2xf32>
  %m = arith.mulf %s, %b : tensor<2x2x2xf32>
  %p = gpt.softmax %m : tensor<2x2x2xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %c1 = gpt.causal_mask %s1 : tensor<2x2x2xf32>
  %b1 = gpt.broadcast %g like %c1 : tensor<f32>, tensor<2x2x2xf32> -> tensor<2x2x2xf32>
  %m1 = arith.mulf %c1, %b1 : tensor<2x2x2xf32>
  %p1 = gpt.softmax %m1 : tensor<2x2x2xf32>
  return %p, %p1 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

// No number of f32, or one that would vanish.
// CHECK-LABEL: func @factors_beyond_f32
// CHECK:       gpt.scale %{{.*}} by 1.0e-30
// CHECK-NEXT:  gpt.scale %{{.*}} by 1.0e-30
// CHECK:       arith.divf
func.func @factors_beyond_f32(%q: tensor<2x2x8xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %a = gpt.scale %s by 1.0e-30 : tensor<2x2x2xf32>
  %b = gpt.scale %a by 1.0e-30 : tensor<2x2x2xf32>
  %p = gpt.softmax %b : tensor<2x2x2xf32>
  %zero = arith.constant dense<0.0> : tensor<2x2x2xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %d1 = arith.divf %s1, %zero : tensor<2x2x2xf32>
  %p1 = gpt.softmax %d1 : tensor<2x2x2xf32>
  return %p, %p1 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

// Masks before the product are no masks of these scores.
// CHECK-LABEL: func @masks_of_queries
// CHECK-COUNT-2: gpt.mask
// CHECK:       gpt.matmul
func.func @masks_of_queries(%q: tensor<2x?x8xf32>, %b: tensor<8xf32>) -> tensor<2x?x?xf32> {
  %m = gpt.mask %q, %b : tensor<2x?x8xf32>, tensor<8xf32>
  %n = gpt.mask %m, %b : tensor<2x?x8xf32>, tensor<8xf32>
  %s = gpt.matmul %n, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  return %p : tensor<2x?x?xf32>
}
