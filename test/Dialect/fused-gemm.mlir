// RUN: gptc-opt %s | gptc-opt | FileCheck %s --match-full-lines
// RUN: gptc-opt %s -mlir-print-op-generic | gptc-opt | FileCheck %s --match-full-lines

// The printed form, exactly: sections, a section alone, lanes.

!cache = !gpt.kv_cache<2 x 3 x 4, page 16, f32>

//      CHECK:  func.func @qkv({{.*}}
// CHECK-NEXT:    %0:2 = gpt.fused_gemm %arg0 : tensor<?x8xf32> at %arg1, %arg2 rope %arg3 : tensor<?x2x4xf32> cache %arg4 : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 1 sections {
// CHECK-NEXT:      %arg5 : tensor<24x8xf32> bias %arg8 rope half epilogue (%acc, %partner, %cos, %sin) {
// CHECK-NEXT:        %1 = arith.mulf %acc, %cos : f32
// CHECK-NEXT:        %2 = arith.mulf %partner, %sin : f32
// CHECK-NEXT:        %3 = arith.addf %1, %2 : f32
// CHECK-NEXT:        gpt.yield %3 : f32
// CHECK-NEXT:      } -> tensor<?x24xf32>,
// CHECK-NEXT:      %arg6 : tensor<12x8xf32> rope adjacent append keys,
// CHECK-NEXT:      %arg7 : tensor<8x12xf32> in_out append values
// CHECK-NEXT:    }
func.func @qkv(%x: tensor<?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %cs: tensor<?x2x4xf32>, %c: !cache,
               %wq: tensor<24x8xf32>, %wk: tensor<12x8xf32>, %wv: tensor<8x12xf32>, %bq: tensor<24xf32>) -> (tensor<?x24xf32>, !cache) {
  %q, %c1 = gpt.fused_gemm %x : tensor<?x8xf32> at %pos, %seq rope %cs : tensor<?x2x4xf32> cache %c : !cache layer 1 sections {
    %wq : tensor<24x8xf32> bias %bq rope half epilogue (%acc, %partner, %cos, %sin) {
      %0 = arith.mulf %acc, %cos : f32
      %1 = arith.mulf %partner, %sin : f32
      %y = arith.addf %0, %1 : f32
      gpt.yield %y : f32
    } -> tensor<?x24xf32>,
    %wk : tensor<12x8xf32> rope adjacent append keys epilogue (%acc, %partner, %cos, %sin) { gpt.yield %acc : f32 },
    %wv : tensor<8x12xf32> in_out append values
  }
  return %q, %c1 : tensor<?x24xf32>, !cache
}

//      CHECK:  func.func @mlp({{.*}}
// CHECK-NEXT:    %0 = gpt.fused_gemm %arg0 : tensor<?x8xf32> lanes (%arg1 : tensor<12x8xf32> bias %arg3, %arg2 : tensor<8x12xf32> in_out) epilogue (%acc, %acc_0) {
// CHECK-NEXT:      %2 = gpt.silu %acc : f32
// CHECK-NEXT:      %3 = arith.mulf %2, %acc_0 : f32
// CHECK-NEXT:      gpt.yield %3 : f32
// CHECK-NEXT:    } -> tensor<?x12xf32>
// CHECK-NEXT:    %1 = gpt.fused_gemm %0 : tensor<?x12xf32> residual %arg0 section %arg2 : tensor<8x12xf32> epilogue (%acc, %r) {
// CHECK-NEXT:      %cst = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:      %2 = math.exp %acc : f32
// CHECK-NEXT:      %3 = arith.mulf %2, %cst : f32
// CHECK-NEXT:      %4 = arith.addf %3, %r : f32
// CHECK-NEXT:      gpt.yield %4 : f32
// CHECK-NEXT:    } -> tensor<?x8xf32>
func.func @mlp(%x: tensor<?x8xf32>, %gate: tensor<12x8xf32>, %up: tensor<8x12xf32>, %b: tensor<12xf32>) -> tensor<?x8xf32> {
  %h = gpt.fused_gemm %x : tensor<?x8xf32> lanes (%gate : tensor<12x8xf32> bias %b, %up : tensor<8x12xf32> in_out) epilogue (%g, %u) {
    %s = gpt.silu %g : f32
    %y = arith.mulf %s, %u : f32
    gpt.yield %y : f32
  } -> tensor<?x12xf32>
  %y = gpt.fused_gemm %h : tensor<?x12xf32> residual %x section %up : tensor<8x12xf32> epilogue (%acc, %r) {
    %half = arith.constant 0.5 : f32
    %e = math.exp %acc : f32
    %m = arith.mulf %e, %half : f32
    %y = arith.addf %m, %r : f32
    gpt.yield %y : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

//      CHECK:  func.func @plain({{.*}}
// CHECK-NEXT:    %0 = gpt.fused_gemm %arg0 : tensor<?x8xf32> section %arg1 : tensor<12x8xf32> -> tensor<?x12xf32> attributes {note = "kept"}
func.func @plain(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>) -> tensor<?x12xf32> {
  %y = gpt.fused_gemm %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32> attributes {note = "kept"}
  return %y : tensor<?x12xf32>
}

// Values beside the first, a row as a residual, part of the heads rotated, keys
// that are appended and a result too.
//      CHECK:  func.func @values({{.*}}
// CHECK-NEXT:    %0:2 = gpt.fused_gemm %arg0 : tensor<?x8xf32> residual row %arg2, %arg0 section %arg1 : tensor<8x8xf32> epilogue (%acc, %r, %r_0) {
// CHECK-NEXT:      %2 = arith.mulf %acc, %r : f32
// CHECK-NEXT:      %3 = arith.addf %2, %r_0 : f32
// CHECK-NEXT:      gpt.yield %acc, %3 : f32, f32
// CHECK-NEXT:    } -> (tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK-NEXT:    %1:2 = gpt.fused_gemm %arg0 : tensor<?x8xf32> at %arg3, %arg4 rope %arg5 : tensor<?x2x4xf32> rotary 2 cache %arg6 : !gpt.kv_cache<2 x 3 x 4, page 16, f32> layer 1 section %arg7 : tensor<12x8xf32> rope half append keys epilogue (%acc, %partner, %cos, %sin) {
// CHECK-NEXT:      gpt.yield %acc, %acc : f32, f32
// CHECK-NEXT:    } -> tensor<?x12xf32>
func.func @values(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %g: tensor<8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %cs: tensor<?x2x4xf32>,
                  %c: !cache, %wk: tensor<12x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x12xf32>, !cache) {
  %a, %b = gpt.fused_gemm %x : tensor<?x8xf32> residual row %g, %x section %w : tensor<8x8xf32> epilogue (%acc, %r, %s) {
    %m = arith.mulf %acc, %r : f32
    %y = arith.addf %m, %s : f32
    gpt.yield %acc, %y : f32, f32
  } -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %k, %c1 = gpt.fused_gemm %x : tensor<?x8xf32> at %pos, %seq rope %cs : tensor<?x2x4xf32> rotary 2 cache %c : !cache layer 1 section %wk : tensor<12x8xf32> rope half append keys epilogue (%acc, %partner, %cos, %sin) {
    gpt.yield %acc, %acc : f32, f32
  } -> tensor<?x12xf32>
  return %a, %b, %k, %c1 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x12xf32>, !cache
}

// Norms as prologues; eps reads back to the same bits.
//      CHECK:  func.func @norms({{.*}}
// CHECK-NEXT:    %0 = gpt.fused_gemm norm(rms %arg2 eps 1.2e-12) %arg0 : tensor<?x8xf32> section %arg1 : tensor<12x8xf32> -> tensor<?x12xf32>
// CHECK-NEXT:    %1 = gpt.fused_gemm norm(layer %arg2 eps 1.0e-5) %arg0 : tensor<?x8xf32> section %arg1 : tensor<12x8xf32> -> tensor<?x12xf32>
// CHECK-NEXT:    %2 = gpt.fused_gemm norm(layer %arg2, %arg2 eps 1.0e-5) %arg0 : tensor<?x8xf32> residual %arg3 section %arg1 : tensor<12x8xf32> bias %arg4 epilogue (%acc, %r) {
// CHECK-NEXT:      %4 = arith.addf %acc, %r : f32
// CHECK-NEXT:      gpt.yield %4 : f32
// CHECK-NEXT:    } -> tensor<?x12xf32>
// CHECK-NEXT:    %3 = gpt.fused_gemm norm(sample %arg2, %arg2 eps 1.0e-6) %arg0 : tensor<?x8xf32> section %arg1 : tensor<12x8xf32> -> tensor<?x12xf32>
func.func @norms(%x: tensor<?x8xf32>, %w: tensor<12x8xf32>, %g: tensor<8xf32>, %r: tensor<?x12xf32>, %b: tensor<12xf32>) -> (tensor<?x12xf32>, tensor<?x12xf32>, tensor<?x12xf32>, tensor<?x12xf32>) {
  %0 = gpt.fused_gemm norm(rms %g eps 1.2e-12) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  %1 = gpt.fused_gemm norm(layer %g eps 1.0e-5) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  %2 = gpt.fused_gemm norm(layer %g, %g eps 1.0e-5) %x : tensor<?x8xf32> residual %r section %w : tensor<12x8xf32> bias %b epilogue (%acc, %s) {
    %y = arith.addf %acc, %s : f32
    gpt.yield %y : f32
  } -> tensor<?x12xf32>
  %3 = gpt.fused_gemm norm(sample %g, %g eps 1.0e-6) %x : tensor<?x8xf32> section %w : tensor<12x8xf32> -> tensor<?x12xf32>
  return %0, %1, %2, %3 : tensor<?x12xf32>, tensor<?x12xf32>, tensor<?x12xf32>, tensor<?x12xf32>
}

// The largest of each block of columns instead of the values; residuals have all columns.
//      CHECK:  func.func @argmax({{.*}}
// CHECK-NEXT:    %0:2 = gpt.fused_gemm %arg0 : tensor<?x8xf32> residual %arg1, row %arg2 argmax 16 section %arg3 : tensor<40x8xf32> epilogue (%acc, %r, %r_0) {
// CHECK-NEXT:      %3 = arith.addf %acc, %r : f32
// CHECK-NEXT:      %4 = arith.mulf %3, %r_0 : f32
// CHECK-NEXT:      gpt.yield %4 : f32
// CHECK-NEXT:    } -> (tensor<?x3xf32>, tensor<?x3xi32>)
// CHECK-NEXT:    %1:2 = gpt.fused_gemm %arg0 : tensor<?x8xf32> argmax 64 section %arg3 : tensor<40x8xf32> -> (tensor<?x1xf32>, tensor<?x1xi32>)
// CHECK-NEXT:    %2 = gpt.merge_argmax %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32> -> tensor<?xi32>
func.func @argmax(%x: tensor<?x8xf32>, %m: tensor<?x40xf32>, %row: tensor<40xf32>, %w: tensor<40x8xf32>) -> tensor<?xi32> {
  %v, %c = gpt.fused_gemm %x : tensor<?x8xf32> residual %m, row %row argmax 16 section %w : tensor<40x8xf32> epilogue (%acc, %r, %s) {
    %0 = arith.addf %acc, %r : f32
    %1 = arith.mulf %0, %s : f32
    gpt.yield %1 : f32
  } -> (tensor<?x3xf32>, tensor<?x3xi32>)
  %v1, %c1 = gpt.fused_gemm %x : tensor<?x8xf32> argmax 64 section %w : tensor<40x8xf32> -> (tensor<?x1xf32>, tensor<?x1xi32>)
  %t = gpt.merge_argmax %v, %c : tensor<?x3xf32>, tensor<?x3xi32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}
