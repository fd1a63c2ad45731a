//===- SelectSchedule.cpp - gpt-select-schedule ---------------------------===//
//
// May change: the `schedule` attribute of kernels, and `gpt.storage` of q8_0 to
// q8_0x4.
//
//===----------------------------------------------------------------------===//
#include "gptc/Schedule/CudaSchedule.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Schedule/Schedule.h"

using namespace mlir;
using namespace gptc;

namespace gptc {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "gptc/Schedule/Passes.h.inc"
} // namespace gptc

namespace {
struct SelectSchedule : gptc::impl::SelectScheduleBase<SelectSchedule> {
  using SelectScheduleBase::SelectScheduleBase;

  /// Of each kernel: the schedule that it has or `choose`s, if `check` agrees.
  void select(llvm::function_ref<DictionaryAttr(gpt::KernelOp)> choose,
              llvm::function_ref<LogicalResult(gpt::KernelOp)> check) {
    for (auto kernel : getOperation().getOps<gpt::KernelOp>()) {
      if (!kernel.getScheduleAttr())
        if (DictionaryAttr schedule = choose(kernel))
          kernel.setScheduleAttr(schedule);
      if (failed(check(kernel)))
        return signalPassFailure();
    }
  }
  /// Bytes of q8_0 in words of four, for sums of products of bytes; tables that
  /// are gathered from too, since they may be a GEMM's weights as well.
  void packInWords() {
    auto name = [&](gpt::Storage storage) {
      return StringAttr::get(&getContext(), stringifyStorage(storage));
    };
    for (auto kernel : getOperation().getOps<gpt::KernelOp>())
      for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i)
        if (kernel.getArgAttr(i, "gpt.storage") == name(gpt::Storage::Q8_0))
          kernel.setArgAttr(i, "gpt.storage", name(gpt::Storage::Q8_0x4));
  }
  void fail(const std::string &error) {
    getOperation().emitError(error);
    signalPassFailure();
  }

  void runOnOperation() override {
    std::string error;
    auto arithmetic = symbolizePrecision(precision);
    if (!arithmetic)
      return fail("expected a precision f32, tf32, bf16, f16 or int8, got '" +
                  precision + "'");
    if (StringRef(march).starts_with("sm_")) {
      auto target = lookupCudaTarget(march, error);
      if (!target)
        return fail(error);
      return select(
          [&](auto k) { return cudaScheduleOf(k, *arithmetic, *target); },
          [&](auto k) { return verifyCudaSchedule(k, *arithmetic, *target); });
    }
    auto target = lookupTarget(march, error, *arithmetic);
    if (!target)
      return fail(error);
    if (rowDigits(gpt::Storage::Q8_0x4, *arithmetic, *target))
      packInWords();
    select([&](auto k) { return scheduleOf(k, *target, *arithmetic); },
           [&](auto k) { return verifySchedule(k, *target); });
  }
};
} // namespace
