// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-argmax --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-argmax | FileCheck %s --check-prefix=SAME

// CHECK-DAG: [Missed] fuse-argmax {{.*}}Function=also_logits | Remark="expected the argmax to be the only user of the GEMM's numbers; its other users need them written"
// SAME-LABEL: func @also_logits
// SAME:       %[[Y:.*]] = gpt.fused_gemm
// SAME:       gpt.argmax %[[Y]]
func.func @also_logits(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>) -> (tensor<?x300xf32>, tensor<?xi32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %t = gpt.argmax %y : tensor<?x300xf32> -> tensor<?xi32>
  return %y, %t : tensor<?x300xf32>, tensor<?xi32>
}

// Twice the same argmax, before CSE.
// CHECK-DAG: [Missed] fuse-argmax {{.*}}Function=twice | Remark="expected the argmax to be the only user
// SAME-LABEL: func @twice
// SAME-COUNT-2: gpt.argmax
func.func @twice(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %t = gpt.argmax %y : tensor<?x300xf32> -> tensor<?xi32>
  %u = gpt.argmax %y : tensor<?x300xf32> -> tensor<?xi32>
  return %t, %u : tensor<?xi32>, tensor<?xi32>
}

// CHECK-DAG: [Missed] fuse-argmax {{.*}}Function=before_the_cap | Remark="expected the argmax to be all that is made of the GEMM, got a GEMM of 2 values, whose numbers are written anyhow"
// SAME-LABEL: func @before_the_cap
// SAME:       gpt.argmax
func.func @before_the_cap(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>) -> (tensor<?x300xf32>, tensor<?xi32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %c = gpt.softcap %y at 30.0 : tensor<?x300xf32>
  %t = gpt.argmax %c : tensor<?x300xf32> -> tensor<?xi32>
  return %y, %t : tensor<?x300xf32>, tensor<?xi32>
}

// CHECK-DAG: [Missed] fuse-argmax {{.*}}Function=of_a_part | Remark="expected a GEMM of one section, or lanes, without rope and KV append before the argmax"
// SAME-LABEL: func @of_a_part
// SAME:       gpt.argmax
func.func @of_a_part(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>) -> (tensor<?x100xf32>, tensor<?xi32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %a, %b = gpt.split %y : tensor<?x300xf32> -> tensor<?x100xf32>, tensor<?x200xf32>
  %t = gpt.argmax %b : tensor<?x200xf32> -> tensor<?xi32>
  return %a, %t : tensor<?x100xf32>, tensor<?xi32>
}

// CHECK-DAG: [Missed] fuse-argmax {{.*}}Function=sizes_of_logits | Remark="expected no sizes taken of the GEMM's numbers, which the argmax in its epilogue does not write; give other values of these sizes after 'like'"
// SAME-LABEL: func @sizes_of_logits
// SAME:       gpt.argmax
func.func @sizes_of_logits(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>, %b: tensor<300xf32>) -> (tensor<?x300xf32>, tensor<?xi32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %t = gpt.argmax %y : tensor<?x300xf32> -> tensor<?xi32>
  %z = gpt.broadcast %b like %y : tensor<300xf32>, tensor<?x300xf32> -> tensor<?x300xf32>
  return %z, %t : tensor<?x300xf32>, tensor<?xi32>
}
