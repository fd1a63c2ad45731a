//===- Agreement.cpp - compiled graphs against the one written ------------===//

#include "Agreement.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>

using namespace mlir;
using namespace gptc::fuzz;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

static TensorRef randomInput(RankedTensorType type, const Recipe &r,
                             bool isPositions, Choice &choice) {
  std::vector<int64_t> shape;
  for (int64_t size : type.getShape())
    shape.push_back(ShapedType::isDynamic(size) ? r.T : size);
  int64_t count = *elementCount(shape);
  Type element = type.getElementType();
  if (element.isF32()) {
    std::vector<double> data(count);
    // Rows of several sizes: what is small beside epsilon is seen, too.
    double size = 1;
    for (int64_t i = 0; i < count; ++i) {
      if (i % shape.back() == 0)
        size = choice.of({1.0, 4.0, 0.0625});
      data[i] = static_cast<float>(size * choice.unit());
    }
    return makeTensor(std::move(shape), std::move(data));
  }
  std::vector<int64_t> ints(count);
  for (int64_t i = 0; i < count; ++i)
    ints[i] = isPositions            ? i
              : element.isInteger(1) ? choice.chance(70)
                                     : choice.below(r.V);
  return makeInts(std::move(shape), std::move(ints));
}

std::string gptc::fuzz::expectedOf(ModuleOp base, const Recipe &r,
                                   const Weights &weights, Expected &expected) {
  NamedWeights source(weights);
  Choice choice(r.seed + 1);
  expected.seed = choice.seed();
  func::FuncOp function = functionOf(base);
  int64_t runs = r.kind == Recipe::Kind::Step ? choice.between(1, 3) : 1;
  for (int64_t run = 0; run < runs; ++run) {
    Expected::Run one;
    Recipe sizes = r;
    if (r.kind == Recipe::Kind::Step)
      sizes.T = choice.between(1, r.T);
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto name = function.getArgAttrOfType<StringAttr>(i, "gpt.arg");
      one.args.push_back(randomInput(cast<RankedTensorType>(type), sizes,
                                     name && name == "positions", choice));
    }
    auto results = Evaluator(&source).run(function, one.args);
    if (failed(results))
      return "the base graph cannot be evaluated";
    one.results = std::move(*results);
    for (const TensorRef &result : one.results)
      if (llvm::any_of(result->data, [](double x) { return std::isnan(x); }))
        return "the base graph gives NaN";
    expected.runs.push_back(std::move(one));
  }
  return "";
}

/// Empty, or where rows `gotRow` and `row` differ; all rows if they are -1.
static std::string compareRows(const Tensor &got, int64_t gotRow,
                               const Tensor &expected, int64_t row) {
  int64_t width = expected.elements();
  if (row >= 0)
    width /= expected.dim(0);
  int64_t from = std::max<int64_t>(row, 0) * width,
          gotFrom = std::max<int64_t>(gotRow, 0) * width;
  if (got.elements() < gotFrom + width || got.kind != expected.kind)
    return fmt::format("has shape {}", shapeText(got.shape));
  double largest = 0;
  for (int64_t i = 0; i < width; ++i)
    if (std::isfinite(expected.at(from + i)))
      largest = std::max(largest, std::fabs(expected.at(from + i)));
  for (int64_t i = 0; i < width; ++i) {
    double right = expected.at(from + i), value = got.at(gotFrom + i);
    if (right == value || std::fabs(right - value) <= tolerance * largest)
      continue;
    return fmt::format("element {}: expected {:.12g}, got {:.12g}", from + i,
                       right, value);
  }
  return "";
}

/// Whether unfused attention reads a sequence from the cache.
static bool readsCache(ModuleOp module) {
  return module->walk([](gpt::KVReadOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

namespace {
/// One call of @step.
struct Piece {
  std::vector<int64_t> tokens, positions, sequences, rows;
  std::vector<size_t> runs; // by token
};
} // namespace

/// The runs as steps: in pieces, mixed with one another unless `alone`, some
/// tokens twice (a step that begins at an earlier position forgets the later
/// ones).
static std::vector<Piece> cutIntoSteps(const Expected &expected, bool alone) {
  Choice choice(expected.seed);
  std::vector<Piece> pieces;
  std::vector<int64_t> done(expected.runs.size());
  auto tokensOf = [&](size_t run) -> const std::vector<int64_t> & {
    return expected.runs[run].args[0]->ints;
  };
  auto isDone = [&](size_t run) {
    return done[run] == static_cast<int64_t>(tokensOf(run).size());
  };
  while (true) {
    llvm::SmallVector<size_t> open;
    for (size_t run = 0; run < done.size(); ++run)
      if (!isDone(run))
        open.push_back(run);
    if (open.empty())
      return pieces;
    choice.shuffle(open);
    if (alone || choice.chance(20))
      open.resize(1);
    Piece piece;
    for (size_t run : open) {
      int64_t length = tokensOf(run).size();
      int64_t first = done[run];
      if (first > 0 && choice.chance(15))
        first = choice.below(first);
      int64_t end = choice.between(first + 1, length);
      for (int64_t t = first; t < end; ++t) {
        piece.tokens.push_back(tokensOf(run)[t]);
        piece.positions.push_back(t);
        piece.sequences.push_back(3 * static_cast<int64_t>(run) + 1);
        piece.runs.push_back(run);
      }
      done[run] = end;
    }
    int64_t count = piece.tokens.size();
    int64_t wanted = choice.between(1, count);
    for (int64_t i = 0; i < wanted; ++i)
      piece.rows.push_back(choice.below(count));
    pieces.push_back(std::move(piece));
  }
}

static std::string compareSteps(const Expected &expected, func::FuncOp step,
                                WeightSource &weights, bool alone) {
  auto type = cast<gpt::KVCacheType>(step.getArgumentTypes().back());
  TensorRef cache =
      makeCache(type.getLayers(), type.getHeads(), type.getHeadDim());
  auto ids = [](const std::vector<int64_t> &values) {
    return makeInts({static_cast<int64_t>(values.size())}, values);
  };
  for (const Piece &piece : cutIntoSteps(expected, alone)) {
    auto got = Evaluator(&weights).run(
        step, {ids(piece.tokens), ids(piece.positions), ids(piece.sequences),
               ids(piece.rows), cache});
    if (failed(got))
      return "cannot be evaluated";
    for (size_t r = 0; r + 1 < got->size(); ++r)
      for (auto [i, row] : llvm::enumerate(piece.rows)) {
        const Expected::Run &run = expected.runs[piece.runs[row]];
        std::string found =
            compareRows(*(*got)[r], i, *run.results[r], piece.positions[row]);
        if (!found.empty())
          return fmt::format("result {}, sequence {} position {}, {}", r,
                             piece.sequences[row], piece.positions[row], found);
      }
  }
  return "";
}

std::string gptc::fuzz::compareWith(const Expected &expected, ModuleOp module,
                                    const Weights &weights,
                                    llvm::StringRef name) {
  NamedWeights source(weights);
  std::string found;
  if (auto step = module.lookupSymbol<func::FuncOp>("step")) {
    found = compareSteps(expected, step, source, readsCache(module));
  } else {
    for (const Expected::Run &run : expected.runs) {
      auto got = Evaluator(&source).run(functionOf(module), run.args);
      if (failed(got))
        return (name + " cannot be evaluated").str();
      for (size_t r = 0; r < got->size() && found.empty(); ++r) {
        found = compareRows(*(*got)[r], -1, *run.results[r], -1);
        if (!found.empty())
          found = fmt::format("result {}, {}", r, found);
      }
    }
  }
  return found.empty() ? "" : (name + ": " + found).str();
}

void gptc::fuzz::addPasses(OpPassManager &manager, bool fuse) {
  manager.addNestedPass<func::FuncOp>(createRemoveDropout());
  manager.addNestedPass<func::FuncOp>(createCanonicalizeAttention());
  manager.addPass(createDeriveStep());
  if (!fuse)
    return buildUnfusedPipeline(manager);
  FusionOptions options;
  options.leastNormFeatures = 1; // the graphs are small
  buildFusionPipeline(manager, options);
}

LogicalResult gptc::fuzz::compile(ModuleOp module, bool fuse) {
  PassManager manager(module.getContext());
  addPasses(manager, fuse);
  return manager.run(module);
}
