// RUN: gptc-opt %s --gpt-lower-rope --cse | FileCheck %s

// CHECK-LABEL: func @equal_tables
// CHECK-SAME:  %[[Q:.*]]: tensor<4x?x16xf32>, %[[K:.*]]: tensor<2x?x16xf32>, %[[POS:.*]]: tensor<?xi32>
// CHECK:       %[[CS:.*]] = gpt.rope_table %[[POS]] <base 1.0e5, pairs half, dim 16>
// CHECK-NOT:   gpt.rope_table
// CHECK:       gpt.rotate %[[Q]], %[[CS]] half
// CHECK:       gpt.rotate %[[K]], %[[CS]] half
func.func @equal_tables(%q: tensor<4x?x16xf32>, %k: tensor<2x?x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<4x?x16xf32>, tensor<2x?x16xf32>) {
  %a = gpt.rope %q, %pos <base 1.0e5, pairs half, dim 16> : tensor<4x?x16xf32>, tensor<?xi32>
  %b = gpt.rope %k, %pos <base 1.0e5, pairs half, dim 16> : tensor<2x?x16xf32>, tensor<?xi32>
  return %a, %b : tensor<4x?x16xf32>, tensor<2x?x16xf32>
}

// CHECK-LABEL: func @two_pairings
// CHECK:       %[[HALF:.*]] = gpt.rope_table %{{.*}} <base 10000.0, pairs half, dim 16>
// CHECK:       gpt.rotate %{{.*}}, %[[HALF]] half
// CHECK:       %[[ADJACENT:.*]] = gpt.rope_table %{{.*}} <base 10000.0, pairs adjacent, dim 16>
// CHECK:       gpt.rotate %{{.*}}, %[[ADJACENT]] adjacent
func.func @two_pairings(%q: tensor<4x?x16xf32>, %pos: tensor<?xi32>) -> tensor<4x?x16xf32> {
  %a = gpt.rope %q, %pos <base 10000.0, pairs half, dim 16> : tensor<4x?x16xf32>, tensor<?xi32>
  %b = gpt.rope %a, %pos <base 10000.0, pairs adjacent, dim 16> : tensor<4x?x16xf32>, tensor<?xi32>
  return %b : tensor<4x?x16xf32>
}
