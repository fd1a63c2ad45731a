//===- DimClasses.cpp - what each op says about sizes ---------------------===//
//
// One rule per op, as docs/Semantics.md states its shapes. Ops without a rule
// say nothing, which is always right and at worst makes more dimensions.
//
// Names: T tokens, C channels, H heads, D head size, M N K of a product.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/DimAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

unsigned DimClasses::node(Value value, unsigned axis) {
  auto [it, inserted] = firstNode.try_emplace(value, parent.size());
  if (inserted)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (int64_t extent : type.getShape()) {
        parent.push_back(parent.size());
        size.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
      }
  return it->second + axis;
}

unsigned DimClasses::root(unsigned node) {
  while (parent[node] != node)
    node = parent[node] = parent[parent[node]];
  return node;
}

unsigned DimClasses::find(Value value, unsigned axis) {
  return root(node(value, axis));
}

std::optional<int64_t> DimClasses::staticSize(Value value, unsigned axis) {
  int64_t extent = size[find(value, axis)];
  return extent < 0 ? std::nullopt : std::optional(extent);
}

void DimClasses::unite(Value a, unsigned axisA, Value b, unsigned axisB) {
  unsigned rootA = find(a, axisA), rootB = find(b, axisB);
  if (rootA == rootB)
    return;
  if (size[rootB] >= 0)
    fix(a, axisA, size[rootB]);
  parent[rootB] = rootA;
}

void DimClasses::fix(Value value, unsigned axis, int64_t extent) {
  int64_t &known = size[find(value, axis)];
  if (known < 0)
    known = extent;
  else if (known != extent && !conflict)
    conflict = {value, axis, known, extent};
}

/// `a` has `groups` times the heads of `b`.
void DimClasses::groupsRule(Value a, Value b, unsigned axis, int64_t groups) {
  if (groups == 1)
    return unite(a, axis, b, axis);
  if (auto heads = staticSize(b, axis); heads && *heads <= INT32_MAX)
    fix(a, axis, *heads * groups);
  else if (auto heads = staticSize(a, axis); heads && *heads % groups == 0)
    fix(b, axis, *heads / groups);
}

/// Equal shapes: every axis of every value (of equal rank) with the first's.
void DimClasses::uniteAll(ValueRange values) {
  Value first;
  for (Value value : values) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    if (!first)
      first = value;
    if (rankOf(value) == rankOf(first))
      for (int64_t axis = 0; axis < rankOf(first); ++axis)
        unite(first, axis, value, axis);
  }
}

namespace {
/// a [.., H, M, K], b [.., H / groups, K, N] or [.., N, K].
void matmulRule(DimClasses &dims, MatmulOp op) {
  Value a = op.getA(), b = op.getB(), result = op.getResult();
  int64_t rank = rankOf(a), m = rank - 2, k = rank - 1;
  bool transposed = op.getTransposeB();
  for (int64_t axis = 0; axis < m; ++axis) {
    dims.unite(a, axis, result, axis);
    if (axis + 1 < m)
      dims.unite(a, axis, b, axis);
  }
  dims.unite(a, m, result, m);
  dims.unite(a, k, b, transposed ? k : m);
  dims.unite(b, transposed ? m : k, result, k);
}

/// merged [.., T, H * D] and heads [.., H, T, D].
void headsRule(DimClasses &dims, Value merged, Value heads) {
  int64_t rank = rankOf(merged);
  for (int64_t axis = 0; axis + 2 < rank; ++axis)
    dims.unite(merged, axis, heads, axis);
  dims.unite(merged, rank - 2, heads, rank - 1);
}

/// The dimensions of `x` are the last ones of another value, whose axis d is
/// axis(d), each equal or a static 1.
void repeatedRule(DimClasses &dims, Value x, int64_t rank,
                  function_ref<std::pair<Value, unsigned>(unsigned)> axis) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t skip = rank - type.getRank();
  for (auto [i, extent] : llvm::enumerate(type.getShape()))
    if (extent != 1) {
      auto [value, number] = axis(skip + i);
      dims.unite(value, number, x, i);
    }
}

void attentionRule(DimClasses &dims, FlashAttentionOp op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  int64_t rank = rankOf(q);
  if (KVCacheType cache = op.getCache() ? op.getCache().getType() : nullptr)
    dims.fix(q, rank - 1,
             cache.getHeads() * cache.getHeadDim() * int64_t(op.getGroups()));
  if (!k)
    return;
  dims.unite(k, rank - 2, v, rank - 2);
  dims.unite(q, rank - 1, k, rank - 1);
  dims.unite(q, rank - 1, v, rank - 1);
  for (int64_t axis = 0; axis + 3 < rank; ++axis) {
    dims.unite(q, axis, k, axis);
    dims.unite(q, axis, v, axis);
  }
  for (Value mask : op.getMasks())
    repeatedRule(dims, mask, rank, [&](unsigned axis) {
      return axis + 1 < rank ? std::pair<Value, unsigned>(q, axis)
                             : std::pair<Value, unsigned>(k, rank - 2);
    });
}

/// Sizes that `gpt.dims` gives one number are equal.
void callRule(DimClasses &dims, CallOp op) {
  auto kernel =
      SymbolTable::lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return;
  SmallVector<Value> values(op.getArgs());
  llvm::append_range(values, op.getOuts());
  llvm::SmallDenseMap<int64_t, std::pair<Value, unsigned>> seen;
  for (auto [value, sizes] : llvm::zip(values, dimsOf(kernel)))
    for (auto [axis, extent] : llvm::enumerate(sizes))
      if (extent < 0) {
        auto [it, first] = seen.try_emplace(extent, value, axis);
        if (!first)
          dims.unite(it->second.first, it->second.second, value, axis);
      }
}
} // namespace

void DimClasses::addRulesOf(Operation *op) {
  // The rows of `value` are those of `other`.
  auto rows = [&](Value value, Value other) {
    if (value && other)
      unite(value, 0, other, 0);
  };
  // Every axis but the last.
  auto leading = [&](Value value, Value other) {
    for (int64_t axis = 0; axis + 1 < rankOf(value); ++axis)
      unite(value, axis, other, axis);
  };
  auto columns = [&](Value value, Value other) {
    unite(value, rankOf(value) - 1, other, rankOf(other) - 1);
  };
  /// x [.., K] times a weight; result [.., N], or null.
  auto weight = [&](Value x, Value w, bool inOut, Value result) {
    unite(x, rankOf(x) - 1, w, inOut ? 0 : 1);
    if (result)
      unite(result, rankOf(result) - 1, w, inOut ? 1 : 0);
  };
  auto cached = [&](Value keys, KVCacheType cache) {
    fix(keys, 0, cache.getHeads());
    fix(keys, 2, cache.getHeadDim());
  };
  auto sequenceAxis = [&](Value heads, Value perToken) {
    unite(heads, rankOf(heads) - 2, perToken, 0);
  };
  TypeSwitch<Operation *>(op)
      .Case([&](EmbeddingOp op) {
        rows(op.getIds(), op.getResult());
        columns(op.getTable(), op.getResult());
      })
      .Case([&](SelectRowsOp op) {
        rows(op.getRows(), op.getResult());
        for (int64_t axis = 1; axis < rankOf(op.getX()); ++axis)
          unite(op.getX(), axis, op.getResult(), axis);
      })
      .Case([&](LinearOp op) {
        leading(op.getX(), op.getResult());
        weight(op.getX(), op.getWeight(), op.getInOut(), op.getResult());
      })
      .Case([&](MatmulOp op) {
        matmulRule(*this, op);
        groupsRule(op.getA(), op.getB(), rankOf(op.getA()) - 3, op.getGroups());
      })
      .Case([&](SplitOp op) {
        for (Value part : op.getParts())
          leading(op.getX(), part);
      })
      .Case([&](ArgmaxOp op) {
        for (int64_t axis = 0; axis < rankOf(op.getResult()); ++axis)
          unite(op.getX(), axis, op.getResult(), axis);
      })
      .Case(
          [&](SplitHeadsOp op) { headsRule(*this, op.getX(), op.getResult()); })
      .Case(
          [&](MergeHeadsOp op) { headsRule(*this, op.getResult(), op.getX()); })
      .Case([&](LayerNormOp op) {
        uniteAll({op.getX(), op.getResult()});
        columns(op.getGamma(), op.getX());
      })
      .Case([&](RmsNormOp op) {
        uniteAll({op.getX(), op.getResult()});
        columns(op.getGamma(), op.getX());
      })
      .Case([&](RopeOp op) {
        uniteAll({op.getX(), op.getResult()});
        sequenceAxis(op.getX(), op.getPositions());
        fix(op.getX(), rankOf(op.getX()) - 1, op.getRope().getDim());
      })
      .Case([&](RotateOp op) {
        uniteAll({op.getX(), op.getResult()});
        sequenceAxis(op.getX(), op.getTable());
        columns(op.getTable(), op.getX());
      })
      .Case([&](RopeTableOp op) {
        rows(op.getPositions(), op.getResult());
        fix(op.getResult(), 2, op.getRope().getDim());
      })
      .Case([&](AlibiOp op) {
        uniteAll({op.getS(), op.getResult()});
        fix(op.getS(), rankOf(op.getS()) - 3, op.getSlopes().size());
      })
      .Case([&](MaskOp op) {
        uniteAll({op.getS(), op.getResult()});
        repeatedRule(*this, op.getMask(), rankOf(op.getS()),
                     [&](unsigned axis) {
                       return std::pair<Value, unsigned>(op.getS(), axis);
                     });
      })
      .Case([&](BroadcastOp op) {
        auto repeated = [&](Value value) {
          repeatedRule(
              *this, value, rankOf(op.getResult()), [&](unsigned axis) {
                return std::pair<Value, unsigned>(op.getResult(), axis);
              });
        };
        llvm::for_each(op.getLike(), repeated);
        repeated(op.getX());
        if (auto shape = jointShape(op.getLike().getTypes()); succeeded(shape))
          for (auto [axis, extent] : llvm::enumerate(*shape))
            if (!ShapedType::isDynamic(extent))
              fix(op.getResult(), axis, extent);
      })
      .Case([&](tensor::ExpandShapeOp op) {
        // By dimensions of 1; others say nothing.
        ArrayRef<int64_t> shape = op.getResultType().getShape();
        for (auto [axis, group] :
             llvm::enumerate(op.getReassociationIndices())) {
          auto isOne = [&](int64_t to) { return shape[to] == 1; };
          auto to = llvm::find_if_not(group, isOne);
          if (to != group.end() &&
              std::all_of(std::next(to), group.end(), isOne))
            unite(op.getSrc(), axis, op.getResult(), *to);
        }
      })
      .Case([&](KVAppendOp op) {
        uniteAll({op.getKeys(), op.getValues()});
        cached(op.getKeys(), op.getCache().getType());
        rows(op.getPositions(), op.getSequences());
        sequenceAxis(op.getKeys(), op.getPositions());
      })
      .Case([&](KVReadOp op) {
        uniteAll({op.getKeys(), op.getValues()});
        cached(op.getKeys(), op.getCache().getType());
      })
      .Case([&](FusedGemmOp op) {
        for (auto [i, w] : llvm::enumerate(op.getWeights()))
          weight(op.getX(), w, op.getInOut()[i], Value());
        for (int64_t i = 0; i < op.numSections(); ++i)
          for (Value output : op.outputsOf(i)) {
            rows(op.getX(), output);
            fix(output, 1, op.outColumns(i));
          }
        for (Value residual : op.getResiduals()) {
          fix(residual, rankOf(residual) - 1, op.outFeatures(0));
          if (rankOf(residual) == 2)
            rows(op.getX(), residual);
        }
        rows(op.getX(), op.getRopeTable());
        rows(op.getX(), op.getPositions());
        rows(op.getX(), op.getSequences());
      })
      .Case([&](MergeArgmaxOp op) {
        uniteAll({op.getValues(), op.getColumns()});
        rows(op.getValues(), op.getResult());
      })
      .Case([&](FlashAttentionOp op) {
        uniteAll({op.getQ(), op.getResult()});
        rows(op.getPositions(), op.getSequences());
        rows(op.getPositions() ? op.getQ() : Value(), op.getPositions());
        attentionRule(*this, op);
        if (op.getK())
          for (Value each : {op.getK(), op.getV()})
            groupsRule(op.getQ(), each, rankOf(each) - 3, op.getGroups());
      })
      .Case([&](CallOp op) { callRule(*this, op); })
      .Default([&](Operation *op) {
        // Elementwise ops: arith and math on tensors, and the gpt ops whose
        // operands and result have one type.
        if (op->hasTrait<OpTrait::Elementwise>() ||
            op->hasTrait<OpTrait::SameOperandsAndResultType>()) {
          SmallVector<Value> values(op->getOperands());
          llvm::append_range(values, op->getResults());
          uniteAll(values);
        }
      });
}
