//===- Workspace.cpp - where an entry's values lie ------------------------===//
//
// Greedy by size (Pisarchyk and Lee, arXiv:2001.03288): buffers, largest first,
// take the first slot of the same dynamic dimensions in which no buffer lives
// at the same time. So no slot ever grows. Slots of other dimensions are left
// alone, because which of the two is larger is not known here.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/Workspace.h"
#include "gptc/Kernel/Weights.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

Type gptc::elementInMemory(KernelOp kernel, unsigned value) {
  const unsigned arguments = kernel.getArgumentTypes().size();
  bool result = value >= arguments;
  auto element = result
                     ? kernel.getResultAttrOfType<TypeAttr>(value - arguments,
                                                            "gpt.element")
                     : kernel.getArgAttrOfType<TypeAttr>(value, "gpt.element");
  return element ? element.getValue()
                 : getElementTypeOrSelf(
                       result ? kernel.getResultTypes()[value - arguments]
                              : kernel.getArgumentTypes()[value]);
}

namespace {
struct Slot {
  Sizes dims; // dynamic dimensions, sorted
  SmallVector<const Buffer *> buffers;
};

class Planner {
public:
  explicit Planner(EntryPlan &plan) : plan(plan) {}
  LogicalResult run();

private:
  LogicalResult findOutputs();
  LogicalResult planCall(CallOp call);
  LogicalResult addResult(PlannedCall &planned, OpResult result);
  LogicalResult bindDims(PlannedCall &planned);
  FailureOr<gptc_size> sizeOf(Value value, int64_t bytes);
  void assignSlots();

  EntryPlan &plan;
  llvm::DenseMap<Value, gptc_arg> places;
  llvm::DenseMap<Value, Type> elements; // in memory, of results of calls
};

LogicalResult Planner::findOutputs() {
  auto exit =
      cast<func::ReturnOp>(plan.entry.getBody().front().getTerminator());
  for (OpOperand &operand : exit->getOpOperands()) {
    Value value = operand.get();
    if (isa<KVCacheType>(value.getType()))
      continue;
    if (!value.getDefiningOp<CallOp>())
      return exit.emitOpError("expected result ")
             << operand.getOperandNumber()
             << " to be computed by a kernel, got a weight returned as it is";
    gptc_arg place{GPTC_ARG_OUTPUT, int32_t(plan.outputs.size())};
    if (!places.try_emplace(value, place).second)
      return exit.emitOpError("expected every value to be returned once, got "
                              "result ")
             << operand.getOperandNumber() << " again";
    plan.outputs.push_back(value);
    plan.outputNumbers.push_back(operand.getOperandNumber());
  }
  return success();
}

/// `bytes`: of an element.
FailureOr<gptc_size> Planner::sizeOf(Value value, int64_t bytes) {
  gptc_size size{bytes, {-1, -1, -1, -1}, -1};
  unsigned used = 0;
  for (int64_t extent : plan.dims.sizes(value)) {
    if (extent >= 0) {
      if (llvm::MulOverflow(size.bytes, extent, size.bytes) ||
          size.bytes > (int64_t(1) << 46))
        return emitError(value.getLoc())
               << "expected a value of at most 64 TiB, got " << value.getType();
      continue;
    }
    if (used == 3)
      return emitError(value.getLoc())
             << "expected at most 3 dynamic dimensions, got "
             << value.getType();
    size.dims[used++] = int8_t(-1 - extent);
  }
  std::sort(size.dims, size.dims + used);
  return size;
}

LogicalResult Planner::addResult(PlannedCall &planned, OpResult result) {
  if (isa<KVCacheType>(result.getType()))
    return success();
  int64_t now = plan.calls.size();
  Type element =
      elementInMemory(planned.kernel, planned.kernel.getArgumentTypes().size() +
                                          result.getResultNumber());
  elements[result] = element;
  if (places.contains(result) &&
      element != getElementTypeOrSelf(result.getType()))
    return planned.op.emitOpError("expected a result of the entry to be kept "
                                  "as its type says, got ")
           << element;
  auto [place, fresh] = places.try_emplace(
      result, gptc_arg{GPTC_ARG_BUFFER, int32_t(plan.buffers.size())});
  if (fresh) {
    FailureOr<gptc_size> size = sizeOf(
        // Booleans are words.
        result, element.isBF16() || element.isF16() ? 2 : 4);
    if (failed(size))
      return failure();
    plan.buffers.push_back({result, *size, now, now});
  }
  planned.args.push_back(place->second);
  return success();
}

/// Fills planned.dims from where each kernel dimension first appears.
LogicalResult Planner::bindDims(PlannedCall &planned) {
  SmallVector<Value> values(planned.op.getArgs());
  llvm::append_range(values, planned.op.getOuts());
  for (auto [value, local] : llvm::zip(values, dimsOf(planned.kernel))) {
    Sizes sizes = plan.dims.sizes(value);
    for (auto [axis, extent] : llvm::enumerate(local)) {
      size_t number = extent < 0 ? -1 - extent : 0;
      if (extent >= 0 || number < planned.dims.size())
        continue;
      if (number >= 8)
        return planned.op.emitOpError("expected at most 8 dynamic dimensions");
      planned.dims.push_back(int8_t(-1 - sizes[axis]));
    }
  }
  return success();
}

LogicalResult Planner::planCall(CallOp call) {
  PlannedCall planned{call, nullptr, {}, {}};
  planned.kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      call, call.getKernelAttr());
  int64_t now = plan.calls.size();
  for (auto [index, value] : llvm::enumerate(call.getArgs())) {
    if (isa<KVCacheType>(value.getType())) {
      planned.args.push_back(
          {GPTC_ARG_CACHE, int32_t(call.getLayer().value_or(0))});
    } else if (loadOf(value)) {
      planned.args.push_back({GPTC_ARG_WEIGHT, int32_t(index)});
    } else {
      Type element = elementInMemory(planned.kernel, index);
      Type kept = elements.lookup_or(value, getElementTypeOrSelf(value));
      if (element != kept)
        return call.emitOpError("expected operand ")
               << index << " to be kept as " << kept
               << ", as it was written, got " << element;
      gptc_arg place = places.lookup(value);
      planned.args.push_back(place);
      if (place.kind == GPTC_ARG_BUFFER)
        plan.buffers[place.index].lastCall = now;
    }
  }
  for (OpResult result : call->getOpResults())
    if (failed(addResult(planned, result)))
      return failure();
  if (failed(bindDims(planned)))
    return failure();
  plan.calls.push_back(std::move(planned));
  return success();
}

void Planner::assignSlots() {
  SmallVector<Buffer *> largestFirst;
  for (Buffer &buffer : plan.buffers)
    largestFirst.push_back(&buffer);
  llvm::sort(largestFirst, [](const Buffer *a, const Buffer *b) {
    // Equal ones in the order of the calls, in which they lie in the plan.
    return a->size.bytes != b->size.bytes ? a->size.bytes > b->size.bytes
                                          : a < b;
  });
  std::vector<Slot> slots;
  for (Buffer *buffer : largestFirst) {
    Sizes dims;
    for (int8_t dim : buffer->size.dims)
      if (dim >= 0)
        dims.push_back(dim);
    // A call reads its operands while it writes its results.
    auto overlaps = [&](const Buffer *other) {
      return buffer->firstCall <= other->lastCall &&
             other->firstCall <= buffer->lastCall;
    };
    auto slot = llvm::find_if(slots, [&](const Slot &each) {
      return each.dims == dims && llvm::none_of(each.buffers, overlaps);
    });
    if (slot == slots.end())
      slot = slots.insert(slots.end(), Slot{dims, {}});
    slot->buffers.push_back(buffer);
    buffer->size.slot = int32_t(slot - slots.begin());
  }
  plan.slots = slots.size();
}

LogicalResult Planner::run() {
  for (BlockArgument argument : plan.entry.getArguments()) {
    if (isa<KVCacheType>(argument.getType()))
      continue;
    places[argument] = {GPTC_ARG_INPUT, int32_t(plan.inputs.size())};
    plan.inputs.push_back(argument);
  }
  if (failed(findOutputs()))
    return failure();
  // A cache is written in place: its writers must follow one another.
  Value cache;
  for (BlockArgument argument : plan.entry.getArguments())
    if (isa<KVCacheType>(argument.getType()))
      cache = argument;
  for (CallOp call : plan.entry.getOps<CallOp>()) {
    for (Value value : call.getArgs())
      if (isa<KVCacheType>(value.getType()) && value != cache)
        return call.emitOpError("expected the newest value of the cache, which "
                                "is written in place");
    for (Value value : call.getOuts())
      if (isa<KVCacheType>(value.getType()))
        cache = value;
    if (failed(planCall(call)))
      return failure();
  }
  assignSlots();
  return success();
}
} // namespace

FailureOr<EntryPlan> gptc::planEntry(func::FuncOp entry) {
  EntryPlan plan{entry, {}, {}, 0, {}, {}, {}, {}};
  FailureOr<DimAnalysis> dims = DimAnalysis::compute(entry);
  if (failed(dims))
    return failure();
  if (dims->count() > INT8_MAX)
    return entry.emitOpError("expected at most 127 dynamic dimensions, got ")
           << dims->count();
  plan.dims = std::move(*dims);
  if (failed(Planner(plan).run()))
    return failure();
  return plan;
}
