//===- Schedule.cpp - tile sizes of kernels -------------------------------===//
#include "gptc/Schedule/Schedule.h"
#include <numeric>

using namespace mlir;
using namespace gptc;

GemmSchedule gptc::scheduleGemm(int64_t inFeatures, int64_t whole,
                                const TargetDesc &t) {
  GemmSchedule s;
  s.rowTile = t.tileRows();
  s.panel = t.panelWidth();
  s.unit = whole ? std::lcm(s.panel, whole) / s.panel : 1;
  // Four panels give one row eight chains of multiply-adds: latency 4 times two
  // ports.
  s.group = s.unit * ((4 + s.unit - 1) / s.unit);
  // Half of L2 for packed rows; the other half holds the panel that they meet.
  // More than 16 tiles gain nothing.
  int64_t tiles = t.l2Bytes / 2 / (inFeatures * 4) / s.rowTile;
  s.rowBlock = s.rowTile * std::clamp<int64_t>(tiles, 1, 16);
  return s;
}

AttentionSchedule gptc::scheduleAttention(gpt::FlashAttentionOp op,
                                          const TargetDesc &) {
  AttentionSchedule s;
  // 48 rows amortise a block's loads while scores and outputs stay in L1 and
  // L2.
  s.tokens = std::max<int64_t>(1, 48 / op.getGroups());
  s.keyBlock = op.getCache() ? op.getCache().getType().getPage() : 64;
  return s;
}

int64_t gptc::wholeColumnsOf(Operation *op) {
  auto gemm = dyn_cast<gpt::FusedGemmOp>(op);
  return gemm && gemm.getArgmax() ? int64_t(*gemm.getArgmax()) : headDimOf(op);
}

static int64_t inFeaturesOf(Operation *op) {
  if (auto linear = dyn_cast<gpt::LinearOp>(op))
    return linear.inFeatures();
  return cast<gpt::FusedGemmOp>(op).inFeatures();
}

DictionaryAttr gptc::scheduleOf(gpt::KernelOp kernel,
                                const TargetDesc &target) {
  Builder b(kernel.getContext());
  SmallVector<NamedAttribute> sizes;
  auto set = [&](StringRef name, int64_t v) {
    sizes.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(v)));
  };
  Operation *op = kernel.kernelOp();
  if (isa<gpt::LinearOp, gpt::FusedGemmOp>(op)) {
    GemmSchedule s = scheduleGemm(inFeaturesOf(op), wholeColumnsOf(op), target);
    set("row_tile", s.rowTile);
    set("panel", s.panel);
    set("row_block", s.rowBlock);
    set("unit", s.unit);
    set("group", s.group);
  } else if (auto attention = dyn_cast<gpt::FlashAttentionOp>(op)) {
    AttentionSchedule s = scheduleAttention(attention, target);
    set("tokens", s.tokens);
    set("key_block", s.keyBlock);
  } else {
    return {};
  }
  return b.getDictionaryAttr(sizes);
}

static int64_t sizeOf(gpt::KernelOp kernel, StringRef name) {
  return kernel.getScheduleAttr().getAs<IntegerAttr>(name).getInt();
}

GemmSchedule gptc::readGemmSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "row_tile"), sizeOf(k, "panel"), sizeOf(k, "row_block"),
          sizeOf(k, "unit"), sizeOf(k, "group")};
}

AttentionSchedule gptc::readAttentionSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "tokens"), sizeOf(k, "key_block")};
}

static LogicalResult expectSize(gpt::KernelOp kernel, StringRef name, bool ok,
                                const Twine &what) {
  if (ok)
    return success();
  return kernel.emitOpError("schedule: expected '")
         << name << "' " << what << ", got " << sizeOf(kernel, name);
}

LogicalResult gptc::expectSizes(gpt::KernelOp kernel, DictionaryAttr wanted) {
  DictionaryAttr given = kernel.getScheduleAttr();
  if (!given)
    return kernel.emitOpError(
        "expected a schedule; gpt-select-schedule sets it");
  for (NamedAttribute size : wanted) {
    auto v = given.getAs<IntegerAttr>(size.getName());
    if (!v || v.getInt() <= 0)
      return kernel.emitOpError("schedule: expected a positive integer '")
             << size.getName().getValue() << "'";
  }
  return success();
}

/// The CPU's kernels keep values and pages as f32.
static LogicalResult expectF32(gpt::KernelOp kernel) {
  auto isNarrow = [](ArrayAttr values) {
    return values && llvm::any_of(values, [](Attribute value) {
             return cast<DictionaryAttr>(value).contains("gpt.element");
           });
  };
  if (isNarrow(kernel.getArgAttrsAttr()) || isNarrow(kernel.getResAttrsAttr()))
    return kernel.emitOpError("expected no 'gpt.element' for the CPU target");
  for (Type type : kernel.getArgumentTypes())
    if (auto cache = dyn_cast<gpt::KVCacheType>(type);
        cache && !cache.getElement().isF32())
      return kernel.kernelOp()->emitOpError(
                 "expected a KV cache of f32 for the CPU target, got ")
             << cache.getElement() << "; compile with --kv=f32";
  return success();
}

LogicalResult gptc::verifySchedule(gpt::KernelOp kernel, const TargetDesc &t) {
  if (failed(expectF32(kernel)))
    return failure();
  DictionaryAttr wanted = scheduleOf(kernel, t);
  if (!wanted)
    return success();
  if (failed(expectSizes(kernel, wanted)))
    return failure();
  if (auto attention = dyn_cast<gpt::FlashAttentionOp>(kernel.kernelOp())) {
    AttentionSchedule s = readAttentionSchedule(kernel);
    int64_t block = scheduleAttention(attention, t).keyBlock;
    return success(
        succeeded(expectSize(kernel, "key_block", s.keyBlock == block,
                             "to be the cache's page of " + Twine(block))) &&
        succeeded(expectSize(kernel, "key_block", s.keyBlock % t.lanes == 0,
                             "to be whole vectors of " + Twine(t.lanes))));
  }
  GemmSchedule s = readGemmSchedule(kernel),
               best = scheduleGemm(1, wholeColumnsOf(kernel.kernelOp()), t);
  return success(
      succeeded(
          expectSize(kernel, "panel", s.panel == best.panel,
                     "to be the target's panel width " + Twine(best.panel))) &&
      succeeded(expectSize(kernel, "row_tile", s.rowTile <= t.tileRows(),
                           "to fit " + Twine(t.registers) +
                               " registers: at most " + Twine(t.tileRows()))) &&
      succeeded(expectSize(kernel, "row_block", s.rowBlock % s.rowTile == 0,
                           "to be a multiple of row_tile")) &&
      succeeded(expectSize(kernel, "unit", s.unit % best.unit == 0,
                           "to hold whole heads or blocks of an argmax: a "
                           "multiple of " +
                               Twine(best.unit))) &&
      succeeded(expectSize(kernel, "group", s.group % s.unit == 0,
                           "to be a multiple of unit")));
}
