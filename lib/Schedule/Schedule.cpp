//===- Schedule.cpp - tile sizes of kernels -------------------------------===//
#include "gptc/Schedule/Schedule.h"
#include <numeric>

using namespace mlir;
using namespace gptc;

int64_t gptc::rowDigits(gpt::Storage storage, InputPrecision inputs,
                        const TargetDesc &t) {
  if (inputs == InputPrecision::INT8)
    return 1;
  bool codes = storage == gpt::Storage::Q4_0 || storage == gpt::Storage::Q4_1 ||
               storage == gpt::Storage::Q8_0x4;
  if (!t.byteDot || !codes)
    return 0;
  return inputs == InputPrecision::BF16 ? 2 : 3;
}

GemmSchedule gptc::scheduleGemm(int64_t inFeatures, int64_t whole,
                                RowDigits digits, int64_t lanes,
                                const TargetDesc &t) {
  GemmSchedule s;
  // Of blocks, two sums a column, and registers for codes and scales.
  s.rowTile =
      !digits.blocks ? t.tileRows() : (t.registers - (t.byteDot ? 4 : 8)) / 4;
  s.panel = t.panelWidth();
  s.unit = whole ? std::lcm(s.panel, whole) / s.panel : 1;
  // Four panels give one row eight chains of multiply-adds: latency 4 times two
  // ports. Of many rows, all of A passes for each group: where it is more than
  // L2 keeps, 256 columns halve what that reads, and their sums are half of L2.
  const int64_t panels = digits.digits || lanes > 1 ? 4 : 256 / s.panel;
  s.group = s.unit * ((panels + s.unit - 1) / s.unit);
  // A slice of a panel stays in L1 while tiles of rows pass it: three quarters
  // for both.
  const int64_t number = digits.digits     ? digits.digits
                         : t.pairBroadcast ? 8
                                           : 4,
                // Two digits of q4 meet codes of their own each.
      weight = digits.digits == 2 ? 2
               : digits.digits    ? 1
                                  : 4;
  int64_t depth = t.l1Bytes * 3 / 4 / (s.panel * weight + s.rowTile * number);
  s.depth = std::clamp<int64_t>(depth / 32 * 32, 32, 512);
  // A slice of the rows stays in L2 for a group of panels, beside their sums;
  // all of it may be twice as large. The more rows, the less often weights are
  // read.
  int64_t tiles = 2 * t.l2Bytes / (inFeatures * number) / s.rowTile;
  s.rowBlock = s.rowTile * std::clamp<int64_t>(tiles, 1, 560 / s.rowTile);
  return s;
}

AttentionSchedule gptc::scheduleAttention(gpt::FlashAttentionOp op,
                                          const TargetDesc &) {
  AttentionSchedule s;
  // A block of rows is whole tiles of 6, 8, 12 and 24 rows and whole vectors;
  // its scores of a chunk stay in L1 or L2. A tile has two blocks, so that keys
  // and values that come from memory are used for 96 rows; where keys are
  // transposed for each tile, it has eight.
  const int64_t most = op.getCache() ? 96 : 384;
  s.rowBlock = 48;
  s.tokens = std::max<int64_t>(1, most / op.getGroups());
  s.keyBlock = op.getCache() ? op.getCache().getType().getPage() : 64;
  s.chunk = std::max<int64_t>(1, 256 / s.keyBlock) * s.keyBlock;
  return s;
}

int64_t gptc::wholeColumnsOf(Operation *op) {
  auto gemm = dyn_cast<gpt::FusedGemmOp>(op);
  return gemm && gemm.getArgmax() ? int64_t(*gemm.getArgmax()) : headDimOf(op);
}

/// The most digits of rows beside its weights.
static RowDigits digitsOf(const KernelGemm &gemm, InputPrecision inputs,
                          const TargetDesc &t) {
  RowDigits most;
  for (const KernelGemm::Section &s : gemm.sections)
    for (gpt::Storage storage : s.storage) {
      int64_t digits = gptc::rowDigits(storage, inputs, t);
      most.digits = std::max(most.digits, digits);
      most.blocks |= digits && storage != gpt::Storage::I8x4;
    }
  return most;
}

DictionaryAttr gptc::scheduleOf(gpt::KernelOp kernel, const TargetDesc &target,
                                InputPrecision inputs) {
  Builder b(kernel.getContext());
  SmallVector<NamedAttribute> sizes;
  auto set = [&](StringRef name, int64_t v) {
    sizes.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(v)));
  };
  Operation *op = kernel.kernelOp();
  if (isa<gpt::LinearOp, gpt::FusedGemmOp>(op)) {
    KernelGemm gemm = kernelGemm(kernel);
    GemmSchedule s =
        scheduleGemm(gemm.k, wholeColumnsOf(op), digitsOf(gemm, inputs, target),
                     gemm.maxLanes(), target);
    set("row_tile", s.rowTile);
    set("panel", s.panel);
    set("row_block", s.rowBlock);
    set("depth", s.depth);
    set("unit", s.unit);
    set("group", s.group);
    if (inputs != InputPrecision::F32)
      sizes.push_back(b.getNamedAttr(
          "inputs", b.getStringAttr(stringifyPrecision(inputs))));
  } else if (auto attention = dyn_cast<gpt::FlashAttentionOp>(op)) {
    AttentionSchedule s = scheduleAttention(attention, target);
    set("tokens", s.tokens);
    set("key_block", s.keyBlock);
    set("chunk", s.chunk);
    set("row_block", s.rowBlock);
  } else {
    return {};
  }
  return b.getDictionaryAttr(sizes);
}

static int64_t sizeOf(gpt::KernelOp kernel, StringRef name) {
  return kernel.getScheduleAttr().getAs<IntegerAttr>(name).getInt();
}

/// Of the attribute; nothing if it names none.
static std::optional<InputPrecision> inputsOf(gpt::KernelOp k) {
  Attribute named = k.getScheduleAttr().get("inputs");
  if (!named)
    return InputPrecision::F32;
  auto text = dyn_cast<StringAttr>(named);
  return text ? symbolizePrecision(text.getValue()) : std::nullopt;
}

InputPrecision gptc::kernelInputs(gpt::KernelOp k) {
  return k.getScheduleAttr() ? *inputsOf(k) : InputPrecision::F32;
}

GemmSchedule gptc::readGemmSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "row_tile"), sizeOf(k, "panel"), sizeOf(k, "row_block"),
          sizeOf(k, "depth"),    sizeOf(k, "unit"),  sizeOf(k, "group"),
          kernelInputs(k)};
}

AttentionSchedule gptc::readAttentionSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "tokens"), sizeOf(k, "key_block"), sizeOf(k, "chunk"),
          sizeOf(k, "row_block")};
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
  DictionaryAttr wanted = scheduleOf(kernel, t, InputPrecision::F32);
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
                             "to be whole vectors of " + Twine(t.lanes))) &&
        succeeded(expectSize(kernel, "chunk", s.chunk % s.keyBlock == 0,
                             "to be whole blocks of " + Twine(block))) &&
        succeeded(expectSize(kernel, "row_block", s.rowBlock % 48 == 0,
                             "to be a multiple of 48")));
  }
  auto inputs = inputsOf(kernel);
  if (inputs != InputPrecision::F32 && inputs != InputPrecision::BF16 &&
      inputs != InputPrecision::INT8)
    return kernel.emitOpError("schedule: expected 'inputs' to be \"f32\", "
                              "\"bf16\" or \"int8\"");
  GemmSchedule s = readGemmSchedule(kernel),
               best =
                   scheduleGemm(1, wholeColumnsOf(kernel.kernelOp()), {}, 1, t);
  return success(
      succeeded(
          expectSize(kernel, "panel", s.panel == best.panel,
                     "to be the target's panel width " + Twine(best.panel))) &&
      succeeded(expectSize(kernel, "row_tile", s.rowTile <= t.tileRows(),
                           "to fit " + Twine(t.registers) +
                               " registers: at most " + Twine(t.tileRows()))) &&
      succeeded(expectSize(kernel, "row_block", s.rowBlock % s.rowTile == 0,
                           "to be a multiple of row_tile")) &&
      succeeded(expectSize(kernel, "depth", s.depth % 32 == 0,
                           "to be whole blocks of 32")) &&
      succeeded(expectSize(kernel, "unit", s.unit % best.unit == 0,
                           "to hold whole heads or blocks of an argmax: a "
                           "multiple of " +
                               Twine(best.unit))) &&
      succeeded(expectSize(kernel, "group", s.group % s.unit == 0,
                           "to be a multiple of unit")));
}
