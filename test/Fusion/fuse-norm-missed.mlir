// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-norm --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-norm --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | grep -c "fuse-norm.*Function=two_users " | FileCheck %s --check-prefix=ONCE
// RUN: gptc-opt %s --gpt-fuse-epilogue --gpt-fuse-norm | FileCheck %s --check-prefix=SAME

ml_program.global private @g(#ml_program.extern<tensor<16xf32>>) : tensor<16xf32>

// Two GEMMs that do not meet: one remark for the norm of both.
// ONCE: {{^1$}}
// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=two_users | Remark="expected one GEMM to be the only user of the normalised rows; its other users need them as a tensor"
// SAME-LABEL: func @two_users
// SAME:       %[[N:.*]] = gpt.rms_norm
// SAME:       gpt.fused_gemm %[[N]]
// SAME:       gpt.fused_gemm %[[N]]
func.func @two_users(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>, %v: tensor<960x16xf32>) -> (tensor<?x960xf32>, tensor<?x960xf32>) {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  %z = gpt.linear %n, %v : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y, %z : tensor<?x960xf32>, tensor<?x960xf32>
}

// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=also_a_result | Remark="expected one GEMM to be the only user
// SAME-LABEL: func @also_a_result
// SAME:       %[[N:.*]] = gpt.rms_norm
// SAME:       gpt.fused_gemm %[[N]]
func.func @also_a_result(%x: tensor<?x16xf32>, %w: tensor<960x16xf32>) -> (tensor<?x960xf32>, tensor<?x16xf32>) {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y, %n : tensor<?x960xf32>, tensor<?x16xf32>
}

// The GEMM adds the rows that it multiplies: a user as well.
// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=also_a_residual | Remark="expected one GEMM to be the only user
// SAME-LABEL: func @also_a_residual
// SAME:       %[[N:.*]] = gpt.rms_norm
// SAME:       gpt.fused_gemm %[[N]] {{.*}} residual %[[N]]
func.func @also_a_residual(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %s = arith.addf %y, %n : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=narrow | Remark="expected a GEMM of 960 output features or more, got 944: every thread would normalise all rows, which takes longer than to share them"
// SAME-LABEL: func @narrow
// SAME:       gpt.rms_norm
func.func @narrow(%x: tensor<?x16xf32>, %w: tensor<944x16xf32>) -> tensor<?x944xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<944x16xf32> -> tensor<?x944xf32>
  return %y : tensor<?x944xf32>
}

// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=runtime_gamma | Remark="expected gamma and beta to be weights (a loaded ml_program.global)"
// SAME-LABEL: func @runtime_gamma
// SAME:       gpt.rms_norm
func.func @runtime_gamma(%x: tensor<?x16xf32>, %g: tensor<16xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y : tensor<?x960xf32>
}

// CHECK-DAG: [Missed] fuse-norm {{.*}}Function=runtime_beta | Remark="expected gamma and beta to be weights (a loaded ml_program.global)"
// SAME-LABEL: func @runtime_beta
// SAME:       gpt.layer_norm
func.func @runtime_beta(%x: tensor<?x16xf32>, %b: tensor<16xf32>, %w: tensor<960x16xf32>) -> tensor<?x960xf32> {
  %g = ml_program.global_load_const @g : tensor<16xf32>
  %n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x16xf32>, tensor<16xf32>, tensor<16xf32>
  %y = gpt.linear %n, %w : tensor<?x16xf32>, tensor<960x16xf32> -> tensor<?x960xf32>
  return %y : tensor<?x960xf32>
}
