//===- SelectSchedule.cpp - gpt-select-schedule ---------------------------===//
//
// May change: the `schedule` attribute of kernels, nothing else.
//
//===----------------------------------------------------------------------===//
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
  void runOnOperation() override {
    std::string error;
    std::optional<TargetDesc> target = lookupTarget(march, error);
    if (!target) {
      getOperation().emitError(error);
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<gpt::KernelOp>()) {
      if (!kernel.getScheduleAttr())
        if (DictionaryAttr schedule = scheduleOf(kernel, *target))
          kernel.setScheduleAttr(schedule);
      if (failed(verifySchedule(kernel, *target)))
        return signalPassFailure();
    }
  }
};
} // namespace
