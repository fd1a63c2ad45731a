// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-norm | FileCheck %s

ml_program.global private @g(#ml_program.extern<tensor<16xf32>>) : tensor<16xf32>
ml_program.global private @b(#ml_program.extern<tensor<16xf32>>) : tensor<16xf32>

// Page: a norm of queries and keys, in one GEMM by then.
// CHECK-LABEL: func @sections
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>
// CHECK:       %[[G:.*]] = ml_program.global_load_const @g
// CHECK-NOT:   gpt.rms_norm
// CHECK:       gpt.fused_gemm norm(rms %[[G]] eps 1.0e-5) %[[X]] : tensor<?x16xf32> sections {
// CHECK-NEXT:    %{{.*}} : tensor<640x16xf32> -> tensor<?x640xf32>,
// CHECK-NEXT:    %{{.*}} : tensor<320x16xf32> -> tensor<?x320xf32>
func.func @sections(%x: tensor<?x16xf32>, %wq: tensor<640x16xf32>, %wk: tensor<320x16xf32>) -> (tensor<?x640xf32>, tensor<?x320xf32>) {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<640x16xf32> -> tensor<?x640xf32>,
    %wk : tensor<320x16xf32> -> tensor<?x320xf32>
  }
  return %q, %k : tensor<?x640xf32>, tensor<?x320xf32>
}

// Page: beside a residual, which is not normalised.
// CHECK-LABEL: func @layer
// CHECK-SAME:  %[[X:[^:]*]]: tensor<?x16xf32>, %[[R:[^:]*]]: tensor<?x960xf32>
// CHECK-DAG:   %[[G:.*]] = ml_program.global_load_const @g
// CHECK-DAG:   %[[B:.*]] = ml_program.global_load_const @b
// CHECK-NOT:   gpt.layer_norm
// CHECK:       gpt.fused_gemm norm(layer %[[G]], %[[B]] eps 1.2e-12) %[[X]] : tensor<?x16xf32> residual %[[R]] section
func.func @layer(%x: tensor<?x16xf32>, %r: tensor<?x960xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %b = ml_program.global_load_const @b : tensor<16xf32>
  %n = gpt.layer_norm %x, %g, %b eps 1.2e-12 : tensor<?x16xf32>, tensor<16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  %s = arith.addf %y, %r : tensor<?x960xf32>
  return %s : tensor<?x960xf32>
}

// That of a sample keeps its kind.
// CHECK-LABEL: func @sample
// CHECK-SAME:  %[[X:.*]]: tensor<?x16xf32>, %
// CHECK-NOT:   gpt.layer_norm
// CHECK:       gpt.fused_gemm norm(sample %{{.*}}, %{{.*}} eps 1.0e-6) %[[X]] : tensor<?x16xf32> section
func.func @sample(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %b = ml_program.global_load_const @b : tensor<16xf32>
  %n = gpt.layer_norm %x, %g, %b sample eps 1.0e-6 : tensor<?x16xf32>, tensor<16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y : tensor<?x960xf32>
}

// Without beta; x has another user, which keeps it.
// CHECK-LABEL: func @no_beta
// CHECK-SAME:  %[[X:[^:]*]]: tensor<?x16xf32>
// CHECK:       %[[S:.*]] = gpt.silu %[[X]]
// CHECK:       gpt.fused_gemm norm(layer %{{[^,]*}} eps 1.0e-5) %[[X]]
// CHECK:       return %{{.*}}, %[[S]]
func.func @no_beta(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>) -> (tensor<?x960xf32>, tensor<?x16xf32>) {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %s = gpt.silu %x : tensor<?x16xf32>
  %n = gpt.layer_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y, %s : tensor<?x960xf32>, tensor<?x16xf32>
}

// A scale that is stored less 1 (Gemma) is a weight that packing makes.
// CHECK-LABEL: func @shifted
// CHECK-SAME:  %[[X:[^:]*]]: tensor<?x16xf32>
// CHECK:       %[[G:.*]] = arith.addf
// CHECK-NOT:   gpt.rms_norm
// CHECK:       gpt.fused_gemm norm(rms %[[G]] eps 1.0e-6) %[[X]]
func.func @shifted(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %g1 = arith.addf %g, %one : tensor<16xf32>
  %n = gpt.rms_norm %x, %g1 eps 1.0e-6 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y : tensor<?x960xf32>
}

// A norm of a norm: the outer one goes into the GEMM, once.
// CHECK-LABEL: func @twice
// CHECK:       %[[N:.*]] = gpt.rms_norm
// CHECK:       gpt.fused_gemm norm(rms %{{[^,]*}} eps 1.0e-5) %[[N]]
func.func @twice(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %m = gpt.rms_norm %n, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %m, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y : tensor<?x960xf32>
}

// The GEMMs of a gate are lanes by then; twice 480 features.
// CHECK-LABEL: func @lanes
// CHECK-SAME:  %[[X:[^:]*]]: tensor<?x16xf32>
// CHECK:       gpt.fused_gemm norm(rms %{{[^,]*}} eps 1.0e-5) %[[X]] : tensor<?x16xf32> lanes
func.func @lanes(%x: tensor<?x16xf32>, %w: tensor<480x16xf32>, %v: tensor<480x16xf32>) -> tensor<?x480xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<480x16xf32> -> tensor<?x480xf32>
  %z = gpt.linear %n, %v : tensor<?x16xf32>, tensor<480x16xf32> -> tensor<?x480xf32>
  %m = arith.mulf %y, %z : tensor<?x480xf32>
  return %m : tensor<?x480xf32>
}
