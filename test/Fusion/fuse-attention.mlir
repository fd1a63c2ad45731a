// RUN: gptc-opt %s --gpt-canonicalize-attention --gpt-fuse-attention | FileCheck %s

// Page:
// CHECK-LABEL: func @dense
// CHECK-SAME:  %[[Q:.*]]: tensor<4x?x8xf32>, %[[K:.*]]: tensor<2x?x8xf32>, %[[V:.*]]: tensor<2x?x8xf32>
// CHECK-NEXT:  gpt.flash_attention %[[Q]], %[[K]], %[[V]] causal scale 0.5 groups 2
// CHECK-NEXT:  return
func.func @dense(%q: tensor<4x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %m = gpt.causal_mask %t : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// CHECK-LABEL: func @no_mask_no_scale
// CHECK-NOT:   causal
// CHECK:       gpt.flash_attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.0
func.func @no_mask_no_scale(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %p = gpt.softmax %s : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// The scale at q, at the scores, and as a division: 0.5 * 0.5 / 4.
// CHECK-LABEL: func @scale_spellings
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x3x8xf32>
// CHECK:       gpt.flash_attention %[[Q]], %{{.*}}, %{{.*}} causal scale 0.0625
func.func @scale_spellings(%q: tensor<4x3x8xf32>, %k: tensor<4x5x8xf32>, %v: tensor<4x5x8xf32>) -> tensor<4x3x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x3x5xf32>
  %four = arith.constant dense<4.0> : tensor<4x3x5xf32>
  %qs = gpt.scale %q by 0.5 : tensor<4x3x8xf32>
  %s = gpt.matmul %qs, %k transpose_b : tensor<4x3x8xf32>, tensor<4x5x8xf32> -> tensor<4x3x5xf32>
  %t = arith.mulf %half, %s : tensor<4x3x5xf32>
  %m = gpt.causal_mask %t : tensor<4x3x5xf32>
  %d = arith.divf %m, %four : tensor<4x3x5xf32>
  %p = gpt.softmax %d : tensor<4x3x5xf32>
  %o = gpt.matmul %p, %v : tensor<4x3x5xf32>, tensor<4x5x8xf32> -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

// Negative and zero factors at the product are factors.
// CHECK-LABEL: func @negative_scale
// CHECK:       gpt.flash_attention {{.*}} causal scale -0.5
// CHECK:       gpt.flash_attention {{.*}} scale 0.0
func.func @negative_scale(%q: tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x3x8xf32>) {
  %h = arith.constant dense<0.5> : tensor<4x3x8xf32>
  %qs = arith.mulf %q, %h : tensor<4x3x8xf32>
  %s = gpt.matmul %qs, %q transpose_b : tensor<4x3x8xf32>, tensor<4x3x8xf32> -> tensor<4x3x3xf32>
  %n = arith.negf %s : tensor<4x3x3xf32>
  %m = gpt.causal_mask %n : tensor<4x3x3xf32>
  %p = gpt.softmax %m : tensor<4x3x3xf32>
  %o = gpt.matmul %p, %q : tensor<4x3x3xf32>, tensor<4x3x8xf32> -> tensor<4x3x8xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<4x3x8xf32>, tensor<4x3x8xf32> -> tensor<4x3x3xf32>
  %z1 = gpt.scale %s1 by 0.0 : tensor<4x3x3xf32>
  %p1 = gpt.softmax %z1 : tensor<4x3x3xf32>
  %o1 = gpt.matmul %p1, %q : tensor<4x3x3xf32>, tensor<4x3x8xf32> -> tensor<4x3x8xf32>
  return %o, %o1 : tensor<4x3x8xf32>, tensor<4x3x8xf32>
}

// A factor known when running: q takes it, the rest is fused.
// CHECK-LABEL: func @runtime_scale
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[T:[a-z0-9]*]]: tensor<f32>
// CHECK-NEXT:  %[[W:.*]] = gpt.broadcast %[[T]] like %[[Q]]
// CHECK-NEXT:  %[[QS:.*]] = arith.mulf %[[Q]], %[[W]]
// CHECK-NEXT:  gpt.flash_attention %[[QS]], %[[Q]], %[[Q]] causal scale 0.5
func.func @runtime_scale(%q: tensor<4x?x8xf32>, %t: tensor<f32>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %w = gpt.broadcast %t like %s : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %r = arith.mulf %s, %w : tensor<4x?x?xf32>
  %u = gpt.scale %r by 0.5 : tensor<4x?x?xf32>
  %m = gpt.causal_mask %u : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// Masks: boolean, additive by head, padding; each beside the causal one.
// CHECK-LABEL: func @masks
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[B:[a-z0-9]*]]: tensor<?x?xi1>, %[[A:[a-z0-9]*]]: tensor<4x?x?xf32>, %[[P:[a-z0-9]*]]: tensor<?xi1>
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[B]] scale 1.0
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[A]] causal scale 1.0
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[P]] fill -1.0e9 causal scale 1.0
func.func @masks(%q: tensor<4x?x8xf32>, %b: tensor<?x?xi1>, %a: tensor<4x?x?xf32>, %pad: tensor<?xi1>) -> (tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %b : tensor<4x?x?xf32>, tensor<?x?xi1>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %c1 = gpt.causal_mask %s1 : tensor<4x?x?xf32>
  %m1 = arith.addf %c1, %a : tensor<4x?x?xf32>
  %p1 = gpt.softmax %m1 : tensor<4x?x?xf32>
  %o1 = gpt.matmul %p1, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %s2 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %see = gpt.broadcast %pad like %s2 : tensor<?xi1>, tensor<4x?x?xf32> -> tensor<4x?x?xi1>
  %large = arith.constant dense<-1.0e9> : tensor<f32>
  %fill = gpt.broadcast %large like %s2 : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %m2 = arith.select %see, %s2, %fill : tensor<4x?x?xi1>, tensor<4x?x?xf32>
  %c2 = gpt.causal_mask %m2 : tensor<4x?x?xf32>
  %p2 = gpt.softmax %c2 : tensor<4x?x?xf32>
  %o2 = gpt.matmul %p2, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %o1, %o2 : tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>
}

// Page: Masks, one of each spelling: positions that are compared, along rows
// with tensor.expand_shape, and a window by itself; arith.select of scores and
// a constant; padding, true where a key is visible; numbers of a constant that
// are added. gpt.causal_mask needs none of the first.
// CHECK-LABEL: func @mask_spellings
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %{{.*}}: tensor<?xi32>, %[[K:[a-z0-9]*]]: tensor<?x?xi1>, %[[P:[a-z0-9]*]]: tensor<?xi1>
// CHECK-NEXT:  %[[B:.*]] = arith.constant
// CHECK-NEXT:  gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[K]], %[[P]], %[[B]] causal window 128 scale 1.0
func.func @mask_spellings(%q: tensor<4x?x8xf32>, %tokens: tensor<?xi32>, %keep: tensor<?x?xi1>, %padding: tensor<?xi1>) -> tensor<4x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %pos = gpt.positions %tokens : tensor<?xi32>
  %zero = arith.constant 0 : index
  %count = tensor.dim %tokens, %zero : tensor<?xi32>
  %rows = tensor.expand_shape %pos [[0, 1]] output_shape [%count, 1] : tensor<?xi32> into tensor<?x1xi32>
  %i = gpt.broadcast %rows like %rows, %pos : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
  %j = gpt.broadcast %pos like %rows, %pos : tensor<?xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %j, %i : tensor<?x?xi32>
  %causal = gpt.mask %s, %before : tensor<4x?x?xf32>, tensor<?x?xi1>
  %size = arith.constant dense<128> : tensor<1xi32>
  %sizes = gpt.broadcast %size like %i : tensor<1xi32>, tensor<?x?xi32> -> tensor<?x?xi32>
  %far = arith.subi %i, %j : tensor<?x?xi32>
  %near = arith.cmpi slt, %far, %sizes : tensor<?x?xi32>
  %window = gpt.mask %causal, %near : tensor<4x?x?xf32>, tensor<?x?xi1>
  %wide = gpt.broadcast %keep like %s : tensor<?x?xi1>, tensor<4x?x?xf32> -> tensor<4x?x?xi1>
  %none = arith.constant dense<0xFF800000> : tensor<f32>
  %hidden = gpt.broadcast %none like %s : tensor<f32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %kept = arith.select %wide, %window, %hidden : tensor<4x?x?xi1>, tensor<4x?x?xf32>
  %padded = gpt.mask %kept, %padding : tensor<4x?x?xf32>, tensor<?xi1>
  %heads = arith.constant dense<[[[0.5]], [[0.25]], [[0.125]], [[0.0]]]> : tensor<4x1x1xf32>
  %bias = gpt.broadcast %heads like %s : tensor<4x1x1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %sum = arith.addf %padded, %bias : tensor<4x?x?xf32>
  %p = gpt.softmax %sum : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// Page: A constant that is added and says no more than the causal mask.
// CHECK-LABEL: func @constant_mask
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x3x8xf32>
// CHECK-NEXT:  gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] causal scale 1.0
func.func @constant_mask(%q: tensor<4x3x8xf32>) -> tensor<4x3x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x3x8xf32>, tensor<4x3x8xf32> -> tensor<4x3x3xf32>
  %upper = arith.constant dense<[[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]]> : tensor<1x3x3xf32>
  %m = gpt.mask %s, %upper : tensor<4x3x3xf32>, tensor<1x3x3xf32>
  %p = gpt.softmax %m : tensor<4x3x3xf32>
  %o = gpt.matmul %p, %q : tensor<4x3x3xf32>, tensor<4x3x8xf32> -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

// Several masks, as they are written: one of each kind, in either order; added
// ones with a causal mask between; none with all dimensions of the other; what
// fills is scaled, and what is added comes on top of it.
// CHECK-LABEL: func @several_masks
// CHECK-SAME:  %[[Q:[a-z0-9]*]]: tensor<4x?x8xf32>, %[[A:[a-z0-9]*]]: tensor<?x?xf32>, %[[P:[a-z0-9]*]]: tensor<?xi1>, %[[R:[a-z0-9]*]]: tensor<?x1xi1>
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[A]], %[[P]] scale 1.0 {{.*}} mask tensor<?x?xf32>, tensor<?xi1>
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[P]], %[[A]] scale 1.0
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[A]], %[[A]] causal scale 1.0
// CHECK:       gpt.flash_attention %[[Q]], %[[Q]], %[[Q]] mask %[[P]], %[[R]], %[[A]] fill -5000.0 causal scale 0.5
func.func @several_masks(%q: tensor<4x?x8xf32>, %a: tensor<?x?xf32>, %pad: tensor<?xi1>, %rows: tensor<?x1xi1>) -> (tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) {
  %s = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = gpt.mask %s, %a : tensor<4x?x?xf32>, tensor<?x?xf32>
  %n = gpt.mask %m, %pad : tensor<4x?x?xf32>, tensor<?xi1>
  %p = gpt.softmax %n : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %s1 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m1 = gpt.mask %s1, %pad : tensor<4x?x?xf32>, tensor<?xi1>
  %n1 = gpt.mask %m1, %a : tensor<4x?x?xf32>, tensor<?x?xf32>
  %p1 = gpt.softmax %n1 : tensor<4x?x?xf32>
  %o1 = gpt.matmul %p1, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %s2 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m2 = gpt.mask %s2, %a : tensor<4x?x?xf32>, tensor<?x?xf32>
  %c2 = gpt.causal_mask %m2 : tensor<4x?x?xf32>
  %n2 = gpt.mask %c2, %a : tensor<4x?x?xf32>, tensor<?x?xf32>
  %p2 = gpt.softmax %n2 : tensor<4x?x?xf32>
  %o2 = gpt.matmul %p2, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %s3 = gpt.matmul %q, %q transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m3 = gpt.mask %s3, %pad fill -1.0e4 : tensor<4x?x?xf32>, tensor<?xi1>
  %t3 = gpt.scale %m3 by 0.5 : tensor<4x?x?xf32>
  %n3 = gpt.mask %t3, %rows fill -5.0e3 : tensor<4x?x?xf32>, tensor<?x1xi1>
  %a3 = gpt.mask %n3, %a : tensor<4x?x?xf32>, tensor<?x?xf32>
  %c3 = gpt.causal_mask %a3 : tensor<4x?x?xf32>
  %p3 = gpt.softmax %c3 : tensor<4x?x?xf32>
  %o3 = gpt.matmul %p3, %q : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %o, %o1, %o2, %o3 : tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>
}

// Everything, in an order that means the same: the scale past softcap and alibi
// is one of theirs, two windows are the smaller one.
// CHECK-LABEL: func @in_another_order
// CHECK:       gpt.flash_attention {{.*}} mask %{{.*}} causal window 16 scale 0.25 softcap 15.0 alibi [0.25, -0.5]
func.func @in_another_order(%q: tensor<2x?x8xf32>, %a: tensor<?x?xf32>) -> tensor<2x?x8xf32> {
  %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<2x?x?xf32>
  %c = gpt.softcap %t at 30.0 : tensor<2x?x?xf32>
  %w = gpt.causal_mask %c window 16 : tensor<2x?x?xf32>
  %b = gpt.alibi %w slopes [0.5, -1.0] : tensor<2x?x?xf32>
  %u = gpt.scale %b by 0.5 : tensor<2x?x?xf32>
  %m = gpt.mask %u, %a : tensor<2x?x?xf32>, tensor<?x?xf32>
  %x = gpt.causal_mask %m window 20 : tensor<2x?x?xf32>
  %p = gpt.softmax %x : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// CHECK-LABEL: func @batch
// CHECK:       gpt.flash_attention %{{.*}}, %{{.*}}, %{{.*}} causal scale 1.0 groups 2 : tensor<3x4x?x8xf32>, tensor<3x2x?x8xf32>
func.func @batch(%q: tensor<3x4x?x8xf32>, %k: tensor<3x2x?x8xf32>) -> tensor<3x4x?x8xf32> {
  %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<3x4x?x8xf32>, tensor<3x2x?x8xf32> -> tensor<3x4x?x?xf32>
  %m = gpt.causal_mask %s : tensor<3x4x?x?xf32>
  %p = gpt.softmax %m : tensor<3x4x?x?xf32>
  %o = gpt.matmul %p, %k groups 2 : tensor<3x4x?x?xf32>, tensor<3x2x?x8xf32> -> tensor<3x4x?x8xf32>
  return %o : tensor<3x4x?x8xf32>
}

// CHECK-LABEL: func @cached
// CHECK-SAME:  %[[Q:.*]]: tensor<?x32xf32>, %[[K:.*]]: tensor<2x?x8xf32>, %[[V:.*]]: tensor<2x?x8xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[C:.*]]: !gpt.kv_cache
// CHECK-NEXT:  %[[C1:.*]] = gpt.kv_append %[[C]], %[[K]], %[[V]]
// CHECK-NEXT:  %[[A:.*]] = gpt.flash_attention %[[Q]] cache %[[C1]] at %[[POS]], %[[SEQ]] layer 1 causal window 128 scale 0.5 softcap 30.0 alibi [0.5, 0.25, 0.125, 0.0625] groups 2
// CHECK-NEXT:  return %[[A]], %[[C1]]
func.func @cached(%q: tensor<?x32xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>, %pos: tensor<?xi32>,
                  %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> (tensor<?x32xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>) {
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %c1 = gpt.kv_append %c, %k, %v at %pos, %seq layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %K, %V = gpt.kv_read %c1 layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32> -> tensor<2x?x8xf32>
  %s = gpt.matmul %qh, %K transpose_b groups 2 : tensor<4x?x8xf32>, tensor<2x?x8xf32> -> tensor<4x?x?xf32>
  %t = gpt.scale %s by 0.5 : tensor<4x?x?xf32>
  %t1 = gpt.softcap %t at 30.0 : tensor<4x?x?xf32>
  %t2 = gpt.alibi %t1 slopes [0.5, 0.25, 0.125, 0.0625] : tensor<4x?x?xf32>
  %m = gpt.causal_mask %t2 window 128 : tensor<4x?x?xf32>
  %p = gpt.softmax %m : tensor<4x?x?xf32>
  %o = gpt.matmul %p, %V groups 2 : tensor<4x?x?xf32>, tensor<2x?x8xf32> -> tensor<4x?x8xf32>
  %r = gpt.merge_heads %o : tensor<4x?x8xf32> -> tensor<?x32xf32>
  return %r, %c1 : tensor<?x32xf32>, !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}
