//===- Norms.cpp - layer and root-mean-square normalisation ---------------===//
//
// Two passes over a row: the mean first, then squared deviations from it
// (arXiv:1607.06450, arXiv:1910.07467; that of a sample: The Annotated
// Transformer's LayerNorm). C is the extent of a row.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include <cmath>

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

std::shared_ptr<Tensor>
gptc::reference::normalize(const Call &call, const Tensor &x,
                           const Tensor &gamma, const Tensor *beta, double eps,
                           gpt::NormKind kind) {
  const bool centered = kind != gpt::NormKind::Rms;
  const bool sample = kind == gpt::NormKind::Sample;
  Operation *op = call.op;
  Rounding round = call.round;
  int64_t C = x.columns();
  if (failed(expectExtent(op, gamma.elements(), C, "elements of gamma")) ||
      (beta &&
       failed(expectExtent(op, beta->elements(), C, "elements of beta"))))
    return nullptr;
  auto result = allocate(op, x.shape);
  if (!result)
    return nullptr;
  for (int64_t row = 0; row < x.rows(); ++row) {
    const double *in = x.data.data() + row * C;
    double *out = result->data.data() + row * C;
    double mean = 0.0, square = 0.0;
    if (centered) {
      for (int64_t c = 0; c < C; ++c)
        mean = round(mean + in[c]);
      mean = round(mean / C);
    }
    for (int64_t c = 0; c < C; ++c) {
      double deviation = round(in[c] - mean);
      square = round(square + round(deviation * deviation));
    }
    double variance = round(square / (sample ? C - 1 : C));
    double deviation = sample ? round(round(std::sqrt(variance)) + eps)
                              : round(std::sqrt(round(variance + eps)));
    double scale = round(1.0 / deviation);
    for (int64_t c = 0; c < C; ++c) {
      double scaled = round(round(in[c] - mean) * scale);
      out[c] = round(scaled * gamma.data[c]);
      if (beta)
        out[c] = round(out[c] + beta->data[c]);
    }
  }
  return result;
}

Outcome gptc::reference::eval(gpt::LayerNormOp op, const Call &call) {
  const Tensor *beta = op.getBeta() ? &call[op.getBeta()] : nullptr;
  auto result = normalize(call, call[op.getX()], call[op.getGamma()], beta,
                          op.getEps().convertToDouble(), op.kind());
  return result ? Outcome(Results{result}) : Outcome(failure());
}

Outcome gptc::reference::eval(gpt::RmsNormOp op, const Call &call) {
  auto result = normalize(call, call[op.getX()], call[op.getGamma()], nullptr,
                          op.getEps().convertToDouble(), gpt::NormKind::Rms);
  return result ? Outcome(Results{result}) : Outcome(failure());
}
