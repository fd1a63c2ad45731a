// Which family knows a statement.
#include "Lanes.h"

#include <unordered_map>

namespace emu::EMU_LEVEL {

bool buildOp(Builder &builder, const Statement &statement, Op &op) {
  using Family = bool (*)(Builder &, const Statement &, Op &);
  static constexpr Family families[] = {
      buildInteger, buildFloat, buildMove,   buildMemory,       buildCompare,
      buildConvert, buildBits,  buildHalf,   buildApprox,       buildAtomic,
      buildCopy,    buildWarp,  buildMatrix, buildMatrixMemory, buildControl};
  for (Family family : families)
    if (family(builder, statement, op))
      return true;
  return false;
}

} // namespace emu::EMU_LEVEL
