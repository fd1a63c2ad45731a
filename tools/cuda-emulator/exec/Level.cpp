// The highest level of vector instructions that this host has.
#include "../Builder.h"

namespace emu {

namespace base {
bool buildOp(Builder &, const Statement &, Op &);
}
#ifdef EMU_LEVELS
namespace v3 {
bool buildOp(Builder &, const Statement &, Op &);
}
#endif

BuildOp buildOpForThisHost() {
#ifdef EMU_LEVELS
  static const BuildOp chosen = [] {
    return setting("GPTC_EMULATOR_LEVEL", 3) >= 3 &&
                   __builtin_cpu_supports("x86-64-v3")
               ? v3::buildOp
               : base::buildOp;
  }();
  return chosen;
#else
  return base::buildOp;
#endif
}

} // namespace emu
