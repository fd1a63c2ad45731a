//===- Recipe.cpp - what a random GPT computes ----------------------------===//

#include "BaseGraph.h"
#include <cmath>

using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

Recipe gptc::fuzz::randomRecipe(Choice &choice) {
  using R = Recipe;
  R r{};
  r.kind = choice.of({R::Kind::Step, R::Kind::Step, R::Kind::Step,
                      R::Kind::Step, R::Kind::Step, R::Kind::Static,
                      R::Kind::Rows, R::Kind::Batch});
  bool tokens = r.kind == R::Kind::Step || r.kind == R::Kind::Static;
  r.B = 2;
  r.T = choice.between(3, 7);
  r.D = choice.of<int64_t>({2, 4, 6});
  r.G = choice.of<int64_t>({1, 1, 2, 3});
  r.H = r.G * choice.of<int64_t>({1, 1, 2, 3});
  r.C = choice.chance(60) ? r.H * r.D : choice.of<int64_t>({6, 8, 12});
  r.F = choice.of<int64_t>({5, 8, 16});
  r.V = choice.of<int64_t>({11, 17});
  r.layers = choice.chance(25) ? 2 : 1;
  r.context = choice.between(r.T, 12);
  r.positions =
      choice.of({R::Positions::Rope, R::Positions::Rope, R::Positions::None,
                 R::Positions::Alibi, R::Positions::Learned});
  if (!tokens && r.positions == R::Positions::Learned)
    r.positions = R::Positions::None;
  r.pairs = choice.of({gpt::RopePairs::Half, gpt::RopePairs::Adjacent});
  r.base = choice.of({1e4, 5e5, 100.0});
  r.rotary = choice.chance(30) ? 2 * choice.between(1, r.D / 2) : r.D;
  r.llama3 = choice.chance(20);
  r.headNorms = choice.chance(15);
  r.norm = choice.of({R::Norm::Layer, R::Norm::LayerNoBeta, R::Norm::Rms});
  r.eps = choice.of({1e-5, 1e-6, 1e-12, 1e-3, 0.3});
  r.order = choice.of({R::Order::Pre, R::Order::Pre, R::Order::Post,
                       R::Order::Parallel, R::Order::Sandwich});
  r.scale = choice.of(
      {1 / std::sqrt(static_cast<double>(r.D)), 0.5, 0.25, 0.375, 2.0, 0.0});
  r.softcap = choice.chance(20) ? choice.of({0.5, 2.0, 4.0}) : 0;
  r.causal = r.kind == R::Kind::Step ? choice.chance(97) : choice.chance(60);
  r.window = r.causal && choice.chance(20) ? choice.between(1, 3) : 0;
  r.cross = r.kind == R::Kind::Rows && choice.chance(20);
  if (r.kind == R::Kind::Rows || r.kind == R::Kind::Batch)
    r.mask = choice.of({R::Mask::None, R::Mask::None, R::Mask::Additive,
                        R::Mask::AdditiveByHead, R::Mask::Boolean,
                        R::Mask::Filled, R::Mask::Padding});
  r.fill = choice.of({-1e9, -1e4, -5.0});
  r.packed = r.H == r.G && !r.cross && choice.chance(30);
  bool anyBias = choice.chance(50);
  for (bool &bias : r.biases)
    bias = anyBias && choice.chance(75);
  r.activation = choice.of({R::Activation::GeluErf, R::Activation::GeluTanh,
                            R::Activation::GeluQuick, R::Activation::Silu,
                            R::Activation::Silu, R::Activation::Relu,
                            R::Activation::Tanh});
  r.gated = choice.chance(40);
  r.residualScale = choice.chance(15) ? 0.5 : 1;
  r.embeddingScale = choice.chance(15) ? 4 : 1;
  r.tied = choice.chance(40);
  r.logitCap = choice.chance(10) ? 4 : 0;
  r.logitScale = choice.chance(10) ? 0.125 : 1;
  r.argmax = tokens && choice.chance(15);
  r.logits = !r.argmax || choice.chance(30);
  if (r.argmax && choice.chance(50))
    r.V += 256; // more than a block of an argmax in a GEMM
  r.extras = choice.chance(50) ? 0 : choice.between(1, 2);
  r.seed = choice.seed();
  return r;
}

template <typename E>
static const char *nameOf(E value, std::initializer_list<const char *> names) {
  return names.begin()[static_cast<int>(value)];
}

std::string gptc::fuzz::describe(const Recipe &r) {
  std::string biases;
  for (bool bias : r.biases)
    biases += bias ? '1' : '0';
  return fmt::format(
      "{} B{} T{} C{} V{} H{} G{} D{} F{} layers {} positions {}{} of {}{}{} "
      "{} eps "
      "{} {} scale {:.4g} softcap {} window {}{}{} mask {} fill {} {} biases "
      "{} {}{} residual {} embedding {} {} cap {} logits {}{} extras {}",
      nameOf(r.kind, {"step", "static", "rows", "batch"}), r.B, r.T, r.C, r.V,
      r.H, r.G, r.D, r.F, r.layers,
      nameOf(r.positions, {"none", "learned", "rope", "alibi"}),
      r.pairs == gpt::RopePairs::Half ? "" : " adjacent", r.rotary,
      r.llama3 ? " llama3" : "", r.headNorms ? " head-norms" : "",
      nameOf(r.norm, {"layer-norm", "layer-norm-no-beta", "rms-norm"}), r.eps,
      nameOf(r.order, {"pre", "post", "parallel", "sandwich"}), r.scale,
      r.softcap, r.window, r.causal ? " causal" : "", r.cross ? " cross" : "",
      nameOf(r.mask,
             {"none", "additive", "by-head", "boolean", "filled", "padding"}),
      r.fill, r.packed ? "packed" : "separate", biases,
      nameOf(r.activation,
             {"gelu-erf", "gelu-tanh", "gelu-quick", "silu", "relu", "tanh"}),
      r.gated ? " gated" : "", r.residualScale, r.embeddingScale,
      r.tied ? "tied" : "untied", r.logitCap, r.logitScale,
      r.logits ? r.argmax ? " argmax" : "" : " argmax-alone", r.extras);
}
