// Without a rope no table is made, and a rotation that has its table keeps it.
// RUN: gptc-opt %s --gpt-lower-rope | FileCheck %s

// CHECK-LABEL: func.func @already_lowered
// CHECK-NEXT:    %[[R:.*]] = gpt.rotate %{{.*}}, %{{.*}} half : tensor<9x?x64xf32>, tensor<?x2x64xf32>
// CHECK-NEXT:    return %[[R]]
func.func @already_lowered(%x: tensor<9x?x64xf32>, %cs: tensor<?x2x64xf32>) -> tensor<9x?x64xf32> {
  %r = gpt.rotate %x, %cs half : tensor<9x?x64xf32>, tensor<?x2x64xf32>
  return %r : tensor<9x?x64xf32>
}
