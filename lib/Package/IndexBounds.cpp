//===- IndexBounds.cpp - what run must check about indices ----------------===//
//
// `embedding` and `select_rows` read the rows that their i32 operand names, and
// no kernel checks it: a call fails before it starts or not at all. Where the
// operand is an argument, its values get a bound; where it is gpt.positions of
// [T], T gets one.
//
// A bound is a size written as in gptc_value_desc: a number of rows, or the
// dynamic dimension that holds it; 0 where there is none.
//
//===----------------------------------------------------------------------===//
#include "IndexBounds.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

/// Both bounds hold. The smaller of a static and a dynamic one is known only
/// when it runs.
static LogicalResult tighten(CallOp call, int64_t &bound, int64_t rows) {
  if (bound == 0 || bound == rows) {
    bound = rows;
    return success();
  }
  if (bound < 0 || rows < 0)
    return emitError(
        call.getLoc(),
        "expected ids that index tensors of different sizes to index static "
        "ones only");
  bound = std::min(bound, rows);
  return success();
}

static bool isPositions(Value value) {
  auto call = value.getDefiningOp<CallOp>();
  if (!call)
    return false;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      call, call.getKernelAttr());
  return kernel && isa_and_nonnull<PositionsOp>(kernel.kernelOp());
}

/// `ids` index `rows` rows.
static LogicalResult bind(const EntryPlan &plan, CallOp call, Value ids,
                          int64_t rows, IndexBounds &bounds) {
  auto argument = llvm::find(plan.inputs, ids);
  if (argument != plan.inputs.end())
    return tighten(call, bounds.values[argument - plan.inputs.begin()], rows);
  if (!isPositions(ids))
    return emitError(call.getLoc(),
                     "expected the ids to be an argument of the entry "
                     "or gpt.positions: a run checks them before it "
                     "starts");
  int64_t count = plan.dims.sizes(ids)[0];
  if (count < 0)
    return tighten(call, bounds.dims[-1 - count], rows);
  if (rows < 0 || count > rows)
    return emitError(call.getLoc(),
                     "expected at most as many positions as there are "
                     "rows, got ")
           << count << " positions and "
           << (rows < 0 ? "a dynamic number of" : Twine(rows).str()) << " rows";
  return success();
}

FailureOr<IndexBounds> gptc::indexBounds(const EntryPlan &plan) {
  IndexBounds bounds;
  bounds.values.resize(plan.inputs.size(), 0);
  bounds.dims.resize(plan.dims.count(), 0);
  for (const PlannedCall &planned : plan.calls) {
    Operation *op = KernelOp(planned.kernel).kernelOp();
    CallOp call = planned.op;
    LogicalResult bound = success();
    if (auto embedding = dyn_cast<EmbeddingOp>(op))
      bound = bind(plan, call, call.getArgs()[1],
                   embedding.getTable().getType().getDimSize(0), bounds);
    else if (isa<SelectRowsOp>(op))
      bound = bind(plan, call, call.getArgs()[1],
                   plan.dims.sizes(call.getArgs()[0])[0], bounds);
    if (failed(bound))
      return failure();
  }
  return bounds;
}
