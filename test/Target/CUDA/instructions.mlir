// REQUIRES: gptc, nvcc
// bf16 weights are copied asynchronously and multiplied by tensor cores; quantised ones and tf32 pass through registers; f32
// is plain multiply-adds. The fatbin keeps the PTX.
// RUN: gptc %s --target=cuda --emit=ptx | FileCheck %s --check-prefix=BF16
// RUN: gptc %s --target=cuda --precision=f16 --emit=ptx | FileCheck %s --check-prefix=F16
// RUN: gptc %s --target=cuda --precision=tf32 --emit=ptx | FileCheck %s --check-prefix=TF32
// RUN: gptc %s --target=cuda --precision=f32 --emit=ptx | FileCheck %s --check-prefix=F32
// RUN: gptc %s --target=cuda --emit=fatbin > %t.fatbin
// RUN: FileCheck %s --check-prefix=FATBIN < %t.fatbin
module attributes {gpt.name = "one"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", bf16>}
  func.func @project(%x: tensor<?x64xf32>, %q: tensor<2x?x64xf32>) -> (tensor<?x96xf32>, tensor<2x?x64xf32>) {
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    %o = gpt.flash_attention %q, %q, %q causal scale 0.125 : tensor<2x?x64xf32>, tensor<2x?x64xf32>
    return %y, %o : tensor<?x96xf32>, tensor<2x?x64xf32>
  }
}

// BF16: .target sm_80
// BF16: .entry gemm_k64_n96_bf16(
// BF16: cp.async.cg.shared.global
// BF16: cp.async.wait_group 1
// BF16: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// BF16: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// BF16: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// BF16: .entry attention_h2_d64_causal(
// BF16: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// BF16: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// F16: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// Few rows and attention are f32.
// TF32-NOT: mma.sync
// TF32: .entry gemm_k64_n96_bf16(
// TF32: cvt.rna.tf32.f32
// TF32: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// TF32: .entry attention_h2_d64_causal(
// TF32-NOT: mma.sync
// F32-NOT: mma.sync
// F32: fma.rn.f32
// F32-NOT: mma.sync
// FATBIN: .entry gemm_k64_n96_bf16(
