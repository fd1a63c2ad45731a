//===- Rope.cpp - rotary position embedding -------------------------------===//
//
// Channels (a, b) of a pair become (a cos - b sin, b cos + a sin), the angle
// being position * inverse frequency (arXiv:2104.09864). The frequency scaling
// is Llama 3's, as its model card's reference code defines it, or a division by
// factors.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include <cmath>

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

std::vector<double> gptc::reference::inverseFrequencies(gpt::RopeAttr rope) {
  std::vector<double> frequencies(rope.getRotary() / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double frequency = std::pow(rope.getBase(), -2.0 * i / rope.getRotary());
    if (auto stored =
            dyn_cast_if_present<gpt::RopeFactorsAttr>(rope.getScaling()))
      frequency /= stored.getFactors().size() > 1 ? stored.getFactors()[i]
                                                  : stored.getFactors()[0];
    if (auto scaling =
            dyn_cast_if_present<gpt::RopeScalingAttr>(rope.getScaling())) {
      // How many turns a pair makes within the original context decides.
      double turns = scaling.getOriginal() * frequency / (2.0 * M_PI);
      double low = scaling.getLow(), high = scaling.getHigh();
      double kept = turns < low    ? 0.0
                    : turns > high ? 1.0
                                   : (turns - low) / (high - low);
      frequency *= kept + (1.0 - kept) / scaling.getFactor();
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

int64_t gptc::reference::partnerChannel(gpt::RopePairs pairs, int64_t c,
                                        int64_t dim) {
  if (pairs == gpt::RopePairs::Adjacent)
    return c ^ 1;
  return c < dim / 2 ? c + dim / 2 : c - dim / 2;
}

bool gptc::reference::isFirstOfPair(gpt::RopePairs pairs, int64_t c,
                                    int64_t dim) {
  return pairs == gpt::RopePairs::Adjacent ? c % 2 == 0 : c < dim / 2;
}

/// [T, 2, D]: cosines by channel, then sines by channel, negative for the
/// first of a pair; 1 and 0 for channels that do not rotate. Null after an
/// error.
static std::shared_ptr<Tensor>
angleTable(const Call &call, const Tensor &positions, gpt::RopeAttr rope) {
  Rounding round = call.round;
  int64_t T = positions.elements(), D = rope.getDim(), R = rope.getRotary();
  auto table = allocate(call.op, {T, 2, D});
  if (!table)
    return nullptr;
  std::vector<double> frequencies = inverseFrequencies(rope);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < D; ++c) {
      if (c >= R) {
        table->data[(t * 2 + 0) * D + c] = 1.0;
        continue;
      }
      bool first = isFirstOfPair(rope.getPairs(), c, R);
      int64_t pair = rope.getPairs() == gpt::RopePairs::Adjacent ? c / 2
                     : first                                     ? c
                                                                 : c - R / 2;
      double angle = round(static_cast<double>(positions.ints[t]) *
                           round(frequencies[pair]));
      double sine = round(std::sin(angle));
      table->data[(t * 2 + 0) * D + c] = round(std::cos(angle));
      table->data[(t * 2 + 1) * D + c] = first ? -sine : sine;
    }
  return table;
}

/// x [..., T, D], the first `rotary` channels rotated by `table` [T, 2, D].
static Outcome rotate(const Call &call, const Tensor &x, const Tensor &table,
                      gpt::RopePairs pairs, int64_t rotary) {
  Operation *op = call.op;
  Rounding round = call.round;
  int64_t T = x.dim(-2), D = x.dim(-1);
  if (failed(expectExtent(op, table.dim(0), T, "positions")) ||
      failed(expectExtent(op, table.dim(2), D, "channels of a head")))
    return failure();
  auto result = allocate(op, x.shape);
  if (!result)
    return failure();
  for (int64_t row = 0; row < x.rows(); ++row)
    for (int64_t c = 0; c < D; ++c) {
      int64_t t = row % T;
      double own = x.data[row * D + c];
      if (c >= rotary) {
        result->data[row * D + c] = own;
        continue;
      }
      double other = x.data[row * D + partnerChannel(pairs, c, rotary)];
      result->data[row * D + c] =
          round(round(own * table.data[t * 2 * D + c]) +
                round(other * table.data[(t * 2 + 1) * D + c]));
    }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::RopeOp op, const Call &call) {
  gpt::RopeAttr rope = op.getRope();
  auto table = angleTable(call, call[op.getPositions()], rope);
  if (!table)
    return failure();
  return rotate(call, call[op.getX()], *table, rope.getPairs(),
                rope.getRotary());
}

Outcome gptc::reference::eval(gpt::RopeTableOp op, const Call &call) {
  auto table = angleTable(call, call[op.getPositions()], op.getRope());
  if (!table)
    return failure();
  return Results{table};
}

Outcome gptc::reference::eval(gpt::RotateOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  return rotate(call, x, call[op.getTable()], op.getPairs(),
                op.getRotary() ? int64_t(*op.getRotary()) : x.dim(-1));
}
