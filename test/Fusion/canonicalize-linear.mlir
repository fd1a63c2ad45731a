// RUN: gptc-opt %s --gpt-canonicalize-linear | FileCheck %s

ml_program.global private @w(#ml_program.extern) : tensor<24x16xf32>
ml_program.global private @b(#ml_program.extern) : tensor<24xf32>
ml_program.global private @v(#ml_program.extern) : tensor<16x24xf32>
ml_program.global private @b8(#ml_program.extern) : tensor<8xf32>
ml_program.global private @b12(#ml_program.extern) : tensor<12xf32>

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

// Sizes of the sum before the bias are those of the sum after it: the linear is
// there once.
// CHECK-LABEL: func @sizes
// CHECK:       %[[Y:.*]] = gpt.linear {{.*}} bias
// CHECK-NEXT:  %[[L:.*]] = gpt.broadcast %{{.*}} like %[[Y]]
// CHECK-NEXT:  return %[[Y]], %[[L]]
func.func @sizes(%x: tensor<?x16xf32>, %f: tensor<1x1xf32>) -> (tensor<?x24xf32>, tensor<?x24xf32>) {
  %w = ml_program.global_load_const @w : tensor<24x16xf32>
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %l = gpt.broadcast %f like %y : tensor<1x1xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  %b = ml_program.global_load_const @b : tensor<24xf32>
  %bs = gpt.broadcast %b like %y : tensor<24xf32>, tensor<?x24xf32> -> tensor<?x24xf32>
  %z = arith.addf %bs, %y : tensor<?x24xf32>
  return %z, %l : tensor<?x24xf32>, tensor<?x24xf32>
}

// A packed projection whose parts get biases of their own before heads follow,
// all but one; stored [in, out].
// CHECK-LABEL: func @parts
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>
// CHECK-DAG:   %[[W:.*]] = ml_program.global_load_const @v
// CHECK-DAG:   %[[B:.*]] = ml_program.global_load_const @b8
// CHECK-DAG:   %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0] [16, 8] [1, 1]
// CHECK-DAG:   %[[W1:.*]] = tensor.extract_slice %[[W]][0, 8] [16, 8] [1, 1]
// CHECK-DAG:   %[[W2:.*]] = tensor.extract_slice %[[W]][0, 16] [16, 8] [1, 1]
// CHECK-DAG:   %[[Q:.*]] = gpt.linear %[[X]], %[[W0]] bias %[[B]] in_out
// CHECK-DAG:   %[[K:.*]] = gpt.linear %[[X]], %[[W1]] in_out
// CHECK-DAG:   %[[V:.*]] = gpt.linear %[[X]], %[[W2]] bias %[[B]] in_out
// CHECK-DAG:   gpt.split_heads %[[Q]]
// CHECK-DAG:   gpt.split_heads %[[K]]
// CHECK-DAG:   gpt.split_heads %[[V]]
func.func @parts(%x: tensor<?x16xf32>) -> (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) {
  %w = ml_program.global_load_const @v : tensor<16x24xf32>
  %b = ml_program.global_load_const @b8 : tensor<8xf32>
  %y = gpt.linear %x, %w in_out : tensor<?x16xf32>, tensor<16x24xf32> -> tensor<?x24xf32>
  %q, %k, %v = gpt.split %y : tensor<?x24xf32> -> tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %bs = gpt.broadcast %b like %q : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %qb = arith.addf %q, %bs : tensor<?x8xf32>
  %vb = arith.addf %bs, %v : tensor<?x8xf32>
  %qh = gpt.split_heads %qb : tensor<?x8xf32> -> tensor<2x?x4xf32>
  %kh = gpt.split_heads %k : tensor<?x8xf32> -> tensor<2x?x4xf32>
  %vh = gpt.split_heads %vb : tensor<?x8xf32> -> tensor<2x?x4xf32>
  return %qh, %kh, %vh : tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>
}

// The split stays: another user of the packed result; a part that is used
// before the bias; a linear with a bias of its own; no heads, so that one GEMM
// would become two.
// CHECK-LABEL: func @packed_stays
// CHECK-COUNT-4: gpt.split %
func.func @packed_stays(%x: tensor<?x16xf32>) -> (tensor<2x?x6xf32>, tensor<?x24xf32>, tensor<?x12xf32>, tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<?x12xf32>) {
  %w = ml_program.global_load_const @w : tensor<24x16xf32>
  %b = ml_program.global_load_const @b12 : tensor<12xf32>
  %c = ml_program.global_load_const @b : tensor<24xf32>
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %p, %r = gpt.split %y : tensor<?x24xf32> -> tensor<?x12xf32>, tensor<?x12xf32>
  %bs = gpt.broadcast %b like %p : tensor<12xf32>, tensor<?x12xf32> -> tensor<?x12xf32>
  %pb = arith.addf %p, %bs : tensor<?x12xf32>
  %h = gpt.split_heads %pb : tensor<?x12xf32> -> tensor<2x?x6xf32>
  %y1 = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %p1, %r1 = gpt.split %y1 : tensor<?x24xf32> -> tensor<?x12xf32>, tensor<?x12xf32>
  %pb1 = arith.addf %p1, %bs : tensor<?x12xf32>
  %h1 = gpt.split_heads %pb1 : tensor<?x12xf32> -> tensor<2x?x6xf32>
  %y2 = gpt.linear %x, %w bias %c : tensor<?x16xf32>, tensor<24x16xf32>, tensor<24xf32> -> tensor<?x24xf32>
  %p2, %r2 = gpt.split %y2 : tensor<?x24xf32> -> tensor<?x12xf32>, tensor<?x12xf32>
  %pb2 = arith.addf %p2, %bs : tensor<?x12xf32>
  %h2 = gpt.split_heads %pb2 : tensor<?x12xf32> -> tensor<2x?x6xf32>
  %y3 = gpt.linear %x, %w : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
  %p3, %r3 = gpt.split %y3 : tensor<?x24xf32> -> tensor<?x12xf32>, tensor<?x12xf32>
  %pb3 = arith.addf %p3, %bs : tensor<?x12xf32>
  return %h, %y, %p1, %h1, %h2, %pb3 : tensor<2x?x6xf32>, tensor<?x24xf32>, tensor<?x12xf32>, tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<?x12xf32>
}
