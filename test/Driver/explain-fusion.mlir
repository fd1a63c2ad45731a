// REQUIRES: gptc
// What went into which kernel, what was left alone and why.
//
// RUN: gptc %s --emit=dot --explain-fusion 2>&1 >/dev/null | FileCheck %s --check-prefix=TABLE
// RUN: gptc %s --explain-fusion 2>/dev/null | FileCheck %s --check-prefix=TABLE
// RUN: gptc %s --emit=dot 2>/dev/null | FileCheck %s --check-prefix=DOT
// RUN: gptc %s --emit=fused --remarks=fusion 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: gptc %s --emit=fused --remarks-output=%t.yaml >/dev/null && FileCheck %s --check-prefix=YAML --input-file=%t.yaml
// RUN: not gptc %s --emit=fused --remarks=fusoin 2>&1 | FileCheck %s --check-prefix=NAME
//
// TABLE:      fusion of @layers: 7 ops in 5 kernel calls
// TABLE-NEXT:   2 times, first at explain-fusion.mlir:[[# @LINE + 45]]:11:
// TABLE-NEXT:     gemm_k16_n16_silu gpt.linear, gpt.silu
// TABLE-NEXT:   matmul_{{[a-z0-9_]+}} gpt.matmul
// TABLE-NEXT:   softmax_h2 gpt.softmax
// TABLE-NEXT:   matmul_{{[a-z0-9_]+}} gpt.matmul
// TABLE-NEXT:   left alone:
// TABLE-NEXT:     explain-fusion.mlir:[[# @LINE + 44]]:10: gpt.softmax: fuse-attention: expected no user of this value but attention{{.*$}}
// TABLE-NOT:  {{.}}
//
// DOT:      digraph "layers: ops in kernels" {
// DOT:        subgraph cluster_0 {
// DOT-NEXT:     label="gemm_k16_n16_silu";
// DOT-NEXT:     [[Y0:n[0-9]+]] [label="gpt.linear %y0"];
// DOT-NEXT:     [[A0:n[0-9]+]] [label="gpt.silu %a0"];
// DOT-NEXT:   }
// DOT:        [[Y1:n[0-9]+]] [label="gpt.linear %y1"];
// DOT:        [[Y0]] -> [[A0]];
// DOT-NEXT:   [[A0]] -> [[Y1]];
// DOT:      digraph "layers: kernels" {
// DOT-COUNT-2: [label="gemm_k16_n16_silu"];
// DOT:        n0 -> n1;
// DOT-NOT:    -> n2;
//
// REMARK:      explain-fusion.mlir:[[# @LINE + 27]]:10: remark: fuse-attention: missed: expected no user of this value but attention, {{.*}}; gpt.softmax %p in @layers
// REMARK-NEXT: explain-fusion.mlir:[[# @LINE + 22]]:11: remark: fuse-epilogue: passed: {{.*}}; gpt.silu %a0 in @layers
// REMARK-NEXT: explain-fusion.mlir:[[# @LINE + 23]]:11: remark: fuse-epilogue: passed: {{.*}}; gpt.silu %a1 in @layers
// REMARK-NOT:  {{.}}
//
// YAML:      --- !Missed
// YAML-NEXT: Pass:            fusion
// YAML-NEXT: Name:            fuse-attention
// YAML-NEXT: DebugLoc:        { File: '{{.*}}explain-fusion.mlir', Line: [[# @LINE + 19]], Column: 10 }
// YAML-NEXT: Function:        'layers'
// YAML-NEXT: Args:
// YAML-NEXT:   - Remark:          'expected no user of this value but attention{{.*}}'
// YAML-NEXT:   - Op:              'gpt.softmax %p'
// YAML-NEXT: ...
//
// NAME: gptc: error: --remarks: expected fusion, stepping, got 'fusoin'; did you mean 'fusion'?
module attributes {gpt.name = "two"} {
  ml_program.global private @w0(#ml_program.extern) : tensor<16x16xf32>
  ml_program.global private @w1(#ml_program.extern) : tensor<16x16xf32>
  func.func @layers(%x: tensor<?x16xf32>, %q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>) -> (tensor<?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x?xf32>) {
    %w0 = ml_program.global_load_const @w0 : tensor<16x16xf32>
    %w1 = ml_program.global_load_const @w1 : tensor<16x16xf32>
    %y0 = gpt.linear %x, %w0 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %a0 = gpt.silu %y0 : tensor<?x16xf32>
    %y1 = gpt.linear %a0, %w1 : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %a1 = gpt.silu %y1 : tensor<?x16xf32>
    %s = gpt.matmul %q, %k transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
    %p = gpt.softmax %s : tensor<2x?x?xf32>
    %o = gpt.matmul %p, %k : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
    return %a1, %o, %p : tensor<?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x?xf32>
  }
}
