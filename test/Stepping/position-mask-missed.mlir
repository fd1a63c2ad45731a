// RUN: gptc-opt %s --gpt-canonicalize-attention | FileCheck %s --implicit-check-not=gpt.causal_mask
//
// Masks that compare something, but are not certainly the causal one.

!s = tensor<2x?x?xf32>
!n = tensor<?x?xi32>
!b = tensor<?x?xi1>

// Positions of two sequences, of which one may be longer; positions that are
// given, and may be any.
// CHECK-LABEL: func @other_positions
// CHECK-COUNT-2: gpt.mask
func.func @other_positions(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %x: tensor<?xi32>, %y: tensor<?xi32>, %given: tensor<?x1xi32>) -> (!s, !s) {
  %c0 = arith.constant 0 : index
  %i = gpt.positions %x : tensor<?xi32>
  %j = gpt.positions %y : tensor<?xi32>
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %i [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %a = gpt.broadcast %column like %column, %j : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %b = gpt.broadcast %j like %column, %j : tensor<?xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %see = arith.cmpi sge, %a, %b : !n
  %s = gpt.matmul %q, %k transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m = gpt.mask %s, %see : !s, !b
  %p = gpt.softmax %m : !s
  %g = gpt.broadcast %given like %a : tensor<?x1xi32>, !n -> !n
  %see1 = arith.cmpi sge, %g, %b : !n
  %s1 = gpt.matmul %q, %k transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m1 = gpt.mask %s1, %see1 : !s, !b
  %p1 = gpt.softmax %m1 : !s
  return %p, %p1 : !s, !s
}

// Without the query itself; later keys; equal positions; unsigned; no upper
// bound; a window of no key; either of two.
// CHECK-LABEL: func @other_comparisons
// CHECK-COUNT-7: gpt.mask
func.func @other_comparisons(%q: tensor<2x?x8xf32>, %x: tensor<?xi32>) -> (!s, !s, !s, !s, !s, !s, !s) {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %x : tensor<?xi32>
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %column like %column, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %j = gpt.broadcast %pos like %column, %pos : tensor<?xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %far = arith.subi %i, %j : !n
  %zero = arith.constant dense<0> : tensor<i32>
  %zeros = gpt.broadcast %zero like %i : tensor<i32>, !n -> !n
  %strict = arith.cmpi sgt, %i, %j : !n
  %later = arith.cmpi sle, %i, %j : !n
  %equal = arith.cmpi eq, %i, %j : !n
  %unsigned = arith.cmpi uge, %i, %j : !n
  %causal = arith.cmpi sge, %i, %j : !n
  %never = arith.cmpi slt, %far, %zeros : !n
  %empty = arith.andi %causal, %never : !b
  %either = arith.ori %causal, %strict : !b
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m = gpt.mask %s, %strict : !s, !b
  %p = gpt.softmax %m : !s
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m1 = gpt.mask %s1, %later : !s, !b
  %p1 = gpt.softmax %m1 : !s
  %s2 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m2 = gpt.mask %s2, %equal : !s, !b
  %p2 = gpt.softmax %m2 : !s
  %s3 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m3 = gpt.mask %s3, %unsigned : !s, !b
  %p3 = gpt.softmax %m3 : !s
  %s4 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m4 = gpt.mask %s4, %never : !s, !b
  %p4 = gpt.softmax %m4 : !s
  %s5 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m5 = gpt.mask %s5, %empty : !s, !b
  %p5 = gpt.softmax %m5 : !s
  %s6 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m6 = gpt.mask %s6, %either : !s, !b
  %p6 = gpt.softmax %m6 : !s
  return %p, %p1, %p2, %p3, %p4, %p5, %p6 : !s, !s, !s, !s, !s, !s, !s
}

// Aligned top-left; no row of indices; a sum that may leave 32 bits; a row that
// sees nothing, filled with a finite number; such a number below padding; a
// number that a score can outweigh.
// CHECK-LABEL: func @constants
// CHECK-COUNT-7: gpt.mask
func.func @constants(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>, %pad: tensor<3xi1>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
  %i = arith.constant dense<[[0], [1]]> : tensor<2x1xi32>
  %i1 = arith.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %j = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %gap = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  %a = gpt.broadcast %i like %i, %j : tensor<2x1xi32>, tensor<2x1xi32>, tensor<3xi32> -> tensor<2x3xi32>
  %a1 = gpt.broadcast %i1 like %i, %j : tensor<2x1xi32>, tensor<2x1xi32>, tensor<3xi32> -> tensor<2x3xi32>
  %b = gpt.broadcast %j like %a : tensor<3xi32>, tensor<2x3xi32> -> tensor<2x3xi32>
  %c = gpt.broadcast %gap like %a : tensor<3xi32>, tensor<2x3xi32> -> tensor<2x3xi32>
  %large = arith.constant dense<2147483647> : tensor<2x3xi32>
  %left = arith.cmpi sge, %a, %b : tensor<2x3xi32>
  %s0 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m0 = gpt.mask %s0, %left : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p0 = gpt.softmax %m0 : tensor<1x2x3xf32>
  %holes = arith.cmpi sge, %a1, %c : tensor<2x3xi32>
  %s1 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m1 = gpt.mask %s1, %holes : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p1 = gpt.softmax %m1 : tensor<1x2x3xf32>
  %al = arith.addi %a1, %large : tensor<2x3xi32>
  %bl = arith.addi %b, %large : tensor<2x3xi32>
  %wraps = arith.cmpi sge, %al, %bl : tensor<2x3xi32>
  %s2 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m2 = gpt.mask %s2, %wraps : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p2 = gpt.softmax %m2 : tensor<1x2x3xf32>
  %rows = arith.constant dense<[[-1], [0], [1]]> : tensor<3x1xi32>
  %two = arith.constant dense<[0, 1]> : tensor<2xi32>
  %ra = gpt.broadcast %rows like %rows, %two : tensor<3x1xi32>, tensor<3x1xi32>, tensor<2xi32> -> tensor<3x2xi32>
  %rb = gpt.broadcast %two like %ra : tensor<2xi32>, tensor<3x2xi32> -> tensor<3x2xi32>
  %sees = arith.cmpi sge, %ra, %rb : tensor<3x2xi32>
  %s3 = gpt.matmul %k, %q transpose_b : tensor<1x3x8xf32>, tensor<1x2x8xf32> -> tensor<1x3x2xf32>
  %m3 = gpt.mask %s3, %sees fill -1.0e9 : tensor<1x3x2xf32>, tensor<3x2xi1>
  %p3 = gpt.softmax %m3 : tensor<1x3x2xf32>
  %right = arith.cmpi sge, %a1, %b : tensor<2x3xi32>
  %s4 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m4 = gpt.mask %s4, %right fill -1.0e9 : tensor<1x2x3xf32>, tensor<2x3xi1>
  %n4 = gpt.mask %m4, %pad fill -1.0e9 : tensor<1x2x3xf32>, tensor<3xi1>
  %p4 = gpt.softmax %n4 : tensor<1x2x3xf32>
  %s5 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m5 = gpt.mask %s5, %right fill -1.0e4 : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p5 = gpt.softmax %m5 : tensor<1x2x3xf32>
  return %p0, %p1, %p2, %p3, %p4, %p5 : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// Each constant is small, their sum leaves 32 bits from j = 1 on.
// CHECK-LABEL: func @far_sum
// CHECK:       gpt.mask
func.func @far_sum(%q: tensor<1x2x8xf32>) -> tensor<1x2x2xf32> {
  %i = arith.constant dense<[[0], [1]]> : tensor<2x1xi32>
  %j = arith.constant dense<[0, 1]> : tensor<2xi32>
  %large = arith.constant dense<536870912> : tensor<2x2xi32>
  %less = arith.constant dense<536870911> : tensor<2x2xi32>
  %a0 = gpt.broadcast %i like %large : tensor<2x1xi32>, tensor<2x2xi32> -> tensor<2x2xi32>
  %b0 = gpt.broadcast %j like %large : tensor<2xi32>, tensor<2x2xi32> -> tensor<2x2xi32>
  %a1 = arith.addi %a0, %less : tensor<2x2xi32>
  %a2 = arith.addi %a1, %large : tensor<2x2xi32>
  %a3 = arith.addi %a2, %large : tensor<2x2xi32>
  %a4 = arith.addi %a3, %large : tensor<2x2xi32>
  %b1 = arith.addi %b0, %less : tensor<2x2xi32>
  %b2 = arith.addi %b1, %large : tensor<2x2xi32>
  %b3 = arith.addi %b2, %large : tensor<2x2xi32>
  %b4 = arith.addi %b3, %large : tensor<2x2xi32>
  %see = arith.cmpi sge, %a4, %b4 : tensor<2x2xi32>
  %s = gpt.matmul %q, %q transpose_b : tensor<1x2x8xf32>, tensor<1x2x8xf32> -> tensor<1x2x2xf32>
  %m = gpt.mask %s, %see : tensor<1x2x2xf32>, tensor<2x2xi1>
  %p = gpt.softmax %m : tensor<1x2x2xf32>
  return %p : tensor<1x2x2xf32>
}

// Positions of two sequences of known lengths, aligned at the first ones.
// CHECK-LABEL: func @two_lengths
// CHECK:       gpt.mask
func.func @two_lengths(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>, %x: tensor<2xi32>, %y: tensor<3xi32>) -> tensor<1x2x3xf32> {
  %queries = gpt.positions %x : tensor<2xi32>
  %keys = gpt.positions %y : tensor<3xi32>
  %column = tensor.expand_shape %queries [[0, 1]] output_shape [2, 1] : tensor<2xi32> into tensor<2x1xi32>
  %i = gpt.broadcast %column like %column, %keys : tensor<2x1xi32>, tensor<2x1xi32>, tensor<3xi32> -> tensor<2x3xi32>
  %j = gpt.broadcast %keys like %i : tensor<3xi32>, tensor<2x3xi32> -> tensor<2x3xi32>
  %see = arith.cmpi sge, %i, %j : tensor<2x3xi32>
  %s = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m = gpt.mask %s, %see : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p = gpt.softmax %m : tensor<1x2x3xf32>
  return %p : tensor<1x2x3xf32>
}

// The window alone: no causal mask; one that fills with a finite number beside
// the causal one; later keys that are hidden no longer, +inf after a factor
// below 0, -5 after a softcap or -1e4 of a mask; a window of no key; a mask that
// hides the query itself.
// CHECK-LABEL: func @window_alone
// CHECK:       gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.scale
// CHECK-NEXT:  gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.softcap
// CHECK-NEXT:  gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.mask
// CHECK-NEXT:  gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.mask
// CHECK:       gpt.causal_mask
// CHECK-NEXT:  gpt.mask
func.func @window_alone(%q: tensor<2x?x8xf32>, %x: tensor<?xi32>, %pad: tensor<?xi1>) -> (!s, !s, !s, !s, !s, !s, !s) {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %x : tensor<?xi32>
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %column like %column, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %j = gpt.broadcast %pos like %column, %pos : tensor<?xi32>, tensor<?x1xi32>, tensor<?xi32> -> !n
  %far = arith.subi %i, %j : !n
  %four = arith.constant dense<4> : tensor<i32>
  %fours = gpt.broadcast %four like %i : tensor<i32>, !n -> !n
  %zero = arith.constant dense<0> : tensor<i32>
  %zeros = gpt.broadcast %zero like %i : tensor<i32>, !n -> !n
  %near = arith.cmpi slt, %far, %fours : !n
  %never = arith.cmpi slt, %far, %zeros : !n
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m = gpt.mask %s, %near : !s, !b
  %p = gpt.softmax %m : !s
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c1 = gpt.causal_mask %s1 : !s
  %m1 = gpt.mask %c1, %near fill -1.0e9 : !s, !b
  %p1 = gpt.softmax %m1 : !s
  %s2 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c2 = gpt.causal_mask %s2 : !s
  %t2 = gpt.scale %c2 by -1.0 : !s
  %m2 = gpt.mask %t2, %near : !s, !b
  %p2 = gpt.softmax %m2 : !s
  %s3 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c3 = gpt.causal_mask %s3 : !s
  %t3 = gpt.softcap %c3 at 5.0 : !s
  %m3 = gpt.mask %t3, %near : !s, !b
  %p3 = gpt.softmax %m3 : !s
  %s4 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c4 = gpt.causal_mask %s4 : !s
  %t4 = gpt.mask %c4, %pad fill -1.0e4 : !s, tensor<?xi1>
  %m4 = gpt.mask %t4, %near : !s, !b
  %p4 = gpt.softmax %m4 : !s
  %s5 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c5 = gpt.causal_mask %s5 : !s
  %m5 = gpt.mask %c5, %never : !s, !b
  %p5 = gpt.softmax %m5 : !s
  %strict = arith.cmpi sgt, %i, %j : !n
  %s6 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c6 = gpt.causal_mask %s6 : !s
  %m6 = gpt.mask %c6, %strict : !s, !b
  %p6 = gpt.softmax %m6 : !s
  return %p, %p1, %p2, %p3, %p4, %p5, %p6 : !s, !s, !s, !s, !s, !s, !s
}

// What doubles at every op is not read to its end.
// CHECK-LABEL: func @doubled
// CHECK:       gpt.mask
func.func @doubled(%q: tensor<2x2x8xf32>) -> tensor<2x2x2xf32> {
  %d0 = arith.constant dense<0> : tensor<2x2xi32>
  %c0 = arith.cmpi sge, %d0, %d0 : tensor<2x2xi32>
  %c1 = arith.andi %c0, %c0 : tensor<2x2xi1>
  %c2 = arith.andi %c1, %c1 : tensor<2x2xi1>
  %c3 = arith.andi %c2, %c2 : tensor<2x2xi1>
  %c4 = arith.andi %c3, %c3 : tensor<2x2xi1>
  %c5 = arith.andi %c4, %c4 : tensor<2x2xi1>
  %c6 = arith.andi %c5, %c5 : tensor<2x2xi1>
  %c7 = arith.andi %c6, %c6 : tensor<2x2xi1>
  %c8 = arith.andi %c7, %c7 : tensor<2x2xi1>
  %c9 = arith.andi %c8, %c8 : tensor<2x2xi1>
  %c10 = arith.andi %c9, %c9 : tensor<2x2xi1>
  %c11 = arith.andi %c10, %c10 : tensor<2x2xi1>
  %c12 = arith.andi %c11, %c11 : tensor<2x2xi1>
  %c13 = arith.andi %c12, %c12 : tensor<2x2xi1>
  %c14 = arith.andi %c13, %c13 : tensor<2x2xi1>
  %c15 = arith.andi %c14, %c14 : tensor<2x2xi1>
  %c16 = arith.andi %c15, %c15 : tensor<2x2xi1>
  %c17 = arith.andi %c16, %c16 : tensor<2x2xi1>
  %c18 = arith.andi %c17, %c17 : tensor<2x2xi1>
  %c19 = arith.andi %c18, %c18 : tensor<2x2xi1>
  %c20 = arith.andi %c19, %c19 : tensor<2x2xi1>
  %c21 = arith.andi %c20, %c20 : tensor<2x2xi1>
  %c22 = arith.andi %c21, %c21 : tensor<2x2xi1>
  %c23 = arith.andi %c22, %c22 : tensor<2x2xi1>
  %c24 = arith.andi %c23, %c23 : tensor<2x2xi1>
  %c25 = arith.andi %c24, %c24 : tensor<2x2xi1>
  %c26 = arith.andi %c25, %c25 : tensor<2x2xi1>
  %c27 = arith.andi %c26, %c26 : tensor<2x2xi1>
  %c28 = arith.andi %c27, %c27 : tensor<2x2xi1>
  %c29 = arith.andi %c28, %c28 : tensor<2x2xi1>
  %c30 = arith.andi %c29, %c29 : tensor<2x2xi1>
  %c31 = arith.andi %c30, %c30 : tensor<2x2xi1>
  %c32 = arith.andi %c31, %c31 : tensor<2x2xi1>
  %c33 = arith.andi %c32, %c32 : tensor<2x2xi1>
  %c34 = arith.andi %c33, %c33 : tensor<2x2xi1>
  %c35 = arith.andi %c34, %c34 : tensor<2x2xi1>
  %c36 = arith.andi %c35, %c35 : tensor<2x2xi1>
  %c37 = arith.andi %c36, %c36 : tensor<2x2xi1>
  %c38 = arith.andi %c37, %c37 : tensor<2x2xi1>
  %c39 = arith.andi %c38, %c38 : tensor<2x2xi1>
  %c40 = arith.andi %c39, %c39 : tensor<2x2xi1>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %m = gpt.mask %s, %c40 : tensor<2x2x2xf32>, tensor<2x2xi1>
  %p = gpt.softmax %m : tensor<2x2x2xf32>
  return %p : tensor<2x2x2xf32>
}

// Sums of i1 wrap: 0 - 1 is 1.
// CHECK-LABEL: func @one_bit
// CHECK: gpt.mask
func.func @one_bit(%q: tensor<1x2x8xf32>) -> tensor<1x2x2xf32> {
  %i = arith.constant dense<[[true], [false]]> : tensor<2x1xi1>
  %j = arith.constant dense<[true, false]> : tensor<2xi1>
  %a = gpt.broadcast %i like %i, %j : tensor<2x1xi1>, tensor<2x1xi1>, tensor<2xi1> -> tensor<2x2xi1>
  %b = gpt.broadcast %j like %i, %j : tensor<2xi1>, tensor<2x1xi1>, tensor<2xi1> -> tensor<2x2xi1>
  %z = arith.constant dense<false> : tensor<2x2xi1>
  %d = arith.subi %a, %b : tensor<2x2xi1>
  %see = arith.cmpi sge, %d, %z : tensor<2x2xi1>
  %s = gpt.matmul %q, %q transpose_b : tensor<1x2x8xf32>, tensor<1x2x8xf32> -> tensor<1x2x2xf32>
  %m = gpt.mask %s, %see : tensor<1x2x2xf32>, tensor<2x2xi1>
  %p = gpt.softmax %m : tensor<1x2x2xf32>
  return %p : tensor<1x2x2xf32>
}

// Numbers that no register of the compiler holds.
// CHECK-LABEL: func @wide
// CHECK: gpt.mask
// CHECK: gpt.mask
func.func @wide(%q: tensor<1x2x8xf32>) -> tensor<1x2x2xf32> {
  %number = arith.constant 1267650600228229401496703205376 : i128
  %a = tensor.splat %number : tensor<2x2xi128>
  %b = arith.constant dense<[[1267650600228229401496703205376, 0], [1, 2]]> : tensor<2x2xi128>
  %see = arith.cmpi sge, %a, %a : tensor<2x2xi128>
  %hide = arith.cmpi slt, %b, %a : tensor<2x2xi128>
  %s = gpt.matmul %q, %q transpose_b : tensor<1x2x8xf32>, tensor<1x2x8xf32> -> tensor<1x2x2xf32>
  %m = gpt.mask %s, %see : tensor<1x2x2xf32>, tensor<2x2xi1>
  %n = gpt.mask %m, %hide : tensor<1x2x2xf32>, tensor<2x2xi1>
  %p = gpt.softmax %n : tensor<1x2x2xf32>
  return %p : tensor<1x2x2xf32>
}

// A constant that is not written out.
// CHECK-LABEL: func @sparse
// CHECK: gpt.mask
func.func @sparse(%q: tensor<1x2x8xf32>, %i: tensor<2x2xi32>) -> tensor<1x2x2xf32> {
  %j = arith.constant sparse<[[0, 1]], [1]> : tensor<2x2xi32>
  %see = arith.cmpi sge, %i, %j : tensor<2x2xi32>
  %s = gpt.matmul %q, %q transpose_b : tensor<1x2x8xf32>, tensor<1x2x8xf32> -> tensor<1x2x2xf32>
  %m = gpt.mask %s, %see : tensor<1x2x2xf32>, tensor<2x2xi1>
  %p = gpt.softmax %m : tensor<1x2x2xf32>
  return %p : tensor<1x2x2xf32>
}
