// RUN: gptc-opt %s --gpt-canonicalize-attention | FileCheck %s

// Constant factors, wherever they stand, become one of the product: 0.5 at q
// below its rope, 0.25 at k, 1 / 4 and 2 at the scores.
// CHECK-LABEL: func @scales
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<?x32xf32>, %[[K:[a-z0-9]*]]: tensor<4x?x8xf32>
// CHECK-NEXT:  %[[QH:.*]] = gpt.split_heads %[[Q]]
// CHECK-NEXT:  %[[QR:.*]] = gpt.rope %[[QH]]
// CHECK-NEXT:  %[[S:.*]] = gpt.matmul %[[QR]], %[[K]] transpose_b
// CHECK-NEXT:  %[[T:.*]] = gpt.scale %[[S]] by 0.0625
// CHECK-NEXT:  %[[M:.*]] = gpt.causal_mask %[[T]]
// CHECK-NEXT:  gpt.softmax %[[M]]
func.func @scales(%q: tensor<?x32xf32>, %k: tensor<4x?x8xf32>, %pos: tensor<?xi32>) -> tensor<4x?x?xf32> {
  %quarter = arith.constant 0.25 : f32
  %i1 = arith.constant 1 : index
  %n = tensor.dim %k, %i1 : tensor<4x?x8xf32>
  %quarters = tensor.splat %quarter[%n] : tensor<4x?x8xf32>
  %half = arith.constant dense<0.5> : tensor<f32>
  %halves = gpt.broadcast %half like %q : tensor<f32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %qs = arith.mulf %halves, %q : tensor<?x32xf32>
  %qh = gpt.split_heads %qs : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e4, pairs half, dim 8> : tensor<4x?x8xf32>, tensor<?xi32>
  %ks = arith.mulf %k, %quarters : tensor<4x?x8xf32>
  %s = gpt.matmul %qr, %ks transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %four = arith.constant dense<4.0> : tensor<1x1xf32>
  %fours = gpt.broadcast %four like %s : tensor<1x1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %t = arith.divf %s, %fours : tensor<4x?x?xf32>
  %u = gpt.scale %t by 2.0 : tensor<4x?x?xf32>
  %m = gpt.causal_mask %u : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  return %p : tensor<4x?x?xf32>
}

// The scaled q has another user and stays; the product takes q itself.
// CHECK-LABEL: func @scaled_q_is_returned
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>
// CHECK:       %[[QS:.*]] = gpt.scale %[[Q]] by 0.5
// CHECK:       %[[S:.*]] = gpt.matmul %[[Q]], %{{.*}} transpose_b
// CHECK:       gpt.scale %[[S]] by 0.5
// CHECK:       return %{{.*}}, %[[QS]]
func.func @scaled_q_is_returned(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>) -> (tensor<4x?x?xf32>, tensor<4x?x8xf32>) {
  %qs = gpt.scale %q by 0.5 : tensor<4x?x8xf32>
  %s = gpt.matmul %qs, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  return %p, %qs : tensor<4x?x?xf32>, tensor<4x?x8xf32>
}

// A rope is not made twice: its scale stays below it.
// CHECK-LABEL: func @roped_q_is_returned
// CHECK:       gpt.scale
// CHECK-NEXT:  %[[R:.*]] = gpt.rope
// CHECK-NEXT:  %[[S:.*]] = gpt.matmul %[[R]]
// CHECK-NEXT:  gpt.softmax %[[S]]
func.func @roped_q_is_returned(%q: tensor<4x?x8xf32>, %pos: tensor<?xi32>) -> (tensor<4x?x?xf32>, tensor<4x?x8xf32>) {
  %qs = gpt.scale %q by 0.5 : tensor<4x?x8xf32>
  %qr = gpt.rope %qs, %pos <base 1.0e4, pairs half, dim 8> : tensor<4x?x8xf32>, tensor<?xi32>
  %s = gpt.matmul %qr, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  return %p, %qr : tensor<4x?x?xf32>, tensor<4x?x8xf32>
}

// Known when running only: q takes it, a constant beside it stays a constant.
// CHECK-LABEL: func @runtime_scales
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[K:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[A:[a-z0-9]*]]: tensor<1x1x1xf32>, %[[B:[a-z0-9]*]]: tensor<f32>
// CHECK-DAG:   %[[QA:.*]] = gpt.broadcast %[[A]] like %[[Q]]
// CHECK-DAG:   %[[Q1:.*]] = arith.mulf %[[Q]], %[[QA]]
// CHECK-DAG:   %[[QB:.*]] = gpt.broadcast %[[B]] like %[[Q1]]
// CHECK-DAG:   %[[Q2:.*]] = arith.divf %[[Q1]], %[[QB]]
// CHECK:       %[[S:.*]] = gpt.matmul %[[Q2]], %[[K]] transpose_b
// CHECK-NEXT:  %[[T:.*]] = gpt.scale %[[S]] by 0.5
// CHECK-NEXT:  gpt.softmax %[[T]]
func.func @runtime_scales(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %a: tensor<1x1x1xf32>, %b: tensor<f32>) -> tensor<4x?x?xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %h = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %aa = gpt.broadcast %a like %h : tensor<1x1x1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %t = arith.mulf %aa, %h : tensor<4x?x?xf32>
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %n = tensor.dim %s, %i1 : tensor<4x?x?xf32>
  %m = tensor.dim %s, %i2 : tensor<4x?x?xf32>
  %e = tensor.extract %b[] : tensor<f32>
  %bb = tensor.splat %e[%n, %m] : tensor<4x?x?xf32>
  %u = arith.divf %t, %bb : tensor<4x?x?xf32>
  %p = gpt.softmax %u : tensor<4x?x?xf32>
  return %p : tensor<4x?x?xf32>
}

// CHECK-LABEL: func @masks
// CHECK-SAME:  %[[S:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[BIAS:[a-z0-9]*]]: tensor<?x?xf32>, %[[PAD:[a-z0-9]*]]: tensor<?xi1>
// CHECK:       %[[T:.*]] = gpt.matmul
// CHECK-NEXT:  %[[B:.*]] = gpt.mask %[[T]], %[[BIAS]] : tensor<4x?x?xf32>, tensor<?x?xf32>
// CHECK-NEXT:  %[[M:.*]] = gpt.mask %[[B]], %[[PAD]] : tensor<4x?x?xf32>, tensor<?xi1>
// CHECK-NEXT:  %[[F:.*]] = gpt.mask %[[M]], %[[PAD]] fill -10000.0 : tensor<4x?x?xf32>, tensor<?xi1>
// CHECK-NEXT:  gpt.softmax %[[F]]
func.func @masks(%q: tensor<4x?x8xf32>, %bias: tensor<?x?xf32>, %pad: tensor<?xi1>) -> tensor<4x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %wide = gpt.broadcast %bias like %s : tensor<?x?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %b = arith.addf %wide, %s : tensor<4x?x?xf32>
  %see = gpt.broadcast %pad like %s : tensor<?xi1>, tensor<4x?x?xf32> -> tensor<4x?x?xi1>
  %none = arith.constant dense<0xFF800000> : tensor<f32>
  %hidden = gpt.broadcast %none like %s : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %m = arith.select %see, %b, %hidden : tensor<4x?x?xi1>, tensor<4x?x?xf32>
  %large = arith.constant dense<-1.0e4> : tensor<f32>
  %fill = gpt.broadcast %large like %s : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %f = arith.select %see, %m, %fill : tensor<4x?x?xi1>, tensor<4x?x?xf32>
  %p = gpt.softmax %f : tensor<4x?x?xf32>
  return %p : tensor<4x?x?xf32>
}

// masked_fill(hide, -inf): true hides.
// CHECK-LABEL: func @masked_fill
// CHECK-SAME:  %{{.*}}: tensor<4x2x8xf32>, %[[HIDE:[a-z0-9]*]]: tensor<4x2x2xi1>
// CHECK:       %[[ALL:.*]] = arith.constant dense<true> : tensor<4x2x2xi1>
// CHECK:       %[[SEE:.*]] = arith.xori %[[HIDE]], %[[ALL]]
// CHECK:       gpt.mask %{{.*}}, %[[SEE]] : tensor<4x2x2xf32>, tensor<4x2x2xi1>
func.func @masked_fill(%q: tensor<4x2x8xf32>, %hide: tensor<4x2x2xi1>) -> tensor<4x2x2xf32> {
  %none = arith.constant dense<0xFF800000> : tensor<4x2x2xf32>
  %s = gpt.matmul %q, %q transpose_b : tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x2xf32>
  %m = arith.select %hide, %none, %s : tensor<4x2x2xi1>, tensor<4x2x2xf32>
  %p = gpt.softmax %m : tensor<4x2x2xf32>
  return %p : tensor<4x2x2xf32>
}

// Constant masks that are the causal one: bottom-right, so with two queries and
// three keys the first sees two.
// CHECK-LABEL: func @constant_causal
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{[a-z0-9]*}} : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{[a-z0-9]*}} : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{[a-z0-9]*}} window 2 : tensor<1x2x3xf32>
// CHECK-NEXT:  gpt.softmax
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.softmax
func.func @constant_causal(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
  %add = arith.constant dense<[[0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]> : tensor<2x3xf32>
  %s0 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m0 = gpt.mask %s0, %add : tensor<1x2x3xf32>, tensor<2x3xf32>
  %p0 = gpt.softmax %m0 : tensor<1x2x3xf32>
  %see = arith.constant dense<[[[true, true, false], [true, true, true]]]> : tensor<1x2x3xi1>
  %large = arith.constant dense<-1.0e9> : tensor<1x2x3xf32>
  %s1 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m1 = arith.select %see, %s1, %large : tensor<1x2x3xi1>, tensor<1x2x3xf32>
  %p1 = gpt.softmax %m1 : tensor<1x2x3xf32>
  %band = arith.constant dense<[[true, true, false], [false, true, true]]> : tensor<2x3xi1>
  %s2 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m2 = gpt.mask %s2, %band : tensor<1x2x3xf32>, tensor<2x3xi1>
  %p2 = gpt.softmax %m2 : tensor<1x2x3xf32>
  %zero = arith.constant dense<0.0> : tensor<1x3xf32>
  %s3 = gpt.matmul %q, %k transpose_b : tensor<1x2x8xf32>, tensor<1x3x8xf32> -> tensor<1x2x3xf32>
  %m3 = gpt.mask %s3, %zero : tensor<1x2x3xf32>, tensor<1x3xf32>
  %p3 = gpt.softmax %m3 : tensor<1x2x3xf32>
  return %p0, %p1, %p2, %p3 : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// A constant for the longest sequence, cut to this one.
// CHECK-LABEL: func @cut_to_length
// CHECK:       gpt.matmul
// CHECK-NEXT:  gpt.causal_mask %{{[a-z0-9]*}} : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
func.func @cut_to_length(%q: tensor<2x?x8xf32>) -> tensor<2x?x?xf32> {
  %tril = arith.constant dense<[[[true, false, false], [true, true, false], [true, true, true]]]> : tensor<1x3x3xi1>
  %i1 = arith.constant 1 : index
  %n = tensor.dim %q, %i1 : tensor<2x?x8xf32>
  %m = tensor.extract_slice %tril[0, 0, 0] [1, %n, %n] [1, 1, 1] : tensor<1x3x3xi1> to tensor<1x?x?xi1>
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %h = gpt.mask %s, %m : tensor<2x?x?xf32>, tensor<1x?x?xi1>
  %p = gpt.softmax %h : tensor<2x?x?xf32>
  return %p : tensor<2x?x?xf32>
}

// Nearly causal: aligned top-left; a hole; hidden by a number that a score can
// outweigh; a row that -1e9 makes an even mixture; other masks for other heads;
// -1e9 below padding, which may leave nothing else.
// CHECK-LABEL: func @not_causal
// CHECK-NOT:   causal_mask
// CHECK:       return
func.func @not_causal(%q: tensor<2x2x8xf32>, %k: tensor<2x3x8xf32>, %pad: tensor<3xi1>) -> (tensor<2x2x3xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>, tensor<2x3x2xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>) {
  %left = arith.constant dense<[[true, false, false], [true, true, false]]> : tensor<2x3xi1>
  %s0 = gpt.matmul %q, %k transpose_b : tensor<2x2x8xf32>, tensor<2x3x8xf32> -> tensor<2x2x3xf32>
  %m0 = gpt.mask %s0, %left : tensor<2x2x3xf32>, tensor<2x3xi1>
  %p0 = gpt.softmax %m0 : tensor<2x2x3xf32>
  %hole = arith.constant dense<[[true, true, false], [true, false, true]]> : tensor<2x3xi1>
  %s1 = gpt.matmul %q, %k transpose_b : tensor<2x2x8xf32>, tensor<2x3x8xf32> -> tensor<2x2x3xf32>
  %m1 = gpt.mask %s1, %hole : tensor<2x2x3xf32>, tensor<2x3xi1>
  %p1 = gpt.softmax %m1 : tensor<2x2x3xf32>
  %small = arith.constant dense<[[0.0, 0.0, -1.0e4], [0.0, 0.0, 0.0]]> : tensor<2x3xf32>
  %s2 = gpt.matmul %q, %k transpose_b : tensor<2x2x8xf32>, tensor<2x3x8xf32> -> tensor<2x2x3xf32>
  %m2 = gpt.mask %s2, %small : tensor<2x2x3xf32>, tensor<2x3xf32>
  %p2 = gpt.softmax %m2 : tensor<2x2x3xf32>
  %empty = arith.constant dense<[[-1.0e9, -1.0e9], [0.0, -1.0e9], [0.0, 0.0]]> : tensor<3x2xf32>
  %s3 = gpt.matmul %k, %q transpose_b : tensor<2x3x8xf32>, tensor<2x2x8xf32> -> tensor<2x3x2xf32>
  %m3 = gpt.mask %s3, %empty : tensor<2x3x2xf32>, tensor<3x2xf32>
  %p3 = gpt.softmax %m3 : tensor<2x3x2xf32>
  %heads = arith.constant dense<[[[true, true, false], [true, true, true]], [[true, true, true], [true, true, true]]]> : tensor<2x2x3xi1>
  %s4 = gpt.matmul %q, %k transpose_b : tensor<2x2x8xf32>, tensor<2x3x8xf32> -> tensor<2x2x3xf32>
  %m4 = gpt.mask %s4, %heads : tensor<2x2x3xf32>, tensor<2x2x3xi1>
  %p4 = gpt.softmax %m4 : tensor<2x2x3xf32>
  %large = arith.constant dense<[[0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<2x3xf32>
  %s5 = gpt.matmul %q, %k transpose_b : tensor<2x2x8xf32>, tensor<2x3x8xf32> -> tensor<2x2x3xf32>
  %l5 = gpt.mask %s5, %large : tensor<2x2x3xf32>, tensor<2x3xf32>
  %m5 = gpt.mask %l5, %pad : tensor<2x2x3xf32>, tensor<3xi1>
  %p5 = gpt.softmax %m5 : tensor<2x2x3xf32>
  return %p0, %p1, %p2, %p3, %p4, %p5 : tensor<2x2x3xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>, tensor<2x3x2xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>
}

// 50 * tanh(x * 0.02) and -50 * tanh(x / 100).
// CHECK-LABEL: func @softcap
// CHECK:       %[[S:.*]] = gpt.matmul
// CHECK-NEXT:  %[[C:.*]] = gpt.softcap %[[S]] at 50.0
// CHECK-NEXT:  gpt.softmax %[[C]]
// CHECK:       %[[S1:.*]] = gpt.matmul
// CHECK-NEXT:  %[[T1:.*]] = gpt.scale %[[S1]] by -0.5
// CHECK-NEXT:  %[[C1:.*]] = gpt.softcap %[[T1]] at 50.0
// CHECK-NEXT:  gpt.softmax %[[C1]]
func.func @softcap(%q: tensor<2x2x8xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %a = gpt.scale %s by 0.02 : tensor<2x2x2xf32>
  %t = math.tanh %a : tensor<2x2x2xf32>
  %c = gpt.scale %t by 50.0 : tensor<2x2x2xf32>
  %p = gpt.softmax %c : tensor<2x2x2xf32>
  %hundred = arith.constant dense<100.0> : tensor<2x2x2xf32>
  %fifty = arith.constant dense<-50.0> : tensor<2x2x2xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %a1 = arith.divf %s1, %hundred : tensor<2x2x2xf32>
  %t1 = math.tanh %a1 : tensor<2x2x2xf32>
  %c1 = arith.mulf %fifty, %t1 : tensor<2x2x2xf32>
  %p1 = gpt.softmax %c1 : tensor<2x2x2xf32>
  return %p, %p1 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

// What is taken away is a mask of the negated numbers; a constant is negated
// here, and may say the causal mask.
// CHECK-LABEL: func @subtracted
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<2x?x8xf32>, %[[A:[a-z0-9]*]]: tensor<?x?xf32>, %[[R:[a-z0-9]*]]: tensor<2x2x8xf32>
// CHECK:       %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT:  %[[M:.*]] = gpt.mask %{{.*}}, %[[N]]
// CHECK-NEXT:  gpt.softmax %[[M]]
// CHECK:       %[[C:.*]] = gpt.causal_mask
// CHECK-NEXT:  gpt.softmax %[[C]]
func.func @subtracted(%q: tensor<2x?x8xf32>, %a: tensor<?x?xf32>, %r: tensor<2x2x8xf32>) -> (tensor<2x?x?xf32>, tensor<2x2x2xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %w = gpt.broadcast %a like %s : tensor<?x?xf32>, tensor<2x?x?xf32> -> tensor<2x?x?xf32>
  %m = arith.subf %s, %w : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  %t = gpt.matmul %r, %r transpose_b : tensor<2x2x8xf32>, tensor<2x2x8xf32> -> tensor<2x2x2xf32>
  %k = arith.constant dense<[[0.0, 1.0e10], [0.0, 0.0]]> : tensor<2x2xf32>
  %c = gpt.broadcast %k like %t : tensor<2x2xf32>, tensor<2x2x2xf32> -> tensor<2x2x2xf32>
  %n = arith.subf %t, %c : tensor<2x2x2xf32>
  %o = gpt.softmax %n : tensor<2x2x2xf32>
  return %p, %o : tensor<2x?x?xf32>, tensor<2x2x2xf32>
}

// Scores that are taken away from something are no scores any more.
// CHECK-LABEL: func @subtracted_scores
// CHECK:       arith.subf %{{.*}}, %{{.*}} : tensor<2x?x?xf32>
// CHECK-NEXT:  gpt.softmax
func.func @subtracted_scores(%q: tensor<2x?x8xf32>, %a: tensor<2x?x?xf32>) -> tensor<2x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = arith.subf %a, %s : tensor<2x?x?xf32>
  %p = gpt.softmax %m : tensor<2x?x?xf32>
  return %p : tensor<2x?x?xf32>
}

// An attention that nothing uses goes, also when it is the next one.
// CHECK-LABEL: func @dead_attention
// CHECK-COUNT-1: gpt.softmax
// CHECK-NOT:   gpt.softmax
// CHECK:       return
func.func @dead_attention(%q: tensor<2x?x8xf32>, %r: tensor<2x?x8xf32>) -> tensor<2x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p = gpt.softmax %s : tensor<2x?x?xf32>
  %s1 = gpt.matmul %r, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p1 = gpt.softmax %s1 : tensor<2x?x?xf32>
  %s2 = gpt.matmul %r, %r transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %p2 = gpt.softmax %s2 : tensor<2x?x?xf32>
  %t2 = gpt.scale %p2 by 2.0 : tensor<2x?x?xf32>
  return %p : tensor<2x?x?xf32>
}

// A mask that is computed along the scores needs only its own dimensions, those
// of what it is computed from together: rows and columns; keys; one tensor that
// has all, beside a number.
// CHECK-LABEL: func @computed_along_scores
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[I:[a-z0-9]*]]: tensor<?x1xi32>, %[[J:[a-z0-9]*]]: tensor<?xi32>, %[[X:[a-z0-9]*]]: tensor<?x?xf32>
// CHECK:       %[[A:.*]] = gpt.broadcast %[[I]] like %[[I]], %[[J]] : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
// CHECK-NEXT:  %[[B:.*]] = gpt.broadcast %[[J]] like %[[I]], %[[J]]
// CHECK-NEXT:  %[[E:.*]] = arith.cmpi eq, %[[A]], %[[B]] : tensor<?x?xi32>
// CHECK-NEXT:  gpt.mask %{{.*}}, %[[E]] : tensor<4x?x?xf32>, tensor<?x?xi1>
// CHECK:       %[[W:.*]] = gpt.broadcast %{{.*}} like %[[J]] : tensor<i32>, tensor<?xi32> -> tensor<?xi32>
// CHECK-NEXT:  %[[N:.*]] = arith.cmpi ne, %[[J]], %[[W]] : tensor<?xi32>
// CHECK-NEXT:  gpt.mask %{{.*}}, %[[N]] : tensor<4x?x?xf32>, tensor<?xi1>
// CHECK:       %[[V:.*]] = gpt.broadcast %{{.*}} like %[[X]] : tensor<f32>
// CHECK-NEXT:  %[[S:.*]] = arith.mulf %[[X]], %[[V]] : tensor<?x?xf32>
// CHECK-NEXT:  gpt.mask %{{.*}}, %[[S]] : tensor<4x?x?xf32>, tensor<?x?xf32>
func.func @computed_along_scores(%q: tensor<4x?x8xf32>, %i: tensor<?x1xi32>, %j: tensor<?xi32>, %x: tensor<?x?xf32>) -> (tensor<4x?x?xf32>, tensor<4x?x?xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %a = gpt.broadcast %i like %s : tensor<?x1xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %b = gpt.broadcast %j like %t : tensor<?xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %e = arith.cmpi eq, %a, %b : tensor<4x?x?xi32>
  %m = gpt.mask %t, %e : tensor<4x?x?xf32>, tensor<4x?x?xi1>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %b1 = gpt.broadcast %j like %s1 : tensor<?xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %none = arith.constant dense<-1> : tensor<1xi32>
  %c1 = gpt.broadcast %none like %s1 : tensor<1xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %e1 = arith.cmpi ne, %b1, %c1 : tensor<4x?x?xi32>
  %hidden = arith.constant dense<0xFF800000> : tensor<f32>
  %h1 = gpt.broadcast %hidden like %s1 : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %m1 = arith.select %e1, %s1, %h1 : tensor<4x?x?xi1>, tensor<4x?x?xf32>
  %p1 = gpt.softmax %m1 : tensor<4x?x?xf32>
  %s2 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %x2 = gpt.broadcast %x like %s2 : tensor<?x?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %half = arith.constant 0.5 : f32
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %n = tensor.dim %s2, %i1 : tensor<4x?x?xf32>
  %k = tensor.dim %s2, %i2 : tensor<4x?x?xf32>
  %halves = tensor.splat %half[%n, %k] : tensor<4x?x?xf32>
  %f2 = arith.mulf %x2, %halves : tensor<4x?x?xf32>
  %m2 = arith.addf %s2, %f2 : tensor<4x?x?xf32>
  %p2 = gpt.softmax %m2 : tensor<4x?x?xf32>
  return %p, %p1, %p2 : tensor<4x?x?xf32>, tensor<4x?x?xf32>, tensor<4x?x?xf32>
}

// One that has all dimensions of the scores does not ask them either.
// CHECK-LABEL: func @by_head
// CHECK-SAME:  %{{.*}}: tensor<4x?x8xf32>, %[[H:[a-z0-9]*]]: tensor<4x1x1xf32>, %[[I:[a-z0-9]*]]: tensor<?x1xf32>, %[[J:[a-z0-9]*]]: tensor<?xf32>
// CHECK-DAG:   %[[A:.*]] = gpt.broadcast %[[H]] like %[[H]], %[[I]], %[[J]] : tensor<4x1x1xf32>, tensor<4x1x1xf32>, tensor<?x1xf32>, tensor<?xf32> -> tensor<4x?x?xf32>
// CHECK-NOT:   like %{{[a-z0-9]*}} :
// CHECK:       return
func.func @by_head(%q: tensor<4x?x8xf32>, %h: tensor<4x1x1xf32>, %i: tensor<?x1xf32>, %j: tensor<?xf32>) -> tensor<4x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %a = gpt.broadcast %h like %s : tensor<4x1x1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %b = gpt.broadcast %i like %s : tensor<?x1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %c = gpt.broadcast %j like %s : tensor<?xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %ab = arith.mulf %a, %b : tensor<4x?x?xf32>
  %abc = arith.mulf %ab, %c : tensor<4x?x?xf32>
  %m = gpt.mask %s, %abc : tensor<4x?x?xf32>, tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  return %p : tensor<4x?x?xf32>
}

// Made once along the scores of the first layer, used in both.
// CHECK-LABEL: func @mask_of_two_layers
// CHECK-NOT:   like %{{.*}} : {{.*}} tensor<4x?x?xf32> ->
// CHECK:       return
func.func @mask_of_two_layers(%q: tensor<4x?x8xf32>, %i: tensor<?x1xi32>, %j: tensor<?xi32>) -> (tensor<4x?x?xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %a = gpt.broadcast %i like %s : tensor<?x1xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %b = gpt.broadcast %j like %s : tensor<?xi32>, tensor<4x?x?xf32> -> tensor<4x?x?xi32>
  %e = arith.cmpi eq, %a, %b : tensor<4x?x?xi32>
  %m = gpt.mask %s, %e : tensor<4x?x?xf32>, tensor<4x?x?xi1>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m1 = gpt.mask %s1, %e : tensor<4x?x?xf32>, tensor<4x?x?xi1>
  %p1 = gpt.softmax %m1 : tensor<4x?x?xf32>
  return %p, %p1 : tensor<4x?x?xf32>, tensor<4x?x?xf32>
}

// Sizes that are needed otherwise are those of q and k.
// CHECK-LABEL: func @sizes
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[K:[a-z0-9]*]]: tensor<4x?x8xf32>
// CHECK-DAG:   %[[I1:.*]] = arith.constant 1 : index
// CHECK-DAG:   %[[N:.*]] = tensor.dim %[[Q]], %[[I1]]
// CHECK-DAG:   %[[M:.*]] = tensor.dim %[[K]], %[[I1]]
// CHECK:       return %{{.*}}, %[[N]], %[[M]]
func.func @sizes(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>) -> (tensor<4x?x?xf32>, index, index) {
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %n = tensor.dim %s, %i1 : tensor<4x?x?xf32>
  %t = gpt.causal_mask %s : tensor<4x?x?xf32>
  %m = tensor.dim %t, %i2 : tensor<4x?x?xf32>
  %p = gpt.softmax %t : tensor<4x?x?xf32>
  return %p, %n, %m : tensor<4x?x?xf32>, index, index
}

// Sizes of another tensor than scores stay.
// CHECK-LABEL: func @sizes_of_an_argument
// CHECK-SAME:  %{{.*}}: tensor<4x?x8xf32>, %[[I:[a-z0-9]*]]: tensor<?x1xi32>, %[[X:[a-z0-9]*]]: tensor<?x?xi32>
// CHECK:       gpt.broadcast %[[I]] like %[[X]]
// CHECK-NEXT:  arith.cmpi eq, %{{.*}}, %[[X]] : tensor<?x?xi32>
func.func @sizes_of_an_argument(%q: tensor<4x?x8xf32>, %i: tensor<?x1xi32>, %x: tensor<?x?xi32>) -> tensor<4x?x?xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %a = gpt.broadcast %i like %x : tensor<?x1xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %e = arith.cmpi eq, %a, %x : tensor<?x?xi32>
  %m = gpt.mask %s, %e : tensor<4x?x?xf32>, tensor<?x?xi1>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  return %p : tensor<4x?x?xf32>
}

// A factor is rounded to f32 once, by itself: 1e-44 to 9.80908925e-45, 1e-46 to 0.
// CHECK-LABEL: func @rounded_scales
// CHECK:       gpt.scale {{.*}} by 2.94272{{[0-9]*e-6}}
// CHECK:       gpt.scale {{.*}} by 0.0
func.func @rounded_scales(%q: tensor<4x?x8xf32>) -> (tensor<4x?x?xf32>, tensor<4x?x?xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 1.0e-44 : tensor<4x?x?xf32>
  %u = gpt.scale %t by 3.0e38 : tensor<4x?x?xf32>
  %p = gpt.softmax %u : tensor<4x?x?xf32>
  %r = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %v = gpt.scale %r by 1.0e-46 : tensor<4x?x?xf32>
  %w = gpt.scale %v by 1.0e38 : tensor<4x?x?xf32>
  %o = gpt.softmax %w : tensor<4x?x?xf32>
  return %p, %o : tensor<4x?x?xf32>, tensor<4x?x?xf32>
}
