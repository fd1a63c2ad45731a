// RUN: gptc-opt %s --gpt-fuse-rope-kv | FileCheck %s

// CHECK-LABEL: func @rope_and_append
// CHECK-SAME:  %[[N:.*]]: tensor<?x32xf32>, %[[WQ:.*]]: tensor<32x32xf32>, %[[WK:.*]]: tensor<16x32xf32>, %[[WV:.*]]: tensor<16x32xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[C:.*]]: !gpt.kv_cache
// CHECK-NEXT:  %[[CS:.*]] = gpt.rope_table %[[POS]] <base 1.0e5, pairs adjacent, dim 8>
// CHECK-NEXT:  %[[G:.*]]:2 = gpt.fused_gemm %[[N]] {{.*}} at %[[POS]], %[[SEQ]] rope %[[CS]] {{.*}} cache %[[C]] {{.*}} layer 3 sections {
// CHECK-NEXT:    %[[WQ]] : tensor<32x32xf32> rope adjacent epilogue (%[[ACC:.*]], %[[PARTNER:.*]], %[[COS:.*]], %[[SIN:.*]]) {
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[ACC]], %[[COS]]
// CHECK-NEXT:      %[[Y:.*]] = math.fma %[[PARTNER]], %[[SIN]], %[[SCALED]]
// CHECK-NEXT:      gpt.yield %[[Y]]
// CHECK-NEXT:    } -> tensor<?x32xf32>,
// CHECK-NEXT:    %[[WK]] : tensor<16x32xf32> rope adjacent append keys epilogue
// CHECK:         %[[WV]] : tensor<16x32xf32> append values
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[QH:.*]] = gpt.split_heads %[[G]]#0
// CHECK-NEXT:  return %[[QH]], %[[G]]#1
func.func @rope_and_append(%n: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>, %wv: tensor<16x32xf32>,
                           %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<4 x 2 x 8, page 64, f32>)
    -> (tensor<4x?x8xf32>, !gpt.kv_cache<4 x 2 x 8, page 64, f32>) {
  %q, %k, %v = gpt.fused_gemm %n : tensor<?x32xf32> sections {
    %wq : tensor<32x32xf32> -> tensor<?x32xf32>,
    %wk : tensor<16x32xf32> -> tensor<?x16xf32>,
    %wv : tensor<16x32xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x32xf32> -> tensor<4x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs adjacent, dim 8> : tensor<4x?x8xf32>, tensor<?xi32>
  %kr = gpt.rope %kh, %pos <base 1.0e5, pairs adjacent, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %c1 = gpt.kv_append %c, %kr, %vh at %pos, %seq layer 3 : !gpt.kv_cache<4 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %c1 : tensor<4x?x8xf32>, !gpt.kv_cache<4 x 2 x 8, page 64, f32>
}

// CHECK-LABEL: func @append_only
// CHECK-NOT:   gpt.rope_table
// CHECK:       %[[C1:.*]] = gpt.fused_gemm
// CHECK-NEXT:    tensor<16x16xf32> append keys,
// CHECK-NEXT:    tensor<16x16xf32> append values
// CHECK-NEXT:  }
// CHECK-NEXT:  return %[[C1]]
func.func @append_only(%n: tensor<?x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>,
                       %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<1 x 2 x 8, page 64, f32> {
  %k, %v = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wv : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

// Part of every head rotates (GPT-J), and the positions stand after the GEMM.
// CHECK-LABEL: func @partial
// CHECK:       %[[CS:.*]] = gpt.rope_table %{{.*}} <base 10000.0, pairs adjacent, dim 8, rotary 4>
// CHECK-NEXT:  gpt.fused_gemm %{{.*}} rope %[[CS]] : tensor<?x2x8xf32> rotary 4 section %{{.*}} : tensor<16x16xf32> rope adjacent
func.func @partial(%n: tensor<?x16xf32>, %ids: tensor<?xi32>, %w: tensor<16x16xf32>) -> tensor<2x?x8xf32> {
  %q = gpt.fused_gemm %n : tensor<?x16xf32> section %w : tensor<16x16xf32> -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %pos = gpt.positions %ids : tensor<?xi32>
  %qr = gpt.rope %qh, %pos <base 10000.0, pairs adjacent, dim 8, rotary 4> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr : tensor<2x?x8xf32>
}

// What else is needed stays a result: the unrotated queries, the rotated keys,
// the values. One GEMM.
// CHECK-LABEL: func @values_too
// CHECK:       %[[G:.*]]:5 = gpt.fused_gemm
// CHECK-NEXT:    tensor<16x16xf32> rope half epilogue (%[[ACC:[a-z]+]], %{{.*}}) {
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      %[[R:.*]] = math.fma
// CHECK-NEXT:      gpt.yield %[[ACC]], %[[R]] : f32, f32
// CHECK-NEXT:    } -> (tensor<?x16xf32>, tensor<?x16xf32>),
// CHECK-NEXT:    tensor<16x16xf32> rope half append keys epilogue
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      %[[K:.*]] = math.fma
// CHECK-NEXT:      gpt.yield %[[K]], %[[K]] : f32, f32
// CHECK-NEXT:    } -> tensor<?x16xf32>,
// CHECK-NEXT:    tensor<16x16xf32> append values epilogue (%[[V:.*]]) {
// CHECK-NEXT:      gpt.yield %[[V]], %[[V]] : f32, f32
// CHECK-NEXT:    } -> tensor<?x16xf32>
// CHECK-NEXT:  }
// CHECK-NOT:   gpt.rope %
// CHECK-NOT:   gpt.fused_gemm
// CHECK-DAG:   %[[QH:.*]] = gpt.split_heads %[[G]]#0
// CHECK-DAG:   %[[QR:.*]] = gpt.split_heads %[[G]]#1
// CHECK-DAG:   %[[KR:.*]] = gpt.split_heads %[[G]]#2
// CHECK:       return %[[QH]], %[[QR]], %[[KR]], %[[G]]#3, %[[G]]#4
func.func @values_too(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>,
                      %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<?x16xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>) {
  %q, %k, %v = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wv : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %kr = gpt.rope %kh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %c1 = gpt.kv_append %c, %kr, %vh at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %qh, %qr, %kr, %v, %c1 : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<?x16xf32>, !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}
