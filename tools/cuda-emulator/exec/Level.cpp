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
namespace v4 {
bool buildOp(Builder &, const Statement &, Op &);
}
#endif

BuildOp buildOpForThisHost() {
#ifdef EMU_LEVELS
  static const BuildOp chosen = [] {
    uint64_t level = setting("GPTC_EMULATOR_LEVEL", 4);
    if (level >= 4 && __builtin_cpu_supports("x86-64-v4"))
      return v4::buildOp;
    if (level >= 3 && __builtin_cpu_supports("x86-64-v3"))
      return v3::buildOp;
    return base::buildOp;
  }();
  return chosen;
#else
  return base::buildOp;
#endif
}

} // namespace emu
