// An entry that is calls already is left alone: no further kernel, no further call.
// RUN: gptc-opt %s --gpt-outline-kernels | gptc-opt --gpt-outline-kernels | FileCheck %s

// CHECK-LABEL: func.func @entry
// CHECK-NEXT:    %[[Y:.*]] = gpt.call @gelu_tanh_c64
// CHECK-NEXT:    return %[[Y]]
// CHECK:       gpt.kernel @gelu_tanh_c64
// CHECK-NEXT:    gpt.gelu tanh
// CHECK-NOT:   gpt.kernel
// CHECK-NOT:   gpt.call
func.func @entry(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = gpt.gelu tanh %x : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
