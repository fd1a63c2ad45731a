// Accesses of one lane, checked byte by byte.
#include "Checks.h"

#include <fmt/format.h>

namespace emu {

static const char *verb(Access access) {
  return access == Access::Load    ? "read"
         : access == Access::Store ? "write"
                                   : "update";
}

// The block that a stamp of this launch belongs to.
static std::string blockOf(const Launch &launch, uint32_t value) {
  uint64_t number = value - launch.stampBase - 1;
  if (number >= launch.blocks())
    return "another block";
  return fmt::format("block ({},{},{})", number % launch.grid[0],
                     number / launch.grid[0] % launch.grid[1],
                     number / launch.grid[0] / launch.grid[1]);
}

uint8_t *checkGlobal(Warp &w, const Op &op, uint32_t lane, uint64_t address,
                     uint32_t bytes, Access access, bool strong) {
  Block &block = *w.block;
  const Launch &launch = *block.launch;
  Arena &arena = *launch.arena;
  if (address % bytes)
    faultAlignment(w, op, lane, address, bytes);
  if (address < deviceBase || address - deviceBase > arena.capacity - bytes) {
    if (arena.findHost(address, bytes))
      return reinterpret_cast<uint8_t *>(address);
    w.fault(op, lane, IllegalAddress,
            fmt::format("expected to {} {} bytes of allocated memory, got {}",
                        verb(access), bytes, arena.describe(address)));
  }
  for (uint32_t i = 0; i < bytes; ++i) {
    uint32_t value = arena.byteStamp(address - deviceBase + i);
    if (value == stamp::unallocated)
      w.fault(op, lane, IllegalAddress,
              fmt::format("expected to {} {} bytes of allocated memory, got {}",
                          verb(access), bytes, arena.describe(address + i)));
    if (value == stamp::uninitialised && access != Access::Store)
      w.fault(op, lane, LaunchFailed,
              fmt::format("expected to {} bytes that were written before, got "
                          "{}",
                          verb(access), arena.describe(address + i)));
    if (launch.races && !strong && !block.acquired &&
        value > launch.stampBase && value != block.ownStamp)
      w.fault(op, lane, LaunchFailed,
              fmt::format("expected to {} bytes that no other block of the "
                          "launch writes, got {}, which {} wrote",
                          verb(access), arena.describe(address + i),
                          blockOf(launch, value)));
  }
  return arena.host(address);
}

void markGlobal(Warp &w, uint64_t address, uint32_t bytes) {
  Arena &arena = *w.block->launch->arena;
  if (address - deviceBase >= arena.capacity)
    return; // pinned host memory
  if (bytes >= 4)
    arena.mark(address, bytes, w.block->ownStamp);
  else
    arena.markBytes(address - deviceBase, bytes, w.block->ownStamp);
}

void faultAlignment(Warp &w, const Op &op, uint32_t lane, uint64_t address,
                    uint32_t bytes) {
  w.fault(op, lane, MisalignedAddress,
          fmt::format("expected an address that is a multiple of {}, got "
                      "0x{:x}",
                      bytes, address));
}

void faultShared(Warp &w, const Op &op, uint32_t lane, uint64_t at,
                 uint32_t bytes, Conflict conflict, Access access) {
  SharedMemory &shared = w.block->shared;
  const Launch &launch = *w.block->launch;
  std::string other = "another thread";
  if (shared.other < launch.threads())
    other = fmt::format("thread ({},{},{})", shared.other % launch.block[0],
                        shared.other / launch.block[0] % launch.block[1],
                        shared.other / launch.block[0] / launch.block[1]);
  uint32_t byte = shared.conflictAt;
  std::string text;
  switch (conflict) {
  case Conflict::Outside: {
    std::string variables;
    for (auto [begin, end] : launch.sharedVariables)
      variables += fmt::format(" {}..{}", begin, end);
    w.fault(op, lane, IllegalAddress,
            fmt::format("expected to {} {} bytes of the block's shared "
                        "variables ({} ), got byte {}",
                        verb(access), bytes,
                        variables.empty() ? " none" : variables, at));
  }
  case Conflict::Uninitialised:
    text = fmt::format("expected to {} shared memory that was written before, "
                       "got byte {} (is a barrier missing?)",
                       verb(access), byte);
    break;
  case Conflict::InFlight:
    text = fmt::format("expected to {} shared memory when no cp.async to it is "
                       "in flight, got byte {}, to which {} copies without a "
                       "wait since",
                       verb(access), byte, other);
    break;
  case Conflict::Write:
    text = fmt::format("expected a barrier between this and what {} wrote, "
                       "got a race to {} byte {} of shared memory",
                       other, verb(access), byte);
    break;
  default:
    text = fmt::format("expected a barrier between this and what {} read, got "
                       "a race to {} byte {} of shared memory",
                       other, verb(access), byte);
  }
  w.fault(op, lane, LaunchFailed, text);
}

uint8_t *checkLocal(Warp &w, const Op &op, uint32_t lane, uint64_t at,
                    uint32_t bytes, Access access) {
  if (at % bytes)
    faultAlignment(w, op, lane, at, bytes);
  uint64_t top = w.local + w.code->localBytes;
  if (at > top || bytes > top - at)
    w.fault(op, lane, IllegalAddress,
            fmt::format("expected to {} {} bytes of the thread's {} bytes of "
                        "local memory, got byte {}",
                        verb(access), bytes, top, at));
  uint8_t *set = w.localSet.data() + uint64_t(lane) * w.localStride + at;
  if (access == Access::Load) {
    for (uint32_t i = 0; i < bytes; ++i)
      if (!set[i])
        w.fault(op, lane, LaunchFailed,
                fmt::format("expected to read local memory that was written "
                            "before, got byte {}",
                            at + i));
  } else {
    std::memset(set, 1, bytes);
  }
  return w.localData.data() + uint64_t(lane) * w.localStride + at;
}

const uint8_t *checkParam(Warp &w, const Op &op, uint32_t lane, uint64_t at,
                          uint32_t bytes, Access access) {
  const std::vector<uint8_t> &params = w.block->launch->params;
  if (access != Access::Load)
    w.fault(op, lane, IllegalAddress,
            "expected to read a kernel's parameters, got a write");
  if (at % bytes)
    faultAlignment(w, op, lane, at, bytes);
  if (at > params.size() || bytes > params.size() - at)
    w.fault(op, lane, IllegalAddress,
            fmt::format("expected to read {} bytes of {} bytes of parameters, "
                        "got byte {}",
                        bytes, params.size(), at));
  return params.data() + at;
}

Space spaceOf(uint64_t &address) {
  if (address - sharedBase < windowSize) {
    address -= sharedBase;
    return Space::Shared;
  }
  if (address - localBase < windowSize) {
    address -= localBase;
    return Space::Local;
  }
  if (address - paramBase < windowSize) {
    address -= paramBase;
    return Space::Param;
  }
  return Space::Global;
}

} // namespace emu
