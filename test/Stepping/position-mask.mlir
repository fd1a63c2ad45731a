// RUN: gptc-opt %s --gpt-canonicalize-attention | FileCheck %s
//
// Masks that compare the positions of queries and keys.

!s = tensor<2x?x?xf32>
!w = tensor<2x?x?xi32>
!b = tensor<2x?x?xi1>

// CHECK-LABEL: func @at_least
// CHECK-NEXT:  %[[S:.*]] = gpt.matmul
// CHECK-NEXT:  %[[M:.*]] = gpt.causal_mask %[[S]] : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax %[[M]]
func.func @at_least(%q: tensor<2x?x8xf32>, %tokens: tensor<?xi32>) -> !s {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %tokens : tensor<?xi32>
  %n = tensor.dim %tokens, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %i = gpt.broadcast %column like %s : tensor<?x1xi32>, !s -> !w
  %j = gpt.broadcast %pos like %s : tensor<?xi32>, !s -> !w
  %see = arith.cmpi sge, %i, %j : !w
  %m = gpt.mask %s, %see : !s, !b
  %p = gpt.softmax %m : !s
  return %p : !s
}

// j < i + 1 and i - j < 3, along [T, T] of their own; a select.
// CHECK-LABEL: func @window
// CHECK-NEXT:  gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 3 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
func.func @window(%q: tensor<2x?x8xf32>, %tokens: tensor<?xi32>) -> !s {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %tokens : tensor<?xi32>
  %n = tensor.dim %tokens, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %column like %column, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
  %j = gpt.broadcast %pos like %i : tensor<?xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %one = arith.constant dense<1> : tensor<i32>
  %ones = gpt.broadcast %one like %i : tensor<i32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %next = arith.addi %i, %ones : tensor<?x?xi32>
  %before = arith.cmpi slt, %j, %next : tensor<?x?xi32>
  %far = arith.subi %i, %j : tensor<?x?xi32>
  %three = arith.constant dense<3> : tensor<1x1xi32>
  %threes = gpt.broadcast %three like %i : tensor<1x1xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %near = arith.cmpi slt, %far, %threes : tensor<?x?xi32>
  %both = arith.andi %before, %near : tensor<?x?xi1>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %see = gpt.broadcast %both like %s : tensor<?x?xi1>, !s -> !b
  %none = arith.constant dense<0xFF800000> : tensor<f32>
  %hidden = gpt.broadcast %none like %s : tensor<f32>, !s -> !s
  %m = arith.select %see, %s, %hidden : !b, !s
  %p = gpt.softmax %m : !s
  return %p : !s
}

// Which keys are hidden: j > i or j <= i - 2; a select, an additive mask, and
// the same negated.
// CHECK-LABEL: func @hidden
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 2 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 2 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 2 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
func.func @hidden(%q: tensor<2x?x8xf32>, %tokens: tensor<?xi32>) -> (!s, !s, !s) {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %tokens : tensor<?xi32>
  %n = tensor.dim %tokens, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %column like %column, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
  %j = gpt.broadcast %pos like %i : tensor<?xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %two = arith.constant dense<2> : tensor<i32>
  %twos = gpt.broadcast %two like %i : tensor<i32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %first = arith.subi %i, %twos : tensor<?x?xi32>
  %after = arith.cmpi sgt, %j, %i : tensor<?x?xi32>
  %far = arith.cmpi sle, %j, %first : tensor<?x?xi32>
  %hide = arith.ori %after, %far : tensor<?x?xi1>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %none = arith.constant dense<0xFF800000> : tensor<f32>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %wide = gpt.broadcast %hide like %s : tensor<?x?xi1>, !s -> !b
  %hidden = gpt.broadcast %none like %s : tensor<f32>, !s -> !s
  %m = arith.select %wide, %hidden, %s : !b, !s
  %p = gpt.softmax %m : !s
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %zeros1 = gpt.broadcast %zero like %i : tensor<f32>, tensor<?x?xi32> -> tensor<?x?xf32>
  %hidden1 = gpt.broadcast %none like %i : tensor<f32>, tensor<?x?xi32> -> tensor<?x?xf32>
  %add = arith.select %hide, %hidden1, %zeros1 : tensor<?x?xi1>, tensor<?x?xf32>
  %m1 = gpt.mask %s1, %add : !s, tensor<?x?xf32>
  %p1 = gpt.softmax %m1 : !s
  %true = arith.constant dense<true> : tensor<i1>
  %all = gpt.broadcast %true like %i : tensor<i1>, tensor<?x?xi32> -> tensor<?x?xi1>
  %see = arith.xori %all, %hide : tensor<?x?xi1>
  %s2 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m2 = gpt.mask %s2, %see fill -1.0e9 : !s, tensor<?x?xi1>
  %p2 = gpt.softmax %m2 : !s
  return %p, %p1, %p2 : !s, !s, !s
}

// Constants: queries 1 and 2 of three keys; bottom-right. Then counted from 5.
// CHECK-LABEL: func @constants
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 1 : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
func.func @constants(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
  %i = arith.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %j = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %s = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %a = gpt.broadcast %i like %s : tensor<2x1xi32>, tensor<1x2x3xf32> -> tensor<1x2x3xi32>
  %b = gpt.broadcast %j like %s : tensor<3xi32>, tensor<1x2x3xf32> -> tensor<1x2x3xi32>
  %see = arith.cmpi sle, %b, %a : tensor<1x2x3xi32>
  %m = gpt.mask %s, %see : tensor<1x2x3xf32>, tensor<1x2x3xi1>
  %p = gpt.softmax %m : tensor<1x2x3xf32>
  %k5 = arith.constant dense<[[5, 6, 7]]> : tensor<1x3xi32>
  %i6 = arith.constant dense<[[6], [7]]> : tensor<2x1xi32>
  %s1 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %a1 = gpt.broadcast %i6 like %s1 : tensor<2x1xi32>, tensor<1x2x3xf32> -> tensor<1x2x3xi32>
  %b1 = gpt.broadcast %k5 like %s1 : tensor<1x3xi32>, tensor<1x2x3xf32> -> tensor<1x2x3xi32>
  %upper = arith.cmpi sge, %a1, %b1 : tensor<1x2x3xi32>
  %lower = arith.cmpi sle, %a1, %b1 : tensor<1x2x3xi32>
  %same = arith.andi %upper, %lower : tensor<1x2x3xi1>
  %m1 = gpt.mask %s1, %same : tensor<1x2x3xf32>, tensor<1x2x3xi1>
  %p1 = gpt.softmax %m1 : tensor<1x2x3xf32>
  return %p, %p1 : tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// The window alone, where another mask is causal: behind it, before it (and a
// bound that the causal mask implies), both as comparisons.
// CHECK-LABEL: func @window_alone
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 4 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 4 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softcap
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.mask %{{.*}}, %{{.*}} : tensor<2x?x?xf32>, tensor<?xi1>
// CHECK-NEXT:  gpt.scale
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 4 : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
func.func @window_alone(%q: tensor<2x?x8xf32>, %tokens: tensor<?xi32>, %pad: tensor<?xi1>) -> (!s, !s, !s) {
  %c0 = arith.constant 0 : index
  %pos = gpt.positions %tokens : tensor<?xi32>
  %n = tensor.dim %tokens, %c0 : tensor<?xi32>
  %column = tensor.expand_shape %pos [[0, 1]] output_shape [%n, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %column like %column, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
  %j = gpt.broadcast %pos like %i : tensor<?xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %four = arith.constant dense<4> : tensor<i32>
  %fours = gpt.broadcast %four like %i : tensor<i32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %far = arith.subi %i, %j : tensor<?x?xi32>
  %near = arith.cmpi slt, %far, %fours : tensor<?x?xi32>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c = gpt.causal_mask %s : !s
  %m = gpt.mask %c, %near : !s, tensor<?x?xi1>
  %p = gpt.softmax %m : !s
  %end = arith.addi %j, %fours : tensor<?x?xi32>
  %near1 = arith.cmpi sgt, %end, %i : tensor<?x?xi32>
  %ahead = arith.addi %i, %fours : tensor<?x?xi32>
  %most = arith.cmpi sle, %j, %ahead : tensor<?x?xi32>
  %both = arith.andi %near1, %most : tensor<?x?xi1>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %m1 = gpt.mask %s1, %both : !s, tensor<?x?xi1>
  %t1 = gpt.softcap %m1 at 5.0 : !s
  %c1 = gpt.causal_mask %t1 : !s
  %p1 = gpt.softmax %c1 : !s
  %before = arith.cmpi sle, %j, %i : tensor<?x?xi32>
  %s2 = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !s
  %c2 = gpt.mask %s2, %before : !s, tensor<?x?xi1>
  %d2 = gpt.mask %c2, %pad : !s, tensor<?xi1>
  %t2 = gpt.scale %d2 by 0.5 : !s
  %m2 = gpt.mask %t2, %near1 : !s, tensor<?x?xi1>
  %p2 = gpt.softmax %m2 : !s
  return %p, %p1, %p2 : !s, !s, !s
}

// Positions of two sequences of known lengths: the last query is at the last
// key, which is one further.
// CHECK-LABEL: func @two_lengths
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
func.func @two_lengths(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>, %x: tensor<2xi32>, %y: tensor<3xi32>) -> tensor<1x2x3xf32> {
  %queries = gpt.positions %x : tensor<2xi32>
  %keys = gpt.positions %y : tensor<3xi32>
  %column = tensor.expand_shape %queries [[0, 1]] output_shape [2, 1] : tensor<2xi32> into tensor<2x1xi32>
  %i = gpt.broadcast %column like %column, %keys : tensor<2x1xi32>, tensor<2x1xi32>, tensor<3xi32> -> tensor<2x3xi32>
  %j = gpt.broadcast %keys like %i : tensor<3xi32>, tensor<2x3xi32> -> tensor<2x3xi32>
  %one = arith.constant dense<1> : tensor<2x3xi32>
  %next = arith.addi %i, %one : tensor<2x3xi32>
  %see = arith.cmpi sge, %next, %j : tensor<2x3xi32>
  %s = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m = gpt.mask %s, %see : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p = gpt.softmax %m : tensor<1x2x3xf32>
  return %p : tensor<1x2x3xf32>
}

// Beside a mask that hides nothing.
// CHECK-LABEL: func @window_and_nothing
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{.*}} window 1 : tensor<1x2x2xf32>
// CHECK-NEXT:  gpt.causal_mask %{{.*}} : tensor<1x2x2xf32>
// CHECK-NEXT:  gpt.softmax
func.func @window_and_nothing(%q: tensor<1x2x8xf32>) -> tensor<1x2x2xf32> {
  %i = arith.constant dense<[[0], [1]]> : tensor<2x1xi32>
  %j = arith.constant dense<[0, 1]> : tensor<2xi32>
  %all = arith.constant dense<true> : tensor<2x2xi1>
  %a = gpt.broadcast %i like %all : tensor<2x1xi32>, tensor<2x2xi1> -> tensor<2x2xi32>
  %b = gpt.broadcast %j like %all : tensor<2xi32>, tensor<2x2xi1> -> tensor<2x2xi32>
  %near = arith.cmpi sle, %a, %b : tensor<2x2xi32>
  %s = gpt.matmul %q, %q transpose_b : tensor<1x2x8xf32>, tensor<1x2x8xf32> -> tensor<1x2x2xf32>
  %m = gpt.mask %s, %near : tensor<1x2x2xf32>, tensor<2x2xi1>
  %n = gpt.mask %m, %all : tensor<1x2x2xf32>, tensor<2x2xi1>
  %c = gpt.causal_mask %n : tensor<1x2x2xf32>
  %p = gpt.softmax %c : tensor<1x2x2xf32>
  return %p : tensor<1x2x2xf32>
}
