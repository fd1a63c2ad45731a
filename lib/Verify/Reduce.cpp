//===- Reduce.cpp - a big model made small --------------------------------===//
//
// On the graph as it is written, before any pass: what is left is a model of
// fewer layers or words, whose ops and their sizes are those of the big one.
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace gptc;

int64_t gptc::verify::weightElements(func::FuncOp function) {
  int64_t count = 0;
  llvm::DenseSet<Attribute> seen;
  function.walk([&](ml_program::GlobalLoadConstOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (type && type.hasStaticShape() && seen.insert(op.getGlobal()).second)
      count += type.getNumElements();
  });
  return count;
}

namespace {
/// The ops from one value that is all that goes on to the next one.
struct Stretch {
  Value from, to;
  llvm::SmallVector<Operation *> ops;
};
} // namespace

/// Cuts the function where one activation is all that goes on. Weights and
/// integers (ids, positions) are at hand everywhere.
static std::vector<Stretch> stretchesOf(func::FuncOp function) {
  Block &body = function.getBody().front();
  llvm::DenseSet<Value> activations;
  llvm::DenseMap<Value, Operation *> lastUse;
  llvm::SmallVector<Operation *> ops;
  for (Operation &op : body) {
    bool isActivation = false;
    for (Value operand : op.getOperands()) {
      lastUse[operand] = &op;
      isActivation |=
          activations.contains(operand) || isa<BlockArgument>(operand);
    }
    if (!isActivation)
      continue;
    ops.push_back(&op);
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getElementType().isF32())
        activations.insert(result);
  }
  std::vector<Stretch> stretches;
  llvm::SetVector<Value> going;
  Stretch current;
  for (Operation *op : ops) {
    current.ops.push_back(op);
    for (Value result : op->getResults())
      if (activations.contains(result) && lastUse.contains(result))
        going.insert(result);
    going.remove_if([&](Value value) { return lastUse[value] == op; });
    if (going.size() != 1)
      continue;
    current.to = going.front();
    stretches.push_back(current);
    current = {current.to, {}, {}};
  }
  return stretches;
}

/// Whether `b` is `a` with other weights.
static bool areEqual(const Stretch &a, const Stretch &b) {
  if (!a.from || !b.from || a.ops.size() != b.ops.size() ||
      a.from.getType() != b.from.getType() || a.to.getType() != b.to.getType())
    return false;
  llvm::DenseMap<Value, Value> other{{a.from, b.from}};
  auto isEqual = [&](Value x, Value y) {
    if (auto it = other.find(x); it != other.end())
      return it->second == y;
    Operation *op = x.getDefiningOp(), *its = y.getDefiningOp();
    if (!op || !its || llvm::is_contained(a.ops, op))
      return x == y;
    auto load = dyn_cast<ml_program::GlobalLoadConstOp>(op);
    if (load) {
      auto itsLoad = dyn_cast<ml_program::GlobalLoadConstOp>(its);
      if (!itsLoad || load.getType() != itsLoad.getType())
        return false;
      auto storage = [](ml_program::GlobalLoadConstOp each) -> Attribute {
        auto global =
            SymbolTable::lookupNearestSymbolFrom<ml_program::GlobalOp>(
                each, each.getGlobalAttr());
        auto stored = global
                          ? global->getAttrOfType<gpt::StoredAttr>("gpt.stored")
                          : gpt::StoredAttr();
        return stored
                   ? StringAttr::get(each.getContext(),
                                     gpt::stringifyStorage(stored.getStorage()))
                   : StringAttr();
      };
      return storage(load) == storage(itsLoad);
    }
    return x == y || (op->getNumOperands() == 0 &&
                      OperationEquivalence::isEquivalentTo(
                          op, its, OperationEquivalence::IgnoreLocations));
  };
  for (auto [x, y] : llvm::zip(a.ops, b.ops)) {
    if (x->getName() != y->getName() || x->getNumRegions() ||
        x->getNumOperands() != y->getNumOperands() ||
        x->getResultTypes() != y->getResultTypes() ||
        x->getAttrDictionary() != y->getAttrDictionary())
      return false;
    for (auto [mine, its] : llvm::zip(x->getOperands(), y->getOperands()))
      if (!isEqual(mine, its))
        return false;
    for (auto [mine, its] : llvm::zip(x->getResults(), y->getResults()))
      other[mine] = its;
  }
  return true;
}

std::pair<int64_t, int64_t>
gptc::verify::keepDistinctLayers(func::FuncOp function) {
  std::vector<Stretch> stretches = stretchesOf(function);
  llvm::SmallVector<const Stretch *> kept;
  int64_t dropped = 0;
  for (Stretch &each : stretches) {
    bool again = each.from && each.from.getType() == each.to.getType() &&
                 llvm::any_of(kept, [&](const Stretch *other) {
                   return areEqual(*other, each);
                 });
    if (!again) {
      kept.push_back(&each);
      continue;
    }
    ++dropped;
    // Later stretches begin with what this one began with.
    for (Stretch &later : stretches)
      if (later.from == each.to)
        later.from = each.from;
    each.to.replaceAllUsesWith(each.from);
    for (Operation *op : llvm::reverse(each.ops))
      op->erase();
  }
  IRRewriter rewriter(function.getContext());
  (void)runRegionDCE(rewriter, function.getBody());
  return {dropped, static_cast<int64_t>(stretches.size())};
}

bool gptc::verify::cutVocabulary(ModuleOp module, int64_t size) {
  auto attr = module->getAttrOfType<IntegerAttr>("gpt.vocab");
  if (!attr || attr.getInt() <= size)
    return false;
  int64_t vocab = attr.getInt();
  bool possible = true;
  auto cut = [&](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !llvm::is_contained(tensor.getShape(), vocab))
      return type;
    llvm::SmallVector<int64_t> shape(tensor.getShape());
    std::replace(shape.begin(), shape.end(), vocab, size);
    return RankedTensorType::get(shape, tensor.getElementType());
  };
  auto depends = [&](Operation *op) {
    return llvm::any_of(op->getOperandTypes(),
                        [&](Type type) { return cut(type) != type; }) ||
           llvm::any_of(op->getResultTypes(),
                        [&](Type type) { return cut(type) != type; });
  };
  module.walk([&](Operation *op) {
    if (depends(op) &&
        !isa<ml_program::GlobalLoadConstOp, gpt::EmbeddingOp, gpt::LinearOp,
             gpt::ScaleOp, gpt::SoftcapOp, gpt::DropoutOp, gpt::ArgmaxOp,
             gpt::SelectRowsOp, func::ReturnOp>(op))
      possible = false;
  });
  if (!possible)
    return false;
  module.walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(cut(result.getType()));
    if (auto global = dyn_cast<ml_program::GlobalOp>(op)) {
      Type type = cut(global.getType());
      if (type != global.getType()) {
        global.setType(type);
        global.setValueAttr(
            ml_program::ExternAttr::get(op->getContext(), type));
      }
    }
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      auto each = [&](TypeRange types) {
        return llvm::map_to_vector(types, cut);
      };
      function.setType(FunctionType::get(op->getContext(),
                                         each(function.getArgumentTypes()),
                                         each(function.getResultTypes())));
      for (BlockArgument argument : function.getArguments())
        argument.setType(cut(argument.getType()));
    }
  });
  module->setAttr("gpt.vocab", IntegerAttr::get(attr.getType(), size));
  return succeeded(mlir::verify(module));
}
