// REQUIRES: gptc
// Values keep the model's names, but for words of C++ and of the generated text; what is no letter becomes one.
// RUN: gptc %s --target=cuda --emit=cu | FileCheck %s
module attributes {gpt.name = "one"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x64xf32> {gpt.stored = #gpt.stored<"", "w", f32>}
  func.func @f(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
    %w = ml_program.global_load_const @w : tensor<96x64xf32>
    %y = gpt.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
    %new = gpt.silu %y : tensor<?x96xf32>
    %row = math.tanh %new : tensor<?x96xf32>
    %act.0 = math.sqrt %row : tensor<?x96xf32>
    %0 = math.exp %act.0 : tensor<?x96xf32>
    return %0 : tensor<?x96xf32>
  }
}

// CHECK: const float v_new = gptc::silu(acc);
// CHECK-NEXT: const float v_row = gptc::tanh_f32(v_new);
// CHECK-NEXT: const float act_0 = sqrtf(v_row);
// CHECK-NEXT: const float v0 = gptc::exp_f32(act_0);
// CHECK-NEXT: out0[row * 96 + column] = v0;
