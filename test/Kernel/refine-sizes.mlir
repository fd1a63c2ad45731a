// RUN: gptc-opt %s --gpt-outline-kernels --split-input-file | FileCheck %s

// A `?` that must be a static size is written as it, in arguments and results,
// through what stands between.
// CHECK-LABEL: func @mask
// CHECK-SAME:  (%{{.*}}: tensor<2x?x3xf32>, %{{.*}}: tensor<3xf32>) -> tensor<2x?x3xf32>
func.func @mask(%s: tensor<2x?x?xf32>, %m: tensor<3xf32>) -> tensor<2x?x?xf32> {
  %t = gpt.silu %s : tensor<2x?x?xf32>
  %o = gpt.mask %t, %m : tensor<2x?x?xf32>, tensor<3xf32>
  return %o : tensor<2x?x?xf32>
}

// -----

// A size of 1 serves all; sizes that nothing gives stay.
// CHECK-LABEL: func @open
// CHECK-SAME:  (%{{.*}}: tensor<2x?x?xf32>, %{{.*}}: tensor<?x1xf32>) -> tensor<2x?x?xf32>
func.func @open(%s: tensor<2x?x?xf32>, %m: tensor<?x1xf32>) -> tensor<2x?x?xf32> {
  %o = gpt.mask %s, %m : tensor<2x?x?xf32>, tensor<?x1xf32>
  return %o : tensor<2x?x?xf32>
}

// -----

// From each of several masks, and of several tensors after like.
// CHECK-LABEL: func @several
// CHECK-SAME:  (%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x3x8xf32>, %{{.*}}: tensor<4x1xf32>, %{{.*}}: tensor<3xi1>, %{{.*}}: tensor<4x1xf32>, %{{.*}}: tensor<5xf32>) -> (tensor<2x4x8xf32>, tensor<4x5xf32>)
func.func @several(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %a: tensor<?x1xf32>, %b: tensor<3xi1>, %c: tensor<4x1xf32>, %d: tensor<5xf32>) -> (tensor<2x?x8xf32>, tensor<?x?xf32>) {
  %o = gpt.flash_attention %q, %k, %k mask %c, %b scale 1.0 : tensor<2x?x8xf32>, tensor<2x?x8xf32> mask tensor<4x1xf32>, tensor<3xi1>
  %x = gpt.broadcast %d like %a, %d : tensor<5xf32>, tensor<?x1xf32>, tensor<5xf32> -> tensor<?x?xf32>
  %y = gpt.mask %x, %c : tensor<?x?xf32>, tensor<4x1xf32>
  return %o, %y : tensor<2x?x8xf32>, tensor<?x?xf32>
}

// -----

// Heads follow from groups, one product after the other; a later op gives the
// size that an earlier one needs.
// CHECK-LABEL: func @groups
// CHECK-SAME:  (%{{.*}}: tensor<6x?x8xf32>, %{{.*}}: tensor<2x?x8xf32>) -> tensor<6x?x8xf32>
func.func @groups(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 3 : tensor<?x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x?xf32>
  %b = gpt.alibi %s slopes [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125] : tensor<?x?x?xf32>
  %p = gpt.softmax %b : tensor<?x?x?xf32>
  %o = gpt.matmul %p, %k groups 3 : tensor<?x?x?xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return %o : tensor<?x?x8xf32>
}
