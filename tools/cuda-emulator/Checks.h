// Whether an access of one lane is allowed, and the error if it is not. The
// handlers ask here only where their quick checks of all lanes failed.
#ifndef GPTC_CUDA_EMULATOR_CHECKS_H
#define GPTC_CUDA_EMULATOR_CHECKS_H

#include "Machine.h"

namespace emu {

enum class Access : uint8_t { Load, Store, Atomic };

// An address in device or pinned host memory. Returns where the bytes are.
uint8_t *checkGlobal(Warp &, const Op &, uint32_t lane, uint64_t address,
                     uint32_t bytes, Access access, bool strong);
// Marks bytes of device memory as written by the warp's block.
void markGlobal(Warp &, uint64_t address, uint32_t bytes);
// Shared memory: what shared.load or store found.
[[noreturn]] void faultShared(Warp &, const Op &, uint32_t lane, uint64_t at,
                              uint32_t bytes, Conflict, Access);
[[noreturn]] void faultAlignment(Warp &, const Op &, uint32_t lane,
                                 uint64_t address, uint32_t bytes);
// Local memory of a lane, and parameters of functions.
uint8_t *checkLocal(Warp &, const Op &, uint32_t lane, uint64_t at,
                    uint32_t bytes, Access access);
// Parameters of the kernel.
const uint8_t *checkParam(Warp &, const Op &, uint32_t lane, uint64_t at,
                          uint32_t bytes, Access access);
// The space that a generic address is in; `address` becomes one of that space.
Space spaceOf(uint64_t &address);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_CHECKS_H
