// REQUIRES: gptc
// Elementwise ops and the unfused path: a thread an element, in plain C++.
// RUN: gptc %s --target=cuda --emit=cu -O0 | FileCheck %s
module attributes {gpt.name = "one"} {
  func.func @f(%x: tensor<7x96xf32>, %s: tensor<2x?x?xf32>) -> (tensor<7x96xf32>, tensor<2x?x?xf32>, tensor<7x96xi1>) {
    %c = arith.constant dense<0.1> : tensor<7x96xf32>
    %less = arith.subf %x, %c : tensor<7x96xf32>
    %a = math.exp %less : tensor<7x96xf32>
    %big = arith.cmpf ugt, %x, %a : tensor<7x96xf32>
    %m = gpt.causal_mask %s window 3 : tensor<2x?x?xf32>
    return %a, %m, %big : tensor<7x96xf32>, tensor<2x?x?xf32>, tensor<7x96xi1>
  }
}

// CHECK: // Launch: grid (3, 1, 1), 256 threads, 0 bytes
// CHECK: {{^}}sub_t7_c96(
// CHECK: const long long e = (long long)blockIdx.x * 256 + threadIdx.x;
// CHECK-NEXT: if (e >= 672ll)
// CHECK-NEXT: return;
// CHECK-NEXT: const float v0 = x[e];
// CHECK-NEXT: const float v1 = 0.1f;
// CHECK-NEXT: out[e] = v0 - v1;
// CHECK: {{^}}exp_t7_c96(
// CHECK: out[e] = gptc::exp_f32(v0);
// CHECK: {{^}}cmp_t7_c96(
// CHECK: int *__restrict__ out
// CHECK: const float v1 = y[e];
// CHECK-NEXT: out[e] = !(v0 <= v1);
// CHECK: const long long sq = d0, sk = d1, row = e / sk;
// CHECK: const bool seen = ahead <= 0 && ahead > -3ll;
// CHECK-NEXT: out[e] = seen ? v : -gptc::infinity();
