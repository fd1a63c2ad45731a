// RUN: gptc-opt %s --gpt-fuse-rope-kv --remarks-filter=fusion --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: gptc-opt %s --gpt-fuse-rope-kv | FileCheck %s --check-prefix=SAME

// What is refused stays: ropes and appends are counted.
// SAME-LABEL: func @two_ropes
// SAME-COUNT-1: gpt.rope %
// SAME-LABEL: func @rope_twice
// SAME-COUNT-1: gpt.rope %
// SAME-LABEL: func @normed
// SAME-COUNT-1: gpt.rope %
// SAME-LABEL: func @late_positions
// SAME-COUNT-1: gpt.rope %
// SAME-LABEL: func @with_residual
// SAME-COUNT-1: gpt.rope %
// SAME-LABEL: func @given_keys
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @two_gemms
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @one_section
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @two_layers
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @late_sequences
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @static_positions
// SAME-COUNT-1: gpt.kv_append
// SAME-LABEL: func @end

// A GEMM has one rope table.
// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=two_ropes | Remark="expected the rotary embedding of the GEMM's other section: the same positions, base, pairs, dim and scaling"
func.func @two_ropes(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %kr = gpt.rope %kh, %pos <base 2.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %kr : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=rope_twice | Remark="expected a section that nothing else is fused into yet, got one that is rotated, appended or mapped before"
func.func @rope_twice(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %a = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  %b = gpt.rope %a, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %b, %kh : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// A norm of the heads before the rope (Qwen 3).
// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=normed | Remark="expected rotary heads that are the split heads of a section of the QKV GEMM, got gpt.rms_norm; it fuses once fuse-qkv does and nothing stands between"
func.func @normed(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>, %g: tensor<8xf32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %m = gpt.rms_norm %qh, %g eps 1.0e-6 : tensor<2x?x8xf32>, tensor<8xf32>
  %qr = gpt.rope %m, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %kh : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=late_positions | Remark="expected positions of its rows, known before the GEMM"
func.func @late_positions(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %next = arith.addi %pos, %pos : tensor<?xi32>
  %qr = gpt.rope %qh, %next <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr, %kh : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=with_residual | Remark="expected a GEMM of sections in this block, without residuals"
func.func @with_residual(%n: tensor<?x16xf32>, %w: tensor<16x16xf32>, %pos: tensor<?xi32>)
    -> tensor<2x?x8xf32> {
  %q = gpt.fused_gemm %n : tensor<?x16xf32> residual %n section %w : tensor<16x16xf32> epilogue (%acc, %r) {
    %y = arith.addf %acc, %r : f32
    gpt.yield %y : f32
  } -> tensor<?x16xf32>
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %qr = gpt.rope %qh, %pos <base 1.0e5, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<?xi32>
  return %qr : tensor<2x?x8xf32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=given_keys | Remark="expected keys that are the split heads of a section of the QKV GEMM, got an argument; it fuses once fuse-qkv does and nothing stands between"
func.func @given_keys(%kh: tensor<2x?x8xf32>, %vh: tensor<2x?x8xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=two_gemms | Remark="expected keys and values from two sections of one gpt.fused_gemm"
func.func @two_gemms(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %k = gpt.fused_gemm %n : tensor<?x16xf32> section %wq : tensor<16x16xf32> -> tensor<?x16xf32>
  %v = gpt.fused_gemm %n : tensor<?x16xf32> section %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// Keys that are the values too.
// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=one_section | Remark="expected keys and values from two sections of one gpt.fused_gemm"
func.func @one_section(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %kh, %kh at %pos, %seq layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// Two layers that share keys and values.
// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=two_layers | Remark="expected a GEMM that appends to no other cache or layer"
func.func @two_layers(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %c1 = gpt.kv_append %c, %qh, %kh at %pos, %seq layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  %c2 = gpt.kv_append %c1, %qh, %kh at %pos, %seq layer 1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c2 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=late_sequences | Remark="expected cache, positions and sequences known before the GEMM"
func.func @late_sequences(%n: tensor<?x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %c: !gpt.kv_cache<2 x 2 x 8, page 64, f32>)
    -> !gpt.kv_cache<2 x 2 x 8, page 64, f32> {
  %q, %k = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wq : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %qh = gpt.split_heads %q : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x?x8xf32>
  %next = arith.addi %seq, %seq : tensor<?xi32>
  %c1 = gpt.kv_append %c, %qh, %kh at %pos, %next layer 0 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>, tensor<2x?x8xf32>, tensor<?xi32>
  return %c1 : !gpt.kv_cache<2 x 2 x 8, page 64, f32>
}

// Sizes that are known to be equal only when running.
// CHECK-DAG: [Missed] fuse-rope-kv {{.*}}Function=static_positions | Remark="expected a position for every row of the GEMM"
func.func @static_positions(%n: tensor<?x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>, %pos: tensor<4xi32>, %seq: tensor<4xi32>, %c: !gpt.kv_cache<1 x 2 x 8, page 64, f32>) -> !gpt.kv_cache<1 x 2 x 8, page 64, f32> {
  %k, %v = gpt.fused_gemm %n : tensor<?x16xf32> sections {
    %wk : tensor<16x16xf32> -> tensor<?x16xf32>,
    %wv : tensor<16x16xf32> -> tensor<?x16xf32>
  }
  %kh = gpt.split_heads %k : tensor<?x16xf32> -> tensor<2x4x8xf32>
  %vh = gpt.split_heads %v : tensor<?x16xf32> -> tensor<2x4x8xf32>
  %c1 = gpt.kv_append %c, %kh, %vh at %pos, %seq layer 0 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>, tensor<2x4x8xf32>, tensor<4xi32>
  return %c1 : !gpt.kv_cache<1 x 2 x 8, page 64, f32>
}

func.func @end() {
  return
}
