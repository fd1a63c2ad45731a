// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-argmax | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-argmax --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Page: tokens instead of logits: 300 columns are three blocks.
// REMARK:      [Passed] fuse-argmax {{.*}}Function=head | Remark="argmax in the GEMM's epilogue"
// CHECK-LABEL: func @head
// CHECK-SAME:  %[[X:[^:]*]]: tensor<?x16xf32>, %[[W:[^:]*]]: tensor<300x16xf32>
// CHECK-NEXT:  %[[B:.*]]:2 = gpt.fused_gemm %[[X]] : tensor<?x16xf32> argmax 128 section %[[W]] : tensor<300x16xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
// CHECK-NEXT:  %[[T:.*]] = gpt.merge_argmax %[[B]]#0, %[[B]]#1 : tensor<?x3xf32>, tensor<?x3xi32> -> tensor<?xi32>
// CHECK-NEXT:  return %[[T]]
func.func @head(%x: tensor<?x16xf32>, %w: tensor<300x16xf32>) -> tensor<?xi32> {
  %y = gpt.linear %x, %w : tensor<?x16xf32>, tensor<300x16xf32> -> tensor<?x300xf32>
  %t = gpt.argmax %y : tensor<?x300xf32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}

// Page: of what the epilogue makes of the logits: a bias, a cap, a penalty.
// CHECK-LABEL: func @capped
// CHECK-SAME:  %[[X:[^:]*]]: tensor<4x16xf32>, %[[W:[^:]*]]: tensor<16x256xf32>, %[[B:[^:]*]]: tensor<256xf32>, %[[P:[^:]*]]: tensor<4x256xf32>
// CHECK-NEXT:  gpt.fused_gemm %[[X]] : tensor<4x16xf32> residual %[[P]] argmax 128 section %[[W]] : tensor<16x256xf32> bias %[[B]] in_out epilogue (%[[A:.*]], %[[R:.*]]) {
// CHECK-NEXT:    %[[C:.*]] = gpt.softcap %[[A]] at 30.0 : f32
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[C]], %[[R]] : f32
// CHECK-NEXT:    gpt.yield %[[S]] : f32
// CHECK-NEXT:  } -> (tensor<4x2xf32>, tensor<4x2xi32>)
// CHECK-NEXT:  gpt.merge_argmax
func.func @capped(%x: tensor<4x16xf32>, %w: tensor<16x256xf32>, %b: tensor<256xf32>, %penalty: tensor<4x256xf32>) -> tensor<4xi32> {
  %y = gpt.linear %x, %w bias %b in_out : tensor<4x16xf32>, tensor<16x256xf32>, tensor<256xf32> -> tensor<4x256xf32>
  %c = gpt.softcap %y at 30.0 : tensor<4x256xf32>
  %s = arith.addf %c, %penalty : tensor<4x256xf32>
  %t = gpt.argmax %s : tensor<4x256xf32> -> tensor<4xi32>
  return %t : tensor<4xi32>
}

// Lanes; fewer columns than a block.
// CHECK-LABEL: func @lanes
// CHECK:       gpt.fused_gemm %{{.*}} : tensor<?x16xf32> argmax 128 lanes (
// CHECK:       } -> (tensor<?x1xf32>, tensor<?x1xi32>)
func.func @lanes(%x: tensor<?x16xf32>, %w: tensor<50x16xf32>, %v: tensor<50x16xf32>) -> tensor<?xi32> {
  %a = gpt.linear %x, %w : tensor<?x16xf32>, tensor<50x16xf32> -> tensor<?x50xf32>
  %b = gpt.linear %x, %v : tensor<?x16xf32>, tensor<50x16xf32> -> tensor<?x50xf32>
  %m = arith.mulf %a, %b : tensor<?x50xf32>
  %t = gpt.argmax %m : tensor<?x50xf32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}

// Of several rows for one sequence: no GEMM of [T, K] is meant, and none matched.
// CHECK-LABEL: func @no_gemm
// CHECK-NEXT:  gpt.argmax
func.func @no_gemm(%x: tensor<2x?x16xf32>) -> tensor<2x?xi32> {
  %t = gpt.argmax %x : tensor<2x?x16xf32> -> tensor<2x?xi32>
  return %t : tensor<2x?xi32>
}

// Numbers of blocks are not numbers of columns: nothing goes into a GEMM that has an argmax already, and both results stay.
// CHECK-LABEL: func @already
// CHECK-NEXT:  %[[B:.*]]:2 = gpt.fused_gemm %{{.*}} argmax 16 section %{{.*}} : tensor<40x16xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
// CHECK-NEXT:  %[[S:.*]] = gpt.scale %[[B]]#0 by 2.0
// CHECK-NEXT:  %[[T:.*]] = gpt.argmax %[[S]]
// CHECK-NEXT:  %[[C:.*]]:2 = gpt.fused_gemm %{{.*}} argmax 16 section
// CHECK-NEXT:  return %[[T]], %[[C]]#1
func.func @already(%x: tensor<?x16xf32>, %w: tensor<40x16xf32>) -> (tensor<?xi32>, tensor<?x3xi32>) {
  %v, %c = gpt.fused_gemm %x : tensor<?x16xf32> argmax 16 section %w : tensor<40x16xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  %s = gpt.scale %v by 2.0 : tensor<?x3xf32>
  %t = gpt.argmax %s : tensor<?x3xf32> -> tensor<?xi32>
  %v1, %c1 = gpt.fused_gemm %x : tensor<?x16xf32> argmax 16 section %w : tensor<40x16xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return %t, %c1 : tensor<?xi32>, tensor<?x3xi32>
}

ml_program.global private @g(#ml_program.extern<tensor<16xf32>>) : tensor<16xf32>

// The norm goes into the same GEMM afterwards, in either order of the passes.
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-argmax --gpt-fuse-norm | FileCheck %s --check-prefix=NORM
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-norm --gpt-fuse-argmax | FileCheck %s --check-prefix=NORM
// NORM-LABEL: func @normed
// NORM:       gpt.fused_gemm norm(rms %{{.*}} eps 1.0e-5) %{{.*}} argmax 128 section %{{.*}} : tensor<1000x16xf32> -> (tensor<?x8xf32>, tensor<?x8xi32>)
// NORM-NEXT:  gpt.merge_argmax
func.func @normed(%x: tensor<?x16xf32>, %w: tensor<1000x16xf32>) -> tensor<?xi32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<1000x16xf32> -> tensor<?x1000xf32>
  %t = gpt.argmax %y : tensor<?x1000xf32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}
