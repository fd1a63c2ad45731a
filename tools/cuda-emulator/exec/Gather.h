// Waiting for the lanes that a .sync op names.
#ifndef GPTC_CUDA_EMULATOR_EXEC_GATHER_H
#define GPTC_CUDA_EMULATOR_EXEC_GATHER_H

#include "Lanes.h"

#include <fmt/format.h>

namespace emu::EMU_LEVEL {

// True if every lane named is here (in the mask of the op). Otherwise `flow`
// says what to return. Lanes that have exited are not waited for, as the CUDA
// programming guide has it.
inline bool gathered(Warp &w, const Op &op, uint32_t mask, uint32_t named,
                     Flow &flow) {
  if (mask != w.active) { // lanes whose guard is false go on
    w.groups.push_back({w.active & ~mask, w.pc + 1, w.node, false});
    w.active = mask;
    flow = Flow::Jump;
    return false;
  }
  if (named & w.live & ~mask) {
    flow = Flow::Wait;
    return false;
  }
  return true;
}

// The member mask, the same in every lane and with every lane in it.
inline uint32_t memberMask(Warp &w, const Op &op, int32_t at, uint32_t mask) {
  const uint32_t *members = w.in<uint32_t>(at);
  uint32_t first = members[__builtin_ctz(mask)];
  uint32_t differ = mask & ~first;
  for (int i = 0; i < 32; ++i)
    differ |= (mask >> i & 1) ? members[i] ^ first : 0;
  if (!differ) [[likely]]
    return first;
  forLanes(mask, [&](uint32_t i) {
    if (members[i] != first)
      w.fault(op, i, LaunchFailed,
              fmt::format("expected one member mask in all lanes, got 0x{:08x} "
                          "and 0x{:08x}",
                          first, members[i]));
    if (!(first >> i & 1))
      w.fault(op, i, LaunchFailed,
              fmt::format("expected lane {} in its member mask, got 0x{:08x}",
                          i, first));
  });
  return first;
}

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_GATHER_H
