//===- DeriveStep.cpp - from @forward to @step ----------------------------===//
//
// Matches:  func @forward(%tokens: tensor<?xi32>) -> tensor<?xVxf32>, where
//             %s = gpt.matmul %q, %k transpose_b ; ... causal_mask ... softmax
//             %o = gpt.matmul %p, %v
//           is the only place where a token sees another
// Produces: func @step(%tokens, %positions, %sequences, %rows, %cache)
//                 -> (tensor<?xVxf32>, !gpt.kv_cache<...>), where
//             %c1 = gpt.kv_append %c0, %k, %v at %positions, %sequences layer i
//             %K, %V = gpt.kv_read %c1 layer i
//             %s = gpt.matmul %q, %K transpose_b ; ... ; gpt.matmul %p, %V
//           and results are computed for the wanted rows only
//
// causal_mask is aligned bottom-right, so it stays right when the cache holds
// earlier tokens. Functions that are not like this stay plain entries; a
// remark says why, and a warning where attention over tokens lets one expect a
// step. Page = the key block of attention, counted from position 0
// (vLLM's paging, arXiv:2309.06180).
//
//===----------------------------------------------------------------------===//
#include "RowWise.h"
#include "gptc/Stepping/Passes.h"
#include "gptc/Stepping/Remarks.h"
#include "llvm/ADT/StringSwitch.h"
#include <utility>

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_DERIVESTEP
#include "gptc/Stepping/Passes.h.inc"

namespace {
/// Chooses rows as early as possible: a value that is only needed at the wanted
/// rows, by ops that work on each row alone, is computed for them only.
void selectRows(Block &body, Value wanted) {
  // Backwards, so that an op's users are known before it.
  llvm::DenseSet<Operation *> rowOnly{body.getTerminator()};
  auto onlyWanted = [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return rowOnly.contains(user) &&
           (user == body.getTerminator() ||
            llvm::is_contained(rowOperands(user), &use));
  };
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (!op.use_empty() && !rowOperands(&op).empty() &&
        llvm::all_of(op.getUses(), onlyWanted))
      rowOnly.insert(&op);

  llvm::DenseMap<Value, Value> selected;
  auto select = [&](OpOperand &operand) {
    Value value = operand.get();
    if (Operation *op = value.getDefiningOp(); op && rowOnly.contains(op))
      return;
    Value &rows = selected[value];
    if (!rows) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      rows = gpt::SelectRowsOp::create(builder, value.getLoc(), value.getType(),
                                       value, wanted);
    }
    operand.set(rows);
  };
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    if (rowOnly.contains(&op))
      for (OpOperand *operand : rowOperands(&op))
        select(*operand);
  for (OpOperand &operand : body.getTerminator()->getOpOperands())
    select(operand);
}

/// Whether it takes tokens and attends: who writes that wants it to step.
bool looksLikeModel(func::FuncOp func) {
  auto tokens = func.getNumArguments() == 1
                    ? dyn_cast<RankedTensorType>(func.getArgument(0).getType())
                    : RankedTensorType();
  return tokens && tokens.getRank() == 1 &&
         tokens.getElementType().isInteger(32) &&
         !func.getBody().getOps<gpt::SoftmaxOp>().empty();
}

struct DeriveStep : impl::DeriveStepBase<DeriveStep> {
  using DeriveStepBase::DeriveStepBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Type cached = elementType();
    if (!cached) {
      module.emitError("expected f32, bf16 or f16 as the element of the KV "
                       "cache, got '")
          << element << "'";
      return signalPassFailure();
    }
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal())
      return;
    if (pageSize <= 0) {
      module.emitError("expected a positive page size of the KV cache, got ")
          << pageSize;
      return signalPassFailure();
    }
    bool warn = looksLikeModel(forward);
    auto refuse = [&](Operation *op, const Twine &reason) -> LogicalResult {
      remarkMissed(op, "stepping", "derive-step", reason);
      if (std::exchange(warn, false))
        op->emitWarning("@forward becomes an entry without a KV cache, which "
                        "cannot be stepped (give it another name if that is "
                        "meant): ")
            << reason;
      return failure();
    };
    if (Operation *step = module.lookupSymbol("step"))
      return (void)refuse(step, "expected no @step besides @forward");
    if (!SymbolTable::symbolKnownUseEmpty(forward, module))
      return (void)refuse(forward, "expected no use of @forward");
    FailureOr<StepPlan> plan = planStep(forward, refuse);
    if (succeeded(plan))
      derive(forward, *plan, cached);
  }

  /// Null if there is none of this name.
  Type elementType() {
    Builder builder(&getContext());
    return llvm::StringSwitch<Type>(element)
        .Case("f32", builder.getF32Type())
        .Case("bf16", builder.getBF16Type())
        .Case("f16", builder.getF16Type())
        .Default({});
  }

  void derive(func::FuncOp func, StepPlan &plan, Type element);
};
} // namespace

void DeriveStep::derive(func::FuncOp func, StepPlan &plan, Type element) {
  OpBuilder builder(func.getContext());
  Type ids = func.getArgument(0).getType();
  auto cacheType =
      gpt::KVCacheType::get(func.getContext(), plan.layers.size(), plan.heads,
                            plan.headDim, pageSize, element);

  // The signature.
  func.setName("step");
  func.setArgAttr(0, "gpt.arg", builder.getStringAttr("tokens"));
  func.getArgument(0).setLoc(
      NameLoc::get(builder.getStringAttr("tokens"), func.getLoc()));
  for (StringRef name : {"positions", "sequences", "rows", "cache"}) {
    auto attrs = builder.getDictionaryAttr(
        builder.getNamedAttr("gpt.arg", builder.getStringAttr(name)));
    (void)func.insertArgument(
        func.getNumArguments(), name == "cache" ? Type(cacheType) : ids, attrs,
        NameLoc::get(builder.getStringAttr(name), func.getLoc()));
  }
  (void)func.insertResult(func.getNumResults(), cacheType,
                          builder.getDictionaryAttr(builder.getNamedAttr(
                              "gpt.result", builder.getStringAttr("cache"))));
  if (func.getNumResults() == 2 && !func.getResultAttr(0, "gpt.result"))
    func.setResultAttr(0, "gpt.result", builder.getStringAttr("logits"));
  Value positions = func.getArgument(1), sequences = func.getArgument(2),
        rows = func.getArgument(3), cache = func.getArgument(4);

  for (gpt::PositionsOp op : plan.positions) {
    op.getResult().replaceAllUsesWith(positions);
    op.erase();
  }

  // The cache, in the order of the layers. The values may be computed after
  // the scores; the scores move behind them.
  for (auto [layer, attention] : llvm::enumerate(plan.layers)) {
    for (Operation *op : attention.chain)
      op->moveBefore(attention.output);
    builder.setInsertionPoint(attention.chain.front());
    // Each at the place of its reason, so that they can be told apart.
    Operation *keys = attention.k.getDefiningOp();
    cache = gpt::KVAppendOp::create(
        builder, placeOf(keys ? keys : attention.output), cacheType, cache,
        attention.k, attention.v, positions, sequences, layer);
    Type type = attention.k.getType();
    auto read = gpt::KVReadOp::create(builder, placeOf(attention.output), type,
                                      type, cache, layer);
    attention.scores.getBMutable().assign(read.getKeys());
    attention.output.getBMutable().assign(read.getValues());
    ++numLayers;
  }

  // The results.
  Operation *ret = func.getBody().front().getTerminator();
  selectRows(func.getBody().front(), rows);
  ret->insertOperands(ret->getNumOperands(), cache);
  remarkPassed(func, "stepping", "derive-step",
               Twine(plan.layers.size()) + " layers on a KV cache of " +
                   Twine(plan.heads) + " heads of " + Twine(plan.headDim));
}
} // namespace gptc
