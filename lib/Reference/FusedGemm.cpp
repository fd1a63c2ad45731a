//===- FusedGemm.cpp - GEMM with an epilogue, element by element ----------===//
//
// x [T, K], its rows normalised first if the op says so; section i or lane i
// has a weight of N_i output features. All accumulators are computed first;
// then the region runs once per element.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

namespace {
/// A region of scalar ops, made ready to run many times: every value of it has
/// a slot.
class Epilogue {
public:
  /// Reports at the offending op.
  LogicalResult compile(gpt::FusedGemmOp op, Region &region);
  /// Fills `values` with what the region yields.
  void run(llvm::ArrayRef<double> args, Rounding round,
           llvm::SmallVectorImpl<double> &values);

private:
  struct Step {
    ScalarFunction function;
    llvm::SmallVector<unsigned, 3> operands;
    unsigned result;
  };
  unsigned slotOf(Value value);

  llvm::DenseMap<Value, unsigned> numbers;
  std::vector<double> slots;
  std::vector<Step> steps;
  llvm::SmallVector<unsigned, 2> yielded;
};
} // namespace

unsigned Epilogue::slotOf(Value value) {
  auto [entry, isNew] = numbers.try_emplace(value, slots.size());
  if (isNew)
    slots.push_back(0.0);
  return entry->second;
}

LogicalResult Epilogue::compile(gpt::FusedGemmOp parent, Region &region) {
  Block &block = region.front();
  for (BlockArgument argument : block.getArguments())
    slotOf(argument);
  for (Operation &op : block) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      TensorRef value = constantTensor(constant, constant.getValue());
      if (!value)
        return failure();
      if (value->rank() != 0)
        return op.emitError("expected a scalar in an epilogue");
      slots[slotOf(constant)] = value->at(0);
      continue;
    }
    if (isa<gpt::YieldOp>(op)) {
      for (Value operand : op.getOperands())
        yielded.push_back(slotOf(operand));
      return success();
    }
    Step step;
    step.function = scalarFunction(&op);
    if (!step.function || op.getNumResults() != 1)
      return op.emitError("no rule to evaluate '")
             << op.getName() << "' in an epilogue";
    for (Value operand : op.getOperands())
      step.operands.push_back(slotOf(operand));
    step.result = slotOf(op.getResult(0));
    steps.push_back(std::move(step));
  }
  return parent.emitError("expected an epilogue that ends in gpt.yield");
}

void Epilogue::run(llvm::ArrayRef<double> args, Rounding round,
                   llvm::SmallVectorImpl<double> &values) {
  std::copy(args.begin(), args.end(), slots.begin());
  llvm::SmallVector<double, 3> operands;
  for (const Step &step : steps) {
    operands.clear();
    for (unsigned slot : step.operands)
      operands.push_back(slots[slot]);
    slots[step.result] = round(step.function(operands));
  }
  values.clear();
  for (unsigned slot : yielded)
    values.push_back(slots[slot]);
}

/// Runs section `index` over its accumulators (one, or one per lane), [T, N]
/// each: one tensor for each value of the region. None after an error.
static llvm::SmallVector<std::shared_ptr<Tensor>>
runEpilogue(gpt::FusedGemmOp op, unsigned index, const Call &call,
            llvm::ArrayRef<std::shared_ptr<Tensor>> accumulators) {
  const Tensor &first = *accumulators.front();
  int64_t T = first.rows(), N = first.columns();
  std::optional<gpt::RopePairs> pairs = op.ropeOf(index);
  const Tensor *table =
      pairs && op.getRopeTable() ? &call[op.getRopeTable()] : nullptr;
  if (pairs && !table) {
    op.emitError("expected a rope_table for section ") << index;
    return {};
  }
  int64_t D = table ? table->dim(2) : 1;
  int64_t rotary = op.getRotary() ? int64_t(*op.getRotary()) : D;
  if (table &&
      (failed(expectExtent(op, table->dim(0), T, "rows of the rope_table")) ||
       failed(
           expectExtent(op, N % D, 0, "output features beyond whole heads"))))
    return {};
  for (const auto &accumulator : accumulators)
    if (failed(expectExtent(op, accumulator->columns(), N,
                            "output features in every lane")))
      return {};
  for (Value residual : op.getResiduals())
    if (call[residual].shape != first.shape &&
        call[residual].shape != std::vector<int64_t>{N}) {
      op.emitError("expected a residual of shape ")
          << shapeText(first.shape) << " or " << shapeText({N}) << ", got "
          << shapeText(call[residual].shape);
      return {};
    }
  size_t wanted =
      accumulators.size() + (table ? 3 : 0) + op.getResiduals().size();
  Region &region = op.getEpilogues()[index];
  Epilogue epilogue;
  if (failed(expectExtent(op, region.getNumArguments(), wanted,
                          "arguments of the epilogue")) ||
      failed(epilogue.compile(op, region)))
    return {};

  llvm::SmallVector<std::shared_ptr<Tensor>> results;
  for (unsigned i = 0; i < op.numYields(index); ++i) {
    results.push_back(allocate(op, first.shape));
    if (!results.back())
      return {};
  }
  llvm::SmallVector<double> args, values;
  for (int64_t t = 0; t < T; ++t)
    for (int64_t n = 0; n < N; ++n) {
      int64_t i = t * N + n, c = n % D;
      args.clear();
      for (const auto &accumulator : accumulators)
        args.push_back(accumulator->data[i]);
      if (table) {
        // Channels that do not rotate have no partner; its factor is 0.
        int64_t partner = c < rotary ? partnerChannel(*pairs, c, rotary) : c;
        args.push_back(c < rotary ? first.data[i - c + partner] : 0.0);
        args.push_back(table->data[t * 2 * D + c]);
        args.push_back(table->data[(t * 2 + 1) * D + c]);
      }
      for (Value residual : op.getResiduals())
        args.push_back(call[residual].data[call[residual].rank() == 1 ? n : i]);
      epilogue.run(args, call.round, values);
      for (auto [result, value] : llvm::zip(results, values))
        result->data[i] = value;
    }
  return results;
}

Outcome gptc::reference::eval(gpt::FusedGemmOp op, const Call &call) {
  TensorRef x = call.ref(op.getX());
  if (op.getNorm()) {
    x = normalize(call, *x, call[op.getGamma()],
                  op.getBeta() ? &call[op.getBeta()] : nullptr,
                  op.getEps()->convertToDouble(), *op.getNorm());
    if (!x)
      return failure();
  }
  llvm::SmallVector<std::shared_ptr<Tensor>> accumulators;
  for (auto [i, weight] : llvm::enumerate(op.getWeights())) {
    Value bias = op.biasOf(i);
    accumulators.push_back(affine(call, *x, call[weight], op.getInOut()[i],
                                  bias ? &call[bias] : nullptr));
    if (!accumulators.back())
      return failure();
  }

  llvm::ArrayRef<std::shared_ptr<Tensor>> all = accumulators;
  Results results;
  for (unsigned i = 0; i < op.getEpilogues().size(); ++i) {
    auto values =
        runEpilogue(op, i, call, op.getLanes() ? all : all.slice(i, 1));
    if (values.empty())
      return failure();
    if (op.getArgmax()) {
      auto [largest, columns] = largestOf(values[0], *op.getArgmax());
      results.append({largest, columns});
      continue;
    }
    gpt::Append append = op.appendOf(i);
    bool appends = append != gpt::Append::None;
    for (const auto &value : llvm::ArrayRef(values).drop_front(appends))
      results.push_back(value);
    if (!appends)
      continue;
    if (!op.getCache() || !op.getPositions() || !op.getSequences())
      return op.emitError("expected a cache, positions and sequences for "
                          "section ")
             << i << ", which appends";
    KVCache::Part part =
        append == gpt::Append::Keys ? KVCache::Keys : KVCache::Values;
    if (auto message = call[op.getCache()].cache->append(
            part, call.layerBase + op.getLayer().value_or(0), values[0]->data,
            call[op.getPositions()].ints, call[op.getSequences()].ints))
      return op.emitError(*message);
  }
  if (op.getCache())
    results.push_back(call.ref(op.getCache()));
  return results;
}
