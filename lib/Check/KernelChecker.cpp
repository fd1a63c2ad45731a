//===- KernelChecker.cpp - every kernel call against its meaning ----------===//

#include "KernelChecker.h"
#include "CheckedModel.h"
#include "Pages.h"
#include "gptc/Kernel/Weights.h"
#include <cstring>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;
using namespace gptc::reference;

KernelChecker::KernelChecker(const PackageModel &plan, WeightSource *weights)
    : plan(plan), exact(weights), plain(weights, Precision::Single) {
  if (plan.kv.layers)
    cache = makeCache(plan.kv.layers, plan.kv.heads, plan.kv.head_dim);
}

void KernelChecker::observe(void *user, const gptc_event *event) {
  auto *checker = static_cast<KernelChecker *>(user);
  if (!checker->broken)
    checker->broken = !checker->check(*event);
}

/// A tensor in the package's memory. Null for an element type that no kernel
/// has.
static TensorRef readTensor(Type type, llvm::ArrayRef<int64_t> sizes,
                            const void *data, const int64_t *dims) {
  std::vector<int64_t> shape;
  for (int64_t size : sizes)
    shape.push_back(size >= 0 ? size : dims[-1 - size]);
  std::optional<int64_t> count = elementCount(shape);
  Type element = getElementTypeOrSelf(type);
  auto fill = [&]<typename T>(T, auto &elements) {
    const char *bytes = static_cast<const char *>(data);
    for (int64_t i = 0; i < *count; ++i) {
      T value;
      std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
      elements.push_back(value);
    }
  };
  if (!count)
    return nullptr;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  if (element.isF32()) {
    fill(float(), floats);
    return makeTensor(std::move(shape), std::move(floats));
  }
  if (element.isInteger(32)) {
    fill(int32_t(), ints);
  } else if (element.isInteger(1)) { // an i32 that is 0 or not
    fill(int32_t(), ints);
    for (int64_t &value : ints)
      value = value != 0;
  } else {
    return nullptr;
  }
  return makeInts(std::move(shape), std::move(ints));
}

TensorRef KernelChecker::weight(Value value) {
  Operation *op = value.getDefiningOp();
  llvm::SmallVector<TensorRef> operands;
  if (isa<tensor::ExtractSliceOp, gpt::HeadPartOp>(op)) {
    operands.push_back(weight(op->getOperand(0)));
    if (!operands.back())
      return nullptr;
  }
  FailureOr<Results> results = exact.evalOp(op, operands);
  return succeeded(results) ? results->front() : nullptr;
}

TensorRef KernelChecker::operand(const PlannedCall &call, unsigned index,
                                 const gptc_event &event) {
  gpt::CallOp op = call.op;
  Value value = op.getArgs()[index];
  if (isa<gpt::KVCacheType>(value.getType()))
    return cache;
  if (loadOf(value))
    return weight(value);
  TensorRef tensor = readTensor(value.getType(), dimsOf(call.kernel)[index],
                                event.args[index], event.dims);
  if (!tensor)
    op.emitError("expected operand ")
        << index << " to be a tensor of f32 or integers, got "
        << value.getType();
  return tensor;
}

void KernelChecker::add(const gptc_event &event, std::string what,
                        const Difference &found) {
  auto report = llvm::find_if(kernels, [&](const KernelReport &each) {
    return each.kernel == event.kernel;
  });
  if (report == kernels.end()) {
    kernels.push_back({event.kernel, 0, {}, "", -1, ""});
    report = std::prev(kernels.end());
  }
  if (report->call >= 0 && !found.worseThan(report->worst))
    return;
  report->worst = found;
  report->entry = event.entry;
  report->call = event.call;
  report->what = std::move(what);
}

bool KernelChecker::check(const gptc_event &event) {
  auto entry = llvm::find_if(plan.entries, [&](const EntryPlan &each) {
    return func::FuncOp(each.entry).getSymName() == event.entry;
  });
  if (entry == plan.entries.end() || event.call < 0 ||
      event.call >= static_cast<int64_t>(entry->calls.size())) {
    report(fmt::format("internal error: no call {} of entry '{}'", event.call,
                       event.entry));
    return false;
  }
  const PlannedCall &call = entry->calls[event.call];
  gpt::CallOp op = call.op;
  gpt::KernelOp kernel = call.kernel;
  llvm::SmallVector<TensorRef> operands;
  for (unsigned i = 0; i < op.getArgs().size(); ++i) {
    operands.push_back(operand(call, i, event));
    if (!operands.back())
      return false;
  }

  std::optional<Append> append = appendOf(op, kernel, operands);
  FailureOr<Results> right = exact.evalOp(op, operands);
  if (mlir::failed(right))
    return false;
  AppendedRows exactRows, plainRows, actualRows;
  if (append)
    exactRows = append->fromCache(*cache->cache);
  FailureOr<Results> single = plain.evalOp(op, operands);
  if (mlir::failed(single))
    return false;
  if (append) {
    plainRows = append->fromCache(*cache->cache);
    actualRows = append->fromPages(
        *static_cast<const gptc_kv_view *>(event.args[append->cacheOperand]),
        plan.kv);
    if (auto message = append->write(actualRows, *cache->cache)) {
      op.emitError(*message);
      return false;
    }
  }

  // Results that are no cache follow the operands.
  unsigned argument = op.getArgs().size();
  for (auto [i, result] : llvm::enumerate(op.getOuts())) {
    if (isa<gpt::KVCacheType>(result.getType()))
      continue;
    TensorRef actual =
        readTensor(result.getType(), dimsOf(kernel)[op.getArgs().size() + i],
                   event.args[argument++], event.dims);
    if (!actual || actual->elements() != (*right)[i]->elements()) {
      op.emitError("expected result ")
          << i << " to have shape " << shapeText((*right)[i]->shape)
          << " of f32 or integers, got " << result.getType();
      return false;
    }
    add(event, fmt::format("result {}", i),
        compare(*(*right)[i], *(*single)[i], elementsOf(*actual)));
  }
  for (int part : {KVCache::Keys, KVCache::Values})
    if (append && append->parts[part])
      add(event, part == KVCache::Keys ? "appended keys" : "appended values",
          compare(exactRows[part], plainRows[part], actualRows[part]));
  for (KernelReport &each : kernels)
    if (each.kernel == event.kernel)
      ++each.calls;
  return true;
}
