// REQUIRES: gptc
// A head of 256 gets a tile that fits a block of every target, the same one: of f16, 32 keys, 71168 bytes; of f32, 32 rows. One of 512
// has no kernel, whatever memory there is: its sums would take more registers than a thread has.
// RUN: sed 's/HEAD/256/g' %s > %t.256.mlir
// RUN: sed 's/HEAD/512/g' %s > %t.512.mlir
// RUN: gptc %t.256.mlir --target=cuda -march=sm_80 --precision=f16 --emit=cu | FileCheck %s --check-prefix=F16
// RUN: gptc %t.256.mlir --target=cuda -march=sm_86 --precision=f16 --emit=cu | FileCheck %s --check-prefix=F16
// RUN: gptc %t.256.mlir --target=cuda -march=sm_89 --precision=f16 --emit=cu | FileCheck %s --check-prefix=F16
// RUN: gptc %t.256.mlir --target=cuda -march=sm_80 --precision=f32 --emit=cu | FileCheck %s --check-prefix=F32
// RUN: gptc %t.256.mlir --target=cuda -march=sm_86 --precision=f32 --emit=cu | FileCheck %s --check-prefix=F32
// RUN: gptc %t.256.mlir --target=cuda -march=sm_89 --precision=f32 --emit=cu | FileCheck %s --check-prefix=F32
// RUN: not gptc %t.512.mlir --target=cuda -march=sm_80 --precision=f16 --emit=cu 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not gptc %t.512.mlir --target=cuda -march=sm_89 --precision=f32 --emit=cu 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not gptc %t.256.mlir --target=cuda -march=sm_75 --precision=f16 --emit=cu 2>&1 | FileCheck %s --check-prefix=SM75
// RUN: not gptc %t.256.mlir --target=cuda -march=sm_90 --precision=f16 --emit=cu 2>&1 | FileCheck %s --check-prefix=SM90
module attributes {gpt.name = "one"} {
  func.func @attend(%q: tensor<4x?xHEADxf32>, %k: tensor<2x?xHEADxf32>, %v: tensor<2x?xHEADxf32>) -> tensor<4x?xHEADxf32> {
    %o = gpt.flash_attention %q, %k, %v causal scale 0.0625 groups 2 : tensor<4x?xHEADxf32>, tensor<2x?xHEADxf32>
    return %o : tensor<4x?xHEADxf32>
  }
}

// F16: // Launch: grid (ceil(2 * d0 / 64), 2, 1), 128 threads, 71168 bytes
// F16: using Tile = gptc::MmaAttentionTile<gptc::F16, 32, 256>;
// F32: // Launch: grid (ceil(2 * d0 / 32), 2, 1), 256 threads, 50688 bytes
// F32: using Tile = gptc::AttentionTile<32, 64, 256>;
// LARGE: expected a head size of at most 256 for the CUDA target, got 512
// SM75: gptc: error: -march=sm_75 is not supported: kernels use bf16 tensor cores and asynchronous copies, which sm_80 was the first to have; expected sm_80, sm_86 or sm_89
// SM90: gptc: error: -march=sm_90 is not supported by this version; expected sm_80, sm_86 or sm_89, whose packages hold PTX that newer GPUs run, too
