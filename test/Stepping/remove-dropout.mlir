// RUN: gptc-opt %s --gpt-remove-dropout | FileCheck %s

// CHECK-LABEL: func @dropout
// CHECK-SAME:  %[[X:.*]]: tensor
// CHECK-NEXT:  %[[Y:.*]] = gpt.gelu erf %[[X]]
// CHECK-NEXT:  return %[[Y]]
func.func @dropout(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %d = gpt.dropout %x p 0.1 : tensor<?x64xf32>
  %y = gpt.gelu erf %d : tensor<?x64xf32>
  %z = gpt.dropout %y p 0.5 : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
