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
