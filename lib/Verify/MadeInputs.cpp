//===- MadeInputs.cpp - seeded weights and arguments ----------------------===//

#include "MadeInputs.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::verify;
using namespace gptc::reference;

std::vector<double> gptc::verify::uniform(std::mt19937_64 &random,
                                          int64_t count, double radius,
                                          int64_t columns) {
  std::vector<double> numbers(count);
  double size = radius;
  for (int64_t i = 0; i < count; ++i) {
    if (columns && i % columns == 0)
      size = radius * (std::array{1.0, 0x1p-7, 4.0, 0x1p-10})[random() % 4];
    // Of the standard's twister; its distributions differ between libraries.
    double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1.0;
    numbers[i] = static_cast<float>(size * unit);
  }
  return numbers;
}

void MadeWeights::look(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (!isa<gpt::LayerNormOp, gpt::RmsNormOp>(op))
      return;
    if (auto load =
            op->getOperand(1).getDefiningOp<ml_program::GlobalLoadConstOp>())
      scales.insert(load.getGlobal().getLeafReference().str());
  });
}

FailureOr<TensorRef> MadeWeights::load(ml_program::GlobalOp global) {
  std::string name = global.getSymName().str();
  TensorRef &tensor = made[name];
  if (tensor)
    return tensor;
  auto type = dyn_cast<RankedTensorType>(global.getType());
  std::optional<int64_t> count =
      type ? elementCount(type.getShape()) : std::nullopt;
  if (!count || !isa<FloatType>(type.getElementType()))
    return global.emitError("expected a weight of floats and of known size");
  std::mt19937_64 random(llvm::xxh3_64bits(name));
  std::vector<double> numbers;
  if (type.getRank() < 2) {
    numbers = uniform(random, *count, 0.5);
    for (double &number : numbers)
      number = static_cast<float>(number + (scales.contains(name) ? 1 : 0));
  } else {
    double K = static_cast<double>(
        std::max<int64_t>(llvm::min_element(type.getShape())[0], 1));
    numbers = uniform(random, *count, std::sqrt(3 / K));
  }
  tensor = makeTensor(type.getShape().vec(), std::move(numbers));
  return tensor;
}

int64_t gptc::verify::rowsChosenBy(Value ids) {
  int64_t rows = -1;
  auto add = [&](int64_t count) {
    rows = rows < 0 ? count : std::min(rows, count);
  };
  for (Operation *user : ids.getUsers()) {
    if (auto embedding = dyn_cast<gpt::EmbeddingOp>(user))
      add(embedding.getTable().getType().getDimSize(0));
    // What only passes the ids on.
    if (isa<gpt::PositionsOp>(user))
      if (int64_t behind = rowsChosenBy(user->getResult(0)); behind >= 0)
        add(behind);
  }
  return rows;
}

/// A cache whose sequence holds `held` positions in every layer.
static TensorRef filledCache(gpt::KVCacheType type, int64_t held,
                             int64_t sequence, std::mt19937_64 &random) {
  TensorRef cache =
      makeCache(type.getLayers(), type.getHeads(), type.getHeadDim());
  std::vector<int64_t> positions, sequences(held, sequence);
  for (int64_t p = 0; p < held; ++p)
    positions.push_back(p);
  int64_t width = type.getHeads() * type.getHeadDim();
  for (int64_t layer = 0; layer < type.getLayers(); ++layer)
    for (KVCache::Part part : {KVCache::Keys, KVCache::Values})
      (void)cache->cache->append(part, layer, uniform(random, held * width, 1),
                                 positions, sequences);
  return cache;
}

Args gptc::verify::makeArgs(func::FuncOp function, const RunSizes &sizes) {
  std::mt19937_64 random(llvm::xxh3_64bits(function.getSymName()));
  bool isStep = llvm::any_of(function.getArgumentTypes(), [](Type type) {
    return isa<gpt::KVCacheType>(type);
  });
  Args args;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    if (auto cache = dyn_cast<gpt::KVCacheType>(argument.getType())) {
      args.push_back(filledCache(cache, sizes.held, sizes.sequence, random));
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      args.push_back(nullptr);
      continue;
    }
    std::vector<int64_t> shape;
    for (int64_t size : type.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? sizes.tokens : size);
    std::optional<int64_t> count = elementCount(shape);
    if (!count) {
      args.push_back(nullptr);
      continue;
    }
    if (type.getElementType().isF32()) {
      int64_t columns = shape.empty() ? 0 : shape.back();
      args.push_back(
          makeTensor(std::move(shape), uniform(random, *count, 1, columns)));
      continue;
    }
    auto name = function.getArgAttrOfType<StringAttr>(i, "gpt.arg");
    StringRef role = isStep && name ? name.getValue() : StringRef();
    int64_t rows = rowsChosenBy(argument);
    std::vector<int64_t> ints(*count);
    for (int64_t j = 0; j < *count; ++j)
      if (type.getElementType().isInteger(1))
        ints[j] = random() % 4 != 0;
      else if (role == "sequences")
        ints[j] = sizes.sequence;
      else if (role == "positions")
        ints[j] = sizes.first + j;
      else if (role == "rows")
        ints[j] = sizes.rowsInOrder ? j : sizes.tokens - 1 - j;
      else if (role == "tokens" || rows > 0)
        ints[j] = static_cast<int64_t>(random() % std::max<int64_t>(rows, 1));
      else
        ints[j] = j; // positions, or what no one looks up
    args.push_back(makeInts(std::move(shape), std::move(ints)));
  }
  return args;
}
