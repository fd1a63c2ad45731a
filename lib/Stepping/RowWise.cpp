//===- RowWise.cpp - which ops work on each token alone -------------------===//
//
// Every value gets the dimension that counts tokens, or none if it does not
// depend on them (weights and what is computed from weights only). An op that
// is not in the list below might mix tokens, so it is refused.
// T tokens, H heads, D head size, C channels.
//
//===----------------------------------------------------------------------===//
#include "RowWise.h"
#include "gptc/Stepping/Elementwise.h"

using namespace mlir;
using namespace gptc;

SmallVector<OpOperand *, 2> gptc::rowOperands(Operation *op) {
  SmallVector<OpOperand *, 2> result;
  auto split = dyn_cast<gpt::SplitOp>(op);
  if (isa<gpt::LinearOp, gpt::LayerNormOp, gpt::RmsNormOp, gpt::LogSoftmaxOp>(
          op) ||
      (split && cast<RankedTensorType>(split.getX().getType()).getRank() == 2))
    result.push_back(&op->getOpOperand(0));
  else if (isElementwise(op))
    for (OpOperand &operand : op->getOpOperands())
      result.push_back(&operand);
  return result;
}

namespace {
class Analysis {
public:
  Analysis(func::FuncOp func, Refuse refuse) : func(func), refuse(refuse) {}
  FailureOr<StepPlan> run();

private:
  static constexpr int kNone = -1;
  LogicalResult visit(Operation *op);
  LogicalResult visitAttention(Attention &attention);
  int rowsOf(Value value) {
    auto it = rows.find(value);
    return it == rows.end() ? kNone : it->second;
  }
  LogicalResult set(Operation *op, int dim) {
    for (Value result : op->getResults())
      rows[result] = dim;
    return success();
  }
  /// Refuses unless the tokens of `value` lie along `dim`.
  LogicalResult expect(Operation *op, Value value, int dim) {
    if (rowsOf(value) == dim)
      return success();
    return refuse(op, dim == kNone
                          ? Twine("expected a weight, got a value that depends "
                                  "on the tokens")
                          : "expected the tokens along dimension " +
                                Twine(dim) + " of the operand");
  }

  func::FuncOp func;
  Refuse refuse;
  StepPlan plan;
  llvm::DenseMap<Value, int> rows;
  llvm::DenseMap<Operation *, unsigned> outputs; // to the attention they end
  llvm::DenseSet<Operation *> inside;            // of some attention
  SmallVector<Attention> found;
};
} // namespace

LogicalResult Analysis::visitAttention(Attention &attention) {
  Operation *op = attention.output;
  if (!attention.causal)
    return refuse(op, "expected a causal mask: without one every token sees "
                      "later tokens");
  if (!attention.masks.empty())
    return refuse(attention.masks.front(),
                  "expected no mask beside the causal one: a step attends to "
                  "the keys of the cache, which are those of real tokens; a "
                  "mask over named tensors makes the function an entry");
  for (Value value : {attention.q, attention.k, attention.v}) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != 3 || !type.isDynamicDim(1) || type.isDynamicDim(0) ||
        type.isDynamicDim(2))
      return refuse(op, "expected q, k and v [H, T, D] with static H and D");
    if (failed(expect(op, value, 1)))
      return failure();
  }
  auto type = cast<RankedTensorType>(attention.k.getType());
  if (type != attention.v.getType())
    return refuse(op, "expected keys and values of one type");
  if (plan.layers.empty()) {
    plan.heads = type.getDimSize(0);
    plan.headDim = type.getDimSize(2);
  } else if (plan.heads != type.getDimSize(0) ||
             plan.headDim != type.getDimSize(2)) {
    return refuse(op, "expected " + Twine(plan.heads) + " KV heads of " +
                          Twine(plan.headDim) + " as in the first layer, got " +
                          Twine(type.getDimSize(0)) + " of " +
                          Twine(type.getDimSize(2)));
  }
  plan.layers.push_back(attention);
  return set(op, 1);
}

LogicalResult Analysis::visit(Operation *op) {
  if (inside.contains(op))
    return success();
  if (auto it = outputs.find(op); it != outputs.end())
    return visitAttention(found[it->second]);
  if (op->getNumRegions())
    return refuse(op, "expected no nested regions");
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    for (Value value : ret.getOperands()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || type.getRank() != 2 || !type.getElementType().isF32())
        return refuse(op, "expected results tensor<?xNxf32>");
      if (failed(expect(op, value, 0)))
        return failure();
    }
    return success();
  }
  if (!isMemoryEffectFree(op))
    return refuse(op, "expected ops without side effects");
  if (llvm::all_of(op->getOperands(),
                   [&](Value v) { return rowsOf(v) == kNone; }))
    return set(op, kNone);

  if (auto positions = dyn_cast<gpt::PositionsOp>(op)) {
    if (positions.getIds() != func.getArgument(0))
      return refuse(op, "expected positions of the function's own tokens");
    plan.positions.push_back(positions);
    return set(op, 0);
  }
  if (isElementwise(op)) {
    int dim = rowsOf(op->getOperand(0));
    for (Value operand : op->getOperands())
      if (failed(expect(op, operand, dim)))
        return failure();
    return set(op, dim);
  }
  // A weight repeated along the sizes of an activation.
  if (auto broadcast = dyn_cast<gpt::BroadcastOp>(op)) {
    auto from = cast<RankedTensorType>(broadcast.getX().getType());
    auto to = cast<RankedTensorType>(broadcast.getType());
    int dim = kNone;
    for (Value like : broadcast.getLike()) {
      int its = rowsOf(like);
      if (its == kNone)
        continue;
      its += to.getRank() - cast<RankedTensorType>(like.getType()).getRank();
      if (dim != kNone && dim != its)
        return refuse(op, "expected the tokens along one dimension");
      dim = its;
    }
    int64_t own = dim - (to.getRank() - from.getRank());
    if (failed(expect(op, broadcast.getX(), kNone)))
      return failure();
    if (dim != kNone && own >= 0 && from.getDimSize(own) != 1)
      return refuse(op, "expected the same numbers for every token");
    return set(op, dim);
  }
  // The first operand or the second is the activation, the others are weights.
  unsigned activation = isa<gpt::EmbeddingOp>(op) ? 1 : 0;
  int dim = rowsOf(op->getOperand(activation));
  if (isa<gpt::RopeOp>(op)) {
    if (failed(expect(op, op->getOperand(0), 1)) ||
        failed(expect(op, op->getOperand(1), 0)))
      return failure();
    return set(op, 1);
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (i != activation && failed(expect(op, operand, kNone)))
      return failure();
  int rank =
      cast<RankedTensorType>(op->getOperand(activation).getType()).getRank();
  if (isa<gpt::LayerNormOp, gpt::RmsNormOp, gpt::LogSoftmaxOp>(op)) {
    if (dim == rank - 1)
      return refuse(op, "expected channels, not tokens, last");
    return set(op, dim);
  }
  if (isa<gpt::EmbeddingOp, gpt::LinearOp>(op) && dim == 0)
    return set(op, 0);
  if (isa<gpt::SplitOp>(op) && dim != rank - 1)
    return set(op, dim);
  if (isa<gpt::SplitHeadsOp>(op) && rank == 2 && dim == 0)
    return set(op, 1);
  if (isa<gpt::MergeHeadsOp>(op) && rank == 3 && dim == 1)
    return set(op, 0);
  if (isa<gpt::ArgmaxOp>(op))
    return refuse(op,
                  "expected @forward to return logits, of which the program "
                  "that steps chooses; what returns tokens is an entry "
                  "without a KV cache");
  return refuse(op, "expected an op that works on each token alone, or causal "
                    "attention; '" +
                        op->getName().getStringRef() + "' may mix tokens");
}

FailureOr<StepPlan> Analysis::run() {
  if (!func.getBody().hasOneBlock())
    return refuse(func, "expected a function of one block");
  auto tokens = func.getNumArguments() == 1
                    ? dyn_cast<RankedTensorType>(func.getArgument(0).getType())
                    : RankedTensorType();
  if (!tokens || tokens.getRank() != 1 || !tokens.isDynamicDim(0) ||
      !tokens.getElementType().isInteger(32))
    return refuse(func, "expected one argument, the tokens: tensor<?xi32>");

  Block &body = func.getBody().front();
  for (auto matmul : body.getOps<gpt::MatmulOp>()) {
    if (!matmul.getA().getDefiningOp<gpt::SoftmaxOp>())
      continue;
    FailureOr<Attention> attention = matchAttention(matmul, refuse);
    if (failed(attention))
      return failure();
    outputs[matmul] = found.size();
    inside.insert_range(attention->chain);
    found.push_back(std::move(*attention));
  }
  if (found.empty())
    return refuse(func, "expected a causal attention over the tokens");

  rows[func.getArgument(0)] = 0;
  for (Operation &op : body)
    if (failed(visit(&op)))
      return failure();
  return std::move(plan);
}

FailureOr<StepPlan> gptc::planStep(func::FuncOp func, Refuse refuse) {
  return Analysis(func, refuse).run();
}
