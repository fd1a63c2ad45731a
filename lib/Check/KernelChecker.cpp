//===- KernelChecker.cpp - every kernel call against its meaning ----------===//

#include "KernelChecker.h"
#include "CheckedModel.h"
#include "Pages.h"
#include "gptc/Dialect/Gpt/WeightPart.h"
#include "gptc/Kernel/Weights.h"
#include "gptc/Kernel/Workspace.h"
#include "gptc/Schedule/Schedule.h"
#include <cstring>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;
using namespace gptc::reference;

Precision gptc::check::plainPrecision(InputPrecision inputs) {
  switch (inputs) {
  case InputPrecision::F32:
    return Precision::Single;
  case InputPrecision::TF32:
    return Precision::TF32;
  case InputPrecision::BF16:
    return Precision::BF16;
  case InputPrecision::F16:
    return Precision::F16;
  case InputPrecision::INT8:
    return Precision::Int8;
  }
  llvm_unreachable("a precision that is none of these");
}

Precision gptc::check::storedPrecision(gptc_dtype element) {
  return element == GPTC_F16    ? Precision::F16
         : element == GPTC_BF16 ? Precision::BF16
                                : Precision::Single;
}

/// How an argument or result of a kernel lies in memory.
static std::optional<gptc_dtype> keptAs(gpt::KernelOp kernel, unsigned index) {
  Type element = elementInMemory(kernel, index);
  if (element.isF32())
    return GPTC_F32;
  if (element.isF16())
    return GPTC_F16;
  if (element.isBF16())
    return GPTC_BF16;
  if (element.isInteger(32) || element.isInteger(1)) // an i32 that is 0 or not
    return GPTC_I32;
  return std::nullopt;
}

/// Whether every weight of a kernel is stored in blocks.
static bool hasOnlyBlocks(gpt::KernelOp kernel) {
  KernelGemm gemm = kernelGemm(kernel);
  return llvm::all_of(gemm.sections, [](const KernelGemm::Section &s) {
    return !llvm::is_contained(s.storage, gpt::Storage::I8x4);
  });
}

/// How a call of these sizes computes.
static Precision precisionOf(const PackageModel &plan, const PlannedCall &call,
                             const gptc_event &event) {
  gpt::KernelOp kernel = call.kernel;
  if (!plan.gpu && isa<gpt::EmbeddingOp>(kernel.kernelOp())) {
    auto storage = kernel.getArgAttrOfType<StringAttr>(0, "gpt.storage");
    StringRef name = storage ? storage.getValue() : "";
    return name == "bf16x2" ? Precision::BF16
           : name == "i8x4" ? Precision::Int8
                            : Precision::Single;
  }
  if (!plan.gpu) {
    Precision precision = plainPrecision(kernelInputs(kernel));
    return precision == Precision::Int8 && hasOnlyBlocks(kernel)
               ? Precision::Int8Blocks
               : precision;
  }
  const int64_t rows = event.dim_count ? event.dims[0] : 0;
  for (const CudaVariant &variant : plan.gpu->find(kernel).variants)
    if (rows <= variant.mostRows)
      return plainPrecision(variant.inputs);
  llvm_unreachable("the last variant fits all");
}

KernelChecker::KernelChecker(const PackageModel &plan, WeightSource *weights)
    : plan(plan), weights(weights), exact(weights) {
  if (plan.kv.layers)
    cache = makeCache(plan.kv.layers, plan.kv.heads, plan.kv.head_dim);
}

void KernelChecker::observe(void *user, const gptc_event *event) {
  auto *checker = static_cast<KernelChecker *>(user);
  if (!checker->broken)
    checker->broken = !checker->check(*event);
}

TensorRef KernelChecker::readTensor(const PlannedCall &call, unsigned index,
                                    Type type, const void *data,
                                    const gptc_event &event) {
  std::vector<int64_t> shape;
  llvm::ArrayRef<int64_t> sizes = dimsOf(call.kernel)[index];
  for (int64_t size : sizes)
    shape.push_back(size >= 0 ? size : event.dims[-1 - size]);
  std::optional<int64_t> count = elementCount(shape);
  std::optional<gptc_dtype> dtype = keptAs(call.kernel, index);
  if (!count || !dtype) {
    call.op->emitError("expected argument ")
        << index << " of the kernel to be a tensor of f32 or integers, got "
        << type;
    return nullptr;
  }
  auto numbers = Memory(event).numbers(data, *count, *dtype);
  if (!numbers) {
    call.op->emitError("argument ")
        << index << " of the kernel cannot be read from the GPU's memory";
    return nullptr;
  }
  if (*dtype != GPTC_I32)
    return makeTensor(std::move(shape), std::move(*numbers));
  std::vector<int64_t> ints(numbers->begin(), numbers->end());
  if (getElementTypeOrSelf(type).isInteger(1))
    for (int64_t &value : ints)
      value = value != 0;
  return makeInts(std::move(shape), std::move(ints));
}

TensorRef KernelChecker::weight(Value value) {
  Operation *op = value.getDefiningOp();
  llvm::SmallVector<TensorRef> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(weight(operand));
    if (!operands.back())
      return nullptr;
  }
  // The sum is rounded where it is packed: kernels compute with that number.
  Evaluator packed(weights, Precision::Single);
  FailureOr<Results> results =
      (shiftOf(op) ? packed : exact).evalOp(op, operands);
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
  return readTensor(call, index, value.getType(), event.args[index], event);
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
  Evaluator plain(weights, precisionOf(plan, call, event));
  FailureOr<Results> single = plain.evalOp(op, operands);
  if (mlir::failed(single))
    return false;
  if (append) {
    plainRows = append->fromCache(*cache->cache);
    auto pages = append->fromPages(event.args[append->cacheOperand],
                                   Memory(event), plan.kv);
    if (!pages) {
      op.emitError("the KV pages cannot be read from the GPU's memory");
      return false;
    }
    actualRows = std::move(*pages);
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
    const unsigned index = op.getArgs().size() + i;
    TensorRef actual = readTensor(call, index, result.getType(),
                                  event.args[argument++], event);
    if (!actual)
      return false;
    if (actual->elements() != (*right)[i]->elements()) {
      op.emitError("expected result ")
          << i << " to have shape " << shapeText((*right)[i]->shape) << ", got "
          << shapeText(actual->shape);
      return false;
    }
    add(event, fmt::format("result {}", i),
        compare(*(*right)[i], *(*single)[i], elementsOf(*actual),
                storedPrecision(*keptAs(kernel, index))));
  }
  for (int part : {KVCache::Keys, KVCache::Values})
    if (append && append->parts[part])
      add(event, part == KVCache::Keys ? "appended keys" : "appended values",
          compare(exactRows[part], plainRows[part], actualRows[part],
                  storedPrecision(static_cast<gptc_dtype>(plan.kv.element))));
  for (KernelReport &each : kernels)
    if (each.kernel == event.kernel)
      ++each.calls;
  return true;
}
