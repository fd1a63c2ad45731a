// RUN: gptc-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @split_of_merge
// CHECK-NEXT: return %arg0
func.func @split_of_merge(%x: tensor<3x?x4xf32>) -> tensor<3x?x4xf32> {
  %m = gpt.merge_heads %x : tensor<3x?x4xf32> -> tensor<?x12xf32>
  %s = gpt.split_heads %m : tensor<?x12xf32> -> tensor<3x?x4xf32>
  return %s : tensor<3x?x4xf32>
}

// CHECK-LABEL: @merge_of_split
// CHECK-NEXT: return %arg0
func.func @merge_of_split(%x: tensor<?x12xf32>) -> tensor<?x12xf32> {
  %s = gpt.split_heads %x : tensor<?x12xf32> -> tensor<3x?x4xf32>
  %m = gpt.merge_heads %s : tensor<3x?x4xf32> -> tensor<?x12xf32>
  return %m : tensor<?x12xf32>
}

// Other heads come out than went in.
// CHECK-LABEL: @other_heads
// CHECK-NEXT: gpt.merge_heads
// CHECK-NEXT: gpt.split_heads
func.func @other_heads(%x: tensor<3x?x4xf32>) -> tensor<2x?x6xf32> {
  %m = gpt.merge_heads %x : tensor<3x?x4xf32> -> tensor<?x12xf32>
  %s = gpt.split_heads %m : tensor<?x12xf32> -> tensor<2x?x6xf32>
  return %s : tensor<2x?x6xf32>
}

// A pass removes dropout, no fold does.
// CHECK-LABEL: @dropout
// CHECK-NEXT: gpt.dropout
func.func @dropout(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = gpt.dropout %x p 0.0 : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Constants stay in the epilogue, which a kernel takes along.
// CHECK-LABEL: @constant_in_epilogue
// CHECK-NEXT: gpt.fused_gemm {{.*}} epilogue (%acc) {
// CHECK-NEXT:   arith.constant
func.func @constant_in_epilogue(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) -> tensor<?x12xf32> {
  %y = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> epilogue (%acc) {
    %two = arith.constant 2.0 : f32
    %y = arith.mulf %acc, %two : f32
    gpt.yield %y : f32
  } -> tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}

// CHECK-LABEL: @unused
// CHECK-NEXT: return
func.func @unused(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) {
  %y = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  %z = gpt.linear %x, %w : tensor<?x8xf32>, tensor<12x8xf32> -> tensor<?x12xf32>
  return
}
