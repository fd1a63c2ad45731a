// RUN: not gptc %s --emit=kernels 2>&1 | FileCheck %s
// REQUIRES: gptc

// CHECK: control-flow.mlir:[[#@LINE+1]]:1: error: {{.*}}expected one block: an entry has no control flow
func.func @forever(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  %y = arith.addf %x, %x : tensor<4xf32>
  cf.br ^next
}
