// RUN: gptc-opt %s --gpt-fuse-epilogue --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-epilogue | FileCheck %s --check-prefix=SAME

// Lanes share one activation; here one GEMM takes the other as a residual: no
// remark.
// CHECK-NOT: Function=other_activation {{.*}}Missed
// SAME-LABEL: func @other_activation
// SAME-NOT:   lanes
// SAME-COUNT-2: gpt.fused_gemm
func.func @other_activation(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %g = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %u = gpt.linear %y, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = gpt.silu %g : tensor<?x16xf32>
  %h = arith.mulf %s, %u : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}

// A residual of one section of several has no place.
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=sections | Remark="expected a GEMM of one section, or lanes, beside another tensor, got 2 sections; the op stays a kernel of its own"
// SAME-LABEL: func @sections
// SAME:       arith.addf %{{.*}} : tensor
func.func @sections(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %a, %b = gpt.fused_gemm %x : tensor<?x16xf32> sections {
    %w : tensor<16x16xf32> -> tensor<?x16xf32>,
    %w : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %s = arith.addf %a, %x : tensor<?x16xf32>
  return %s, %b : tensor<?x16xf32>, tensor<?x16xf32>
}

// Two of three sections meet.
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=three_sections | Remark="expected values of one section, got those of two that cannot be lanes: lanes have equal widths, no rope and no KV append"
// SAME-LABEL: func @three_sections
// SAME:       arith.mulf %{{.*}} : tensor
func.func @three_sections(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %a, %b, %c = gpt.fused_gemm %x : tensor<?x16xf32> sections {
    %w : tensor<16x16xf32> -> tensor<?x16xf32>,
    %w : tensor<16x16xf32> -> tensor<?x16xf32>,
    %w : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %s = arith.mulf %a, %b : tensor<?x16xf32>
  return %s, %c : tensor<?x16xf32>, tensor<?x16xf32>
}

// The other operand is made from the GEMM's value.
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=depends | Remark="expected the other operand to be known before the GEMM, since its value is used by gpt.softmax in between; compute the other operand first"
// SAME-LABEL: func @depends
// SAME-COUNT-1: gpt.fused_gemm
// SAME:       arith.addf %{{.*}} : tensor
func.func @depends(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %p = gpt.softmax %y : tensor<?x16xf32>
  %s = arith.addf %y, %p : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// relu as a comparison and a selection.
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=compared | Remark="expected an op on numbers of one type in an epilogue, got arith.cmpf; write relu as arith.maximumf with 0"
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=compared | Remark="expected an op on numbers of one type in an epilogue, got arith.select; write relu as arith.maximumf with 0"
// SAME-LABEL: func @compared
// SAME:       arith.select %{{.*}} : tensor
func.func @compared(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x16xf32>
  %y = gpt.linear %x, %w : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %above = arith.cmpf ogt, %y, %zero : tensor<4x16xf32>
  %r = arith.select %above, %y, %zero : tensor<4x16xi1>, tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=split_has_user | Remark="expected the split to be the only user of the packed projection; its other users need it as one tensor"
// SAME-LABEL: func @split_has_user
// SAME-COUNT-1: gpt.fused_gemm
// SAME:       gpt.split %
func.func @split_has_user(%x: tensor<?x16xf32>, %w: tensor<24x16xf32>) -> (tensor<?x24xf32>, tensor<?x8xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %a, %b = gpt.split %y : tensor<?x24xf32> -> tensor<?x8xf32>, tensor<?x16xf32>
  return %y, %a, %b : tensor<?x24xf32>, tensor<?x8xf32>, tensor<?x16xf32>
}

// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=split_of_activation | Remark="expected a GEMM without an epilogue before the split; what stands between may stand after it, part by part"
// SAME-LABEL: func @split_of_activation
// SAME-COUNT-1: gpt.fused_gemm
// SAME:       gpt.split %
func.func @split_of_activation(%x: tensor<?x16xf32>, %w: tensor<24x16xf32>) -> (tensor<?x8xf32>, tensor<?x16xf32>) {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %s = gpt.silu %y : tensor<?x24xf32>
  %a, %b = gpt.split %s : tensor<?x24xf32> -> tensor<?x8xf32>, tensor<?x16xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x16xf32>
}

// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=split_of_part | Remark="expected a packed weight that is no part of another"
// SAME-LABEL: func @split_of_part
// SAME:       gpt.split %
func.func @split_of_part(%x: tensor<?x16xf32>, %all: tensor<48x16xf32>) -> (tensor<?x8xf32>, tensor<?x16xf32>) {
  %w = gpt.head_part %all axis 0 from 0 take 12 of 24 : tensor<48x16xf32> -> tensor<24x16xf32>
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %a, %b = gpt.split %y : tensor<?x24xf32> -> tensor<?x8xf32>, tensor<?x16xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x16xf32>
}

// Another rank than [T, K] stays a linear.
// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=batch | Remark="expected an activation [T, K] of static K, got tensor<2x?x16xf32>; pack the tokens of a batch into one dimension"
// SAME-LABEL: func @batch
// SAME:       gpt.linear
func.func @batch(%x: tensor<2x?x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x?x16xf32> {
  %y = gpt.linear %x, %w : tensor<2x?x16xf32>, tensor<16x16xf32> -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}

// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=dynamic_weight | Remark="expected a weight of static shape, got tensor<?x16xf32>"
// SAME-LABEL: func @dynamic_weight
// SAME:       gpt.linear
func.func @dynamic_weight(%x: tensor<?x16xf32>, %w: tensor<?x16xf32>) -> tensor<?x?xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// CHECK-DAG: [Missed] fuse-epilogue {{.*}}Function=static_result | Remark="expected a result with the rows of the activation tensor<?x16xf32>, got tensor<4x16xf32>"
// SAME-LABEL: func @static_result
// SAME:       gpt.linear
func.func @static_result(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
