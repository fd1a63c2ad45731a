// Without a dropout nothing changes.
// RUN: gptc-opt %s --gpt-remove-dropout | FileCheck %s

// CHECK-LABEL: func.func @no_dropout
// CHECK-NEXT:    %[[G:.*]] = gpt.gelu tanh %{{.*}} : tensor<?x64xf32>
// CHECK-NEXT:    %[[Y:.*]] = arith.addf %{{.*}}, %[[G]] : tensor<?x64xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @no_dropout(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %g = gpt.gelu tanh %x : tensor<?x64xf32>
  %y = arith.addf %x, %g : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
