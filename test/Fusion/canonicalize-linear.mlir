// RUN: gptc-opt %s --gpt-canonicalize-linear | FileCheck %s

ml_program.global private @w(#ml_program.extern) : tensor<24x16xf32>
ml_program.global private @b(#ml_program.extern) : tensor<24xf32>

// The bias on the left.
// CHECK-LABEL: func @sum
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>
// CHECK-DAG:   %[[W:.*]] = ml_program.global_load_const @w
// CHECK-DAG:   %[[B:.*]] = ml_program.global_load_const @b
// CHECK:       %[[Y:.*]] = gpt.linear %[[X]], %[[W]] bias %[[B]]
// CHECK-NEXT:  return %[[Y]]
func.func @sum(%x: tensor<?x16xf32>) -> tensor<?x24xf32> {
  %w = ml_program.global_load_const @w : tensor<24x16xf32>
  %b = ml_program.global_load_const @b : tensor<24xf32>
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %bs = gpt.broadcast %b like %y : tensor<24xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  %z = arith.addf %bs, %y : tensor<?x24xf32>
  return %z : tensor<?x24xf32>
}

// The sum before the bias is a result: it stays. So do a second bias and one
// that is no weight, which the kernels could not read as one.
// CHECK-LABEL: func @unchanged
// CHECK-COUNT-3: arith.addf
func.func @unchanged(%x: tensor<?x16xf32>, %c: tensor<24xf32>) -> (tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x24xf32>) {
  %w = ml_program.global_load_const @w : tensor<24x16xf32>
  %b = ml_program.global_load_const @b : tensor<24xf32>
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %bs = gpt.broadcast %b like %y : tensor<24xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  %z = arith.addf %y, %bs : tensor<?x24xf32>
  %y1 = gpt.linear %x, %w bias %b : tensor<?x16xf32>, tensor<24x16xf32>, tensor<24xf32> -> tensor<?x24xf32>
  %z1 = arith.addf %y1, %bs : tensor<?x24xf32>
  %y2 = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %cs = gpt.broadcast %c like %y2 : tensor<24xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  %z2 = arith.addf %y2, %cs : tensor<?x24xf32>
  return %y, %z, %z1, %z2 : tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x24xf32>
}
