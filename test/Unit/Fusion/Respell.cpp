//===- Respell.cpp - the table of the rules -------------------------------===//

#include "RespellParts.h"

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;
using gptc::reference::makeTensor;
using gptc::reference::TensorRef;

namespace {
struct Entry {
  llvm::StringRef name;
  Rule rule;
  int often; // Those that few fusions see through are rare.
};
} // namespace

static constexpr Entry rules[] = {
    {"flip-weight", flipWeight, 4},
    {"merge-linears", mergeLinears, 4},
    {"share-weight", shareWeight, 4},
    {"share-by-head", shareByHead, 3},
    {"split-packed", splitPacked, 4},
    {"pack-by-head", packByHead, 4},
    {"cut-linear", cutLinear, 1},
    {"bias-after", biasAfter, 4},
    {"spell-scale", spellScale, 4},
    {"move-scale", moveScale, 4},
    {"insert-scales", insertScales, 4},
    {"push-scale", pushScale, 4},
    {"repeat-mask", repeatMask, 4},
    {"constant-mask", constantMask, 4},
    {"swap-masks", swapMasks, 4},
    {"split-mask", splitMask, 2},
    {"spell-mask", spellMask, 3},
    {"compare-positions", comparePositions, 4},
    {"compute-mask", computeMask, 3},
    {"mask-twice", maskTwice, 3},
    {"spell-softcap", spellSoftcap, 4},
    {"repeat-heads", repeatHeads, 1},
    {"swap-operands", swapOperands, 4},
    {"regroup-sum", regroupSum, 4},
    {"subtract", subtract, 4},
    {"spell-silu", spellSilu, 2},
    {"insert-dropout", insertDropout, 4},
    {"insert-identity", insertIdentity, 3},
    {"copy-op", copyOp, 4},
    {"permute", permute, 4},
};

llvm::StringRef gptc::fuzz::nameOf(const Respelling &respelling) {
  return rules[respelling.rule].name;
}

Respelling gptc::fuzz::randomRespelling(Choice &choice) {
  static const auto often = [] {
    std::vector<unsigned> numbers;
    for (auto [i, entry] : llvm::enumerate(rules))
      numbers.insert(numbers.end(), entry.often, i);
    return numbers;
  }();
  unsigned rule = choice.in(often);
  return {rule, choice.seed()};
}

bool gptc::fuzz::respell(func::FuncOp function, Weights &weights,
                         const Respelling &respelling) {
  Choice choice(respelling.seed);
  Site site{function, weights, choice, OpBuilder(function)};
  return rules[respelling.rule].rule(site);
}

Value Site::weight(llvm::StringRef name, std::vector<int64_t> shape,
                   std::vector<double> data) {
  return addWeight(function, weights, name,
                   makeTensor(std::move(shape), std::move(data)));
}

TensorRef Site::tensorOf(Value value) {
  auto load = value ? value.getDefiningOp<ml_program::GlobalLoadConstOp>()
                    : ml_program::GlobalLoadConstOp();
  if (!load)
    return nullptr;
  return weights.at(load.getGlobal().getLeafReference().str());
}

Value Site::splat(Location loc, double number, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  FloatAttr value = builder.getF32FloatAttr(number);
  if (type.hasStaticShape() && choice.chance(70))
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, value));
  if (choice.chance(50)) {
    Value scalar = arith::ConstantOp::create(builder, loc, value);
    llvm::SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(tensor::DimOp::create(builder, loc, like, d));
    return tensor::SplatOp::create(builder, loc, scalar, type.getShape(),
                                   sizes);
  }
  llvm::SmallVector<int64_t> shape(choice.below(type.getRank() + 1), 1);
  Value one = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(RankedTensorType::get(shape, builder.getF32Type()),
                             value));
  return gpt::BroadcastOp::create(builder, loc, type, one, like);
}

Value Site::scale(Location loc, Value x, double factor) {
  return gpt::ScaleOp::create(builder, loc, x.getType(), x,
                              builder.getF64FloatAttr(factor));
}

Operation *gptc::fuzz::soleUser(Value value) {
  return value.hasOneUse() ? *value.user_begin() : nullptr;
}

std::vector<double> gptc::fuzz::rowsOf(Value weight, bool inOut, Site &site) {
  TensorRef tensor = site.tensorOf(weight);
  if (!inOut)
    return tensor->data;
  int64_t K = tensor->dim(0), N = tensor->dim(1);
  std::vector<double> rows(K * N);
  for (int64_t k = 0; k < K; ++k)
    for (int64_t n = 0; n < N; ++n)
      rows[n * K + k] = tensor->data[k * N + n];
  return rows;
}
