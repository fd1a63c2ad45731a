// Addresses of lanes, shared by everything that accesses memory.
#ifndef GPTC_CUDA_EMULATOR_EXEC_MEMORY_H
#define GPTC_CUDA_EMULATOR_EXEC_MEMORY_H

#include "../Checks.h"
#include "Lanes.h"

namespace emu::EMU_LEVEL {

// The address of each lane; lanes outside the mask get that of the first lane
// inside it, so that checks can look at all 32.
inline void addresses(const Warp &w, const Op &op, int32_t base, uint32_t mask,
                      uint64_t *at) {
  uint64_t offset = op.imm;
  if (!op.hasBase) {
    offset += op.ofFrame ? w.local : 0;
    for (int i = 0; i < 32; ++i)
      at[i] = offset;
    return;
  }
  if (op.wideBase) {
    const uint64_t *a = w.in<uint64_t>(base);
    for (int i = 0; i < 32; ++i)
      at[i] = a[i] + offset;
  } else {
    const uint32_t *a = w.in<uint32_t>(base);
    for (int i = 0; i < 32; ++i)
      at[i] = uint32_t(a[i] + uint32_t(offset));
  }
  if (mask != allLanes) {
    uint64_t first = at[__builtin_ctz(mask)];
    for (int i = 0; i < 32; ++i)
      at[i] = (mask >> i & 1) ? at[i] : first;
  }
}

// The space that .global, .shared and so on say.
inline Space spaceIn(const Statement &s) {
  for (std::string_view part : s.parts) {
    if (part == "global")
      return Space::Global;
    if (part == "shared" || part == "shared::cta")
      return Space::Shared;
    if (part == "local")
      return Space::Local;
    if (part == "const")
      return Space::Const;
    if (part == "param" || part == "param::entry" || part == "param::func")
      return Space::Param;
  }
  return Space::Generic;
}

// Runs f(space, mask) with addresses of that space, once for each space that
// lanes with generic addresses point to.
template <class F>
inline void bySpace(const Op &op, uint32_t mask, uint64_t *at, F f) {
  if (op.space != Space::Generic)
    return f(op.space, mask);
  uint64_t most = 0;
  for (int i = 0; i < 32; ++i)
    most = std::max(most, at[i]);
  if (most < sharedBase)
    return f(Space::Global, mask);
  for (uint32_t rest = mask; rest;) {
    uint64_t first = at[__builtin_ctz(rest)];
    Space space = spaceOf(first);
    uint32_t same = 0;
    uint64_t local[32];
    forLanes(rest, [&](uint32_t lane) {
      uint64_t address = at[lane];
      if (spaceOf(address) == space) {
        same |= 1u << lane;
        local[lane] = address;
      }
    });
    uint64_t all[32];
    std::copy(at, at + 32, all);
    for (int i = 0; i < 32; ++i)
      at[i] = same >> i & 1 ? local[i] : first;
    f(space, same);
    std::copy(all, all + 32, at);
    rest &= ~same;
  }
}

// Whether the stamps of `bytes` at each address allow it; offsets are from the
// arena's begin. Stores leave the block's stamp.
template <int bytes>
inline bool quickStamps(Warp &w, const uint64_t *at, uint32_t mask,
                        bool store) {
  Block &block = *w.block;
  Arena &arena = *block.launch->arena;
  constexpr int perLane = (bytes + 3) / 4;
  uint64_t misaligned = 0, most = 0, spread = 0;
  for (int i = 0; i < 32; ++i) {
    misaligned |= at[i] & (bytes - 1);
    most = std::max(most, at[i] - deviceBase);
    spread |= at[i] ^ (at[0] + uint64_t(i) * bytes);
  }
  if (misaligned || most >= arena.capacity - 16)
    return false;
  uint32_t own = block.ownStamp;
  uint32_t lowest = store ? stamp::uninitialised : stamp::host;
  uint32_t span =
      (block.acquired || !block.launch->races ? stamp::last
                                              : block.launch->stampBase) -
      lowest;
  uint32_t *words = arena.words;
  bool bad = false;
  if (spread == 0 && (bytes >= 4 || at[0] % 4 == 0)) {
    uint32_t *first = words + (at[0] - deviceBase) / 4;
    constexpr int count = 32 * bytes / 4;
    if (store && mask != allLanes && bytes < 4)
      return false;
    for (int i = 0; i < count; ++i)
      bad |= !((first[i] - lowest <= span) | (first[i] == own));
    if (bad)
      return false;
    if (store) {
      if (mask == allLanes)
        std::fill(first, first + count, own);
      else
        forLanes(mask, [&](uint32_t lane) {
          std::fill_n(first + lane * perLane, perLane, own);
        });
    }
    return true;
  }
  if (store && bytes < 4)
    return false;
  for (int part = 0; part < perLane; ++part)
    for (int i = 0; i < 32; ++i) {
      uint32_t value = words[(at[i] - deviceBase) / 4 + part];
      bad |= !((value - lowest <= span) | (value == own));
    }
  if (bad)
    return false;
  if (store)
    forLanes(mask, [&](uint32_t lane) {
      std::fill_n(words + (at[lane] - deviceBase) / 4, perLane, own);
    });
  return true;
}

inline bool quickStamps(Warp &w, const uint64_t *at, uint32_t mask,
                        uint32_t bytes, bool store) {
  switch (bytes) {
  case 1:
    return quickStamps<1>(w, at, mask, store);
  case 2:
    return quickStamps<2>(w, at, mask, store);
  case 4:
    return quickStamps<4>(w, at, mask, store);
  case 8:
    return quickStamps<8>(w, at, mask, store);
  default:
    return quickStamps<16>(w, at, mask, store);
  }
}

// Lanes 0 to 31 access 32 words in a row of shared memory, or twice or four
// times as many: whether the records allow it (and then note it).
template <int perLane>
inline bool quickRowLoad(SharedMemory &shared, uint32_t warp, uint32_t word) {
  SharedMemory::Quick q = shared.quick(warp);
  constexpr int count = 32 * perLane;
  const uint32_t *written = &q.words.written[word];
  uint32_t *read = &q.words.read[word], *readers = &q.words.readers[word];
  uint16_t *reader = &q.words.reader[word];
  uint32_t begin = q.origin + 1, span = q.limit - q.origin, limit = q.limit;
  uint32_t bad = 0, thread = warp * 32, bit = 1u << warp, now = q.clock;
  uint32_t any = SharedMemory::lastTime - q.origin;
  const uint16_t *writer = &q.words.writer[word];
  for (int i = 0; i < count; ++i) {
    bool mine = writer[i] == thread + i / perLane && written[i] - begin < any;
    bad |= !(written[i] - begin < span || mine);
  }
  if (bad)
    return false;
  for (int i = 0; i < count; ++i) {
    bool fresh = read[i] <= limit;
    uint32_t me = thread + i / perLane;
    reader[i] = fresh || reader[i] == me ? me : SharedMemory::manyThreads;
    readers[i] = fresh ? bit : readers[i] | bit;
    read[i] = now;
  }
  return true;
}
template <int perLane>
inline bool quickRowStore(SharedMemory &shared, uint32_t warp, uint32_t word) {
  SharedMemory::Quick q = shared.quick(warp);
  constexpr int count = 32 * perLane;
  uint32_t *written = &q.words.written[word];
  const uint32_t *read = &q.words.read[word];
  uint16_t *writer = &q.words.writer[word];
  const uint16_t *reader = &q.words.reader[word];
  uint32_t bad = 0, limit = q.limit, thread = warp * 32, now = q.clock;
  for (int i = 0; i < count; ++i) {
    uint32_t me = thread + i / perLane;
    bool mine = writer[i] == me && written[i] <= SharedMemory::lastTime;
    bad |= !((written[i] <= limit || mine) &&
             (read[i] <= limit || reader[i] == me));
  }
  if (bad)
    return false;
  for (int i = 0; i < count; ++i) {
    written[i] = now;
    writer[i] = thread + i / perLane;
  }
  return true;
}
inline bool quickRow(SharedMemory &shared, uint32_t warp, uint32_t word,
                     uint32_t bytes, bool store) {
  switch (bytes) {
  case 4:
    return store ? quickRowStore<1>(shared, warp, word)
                 : quickRowLoad<1>(shared, warp, word);
  case 8:
    return store ? quickRowStore<2>(shared, warp, word)
                 : quickRowLoad<2>(shared, warp, word);
  case 16:
    return store ? quickRowStore<4>(shared, warp, word)
                 : quickRowLoad<4>(shared, warp, word);
  default:
    return false;
  }
}

// Cycles that banks cost: how many different words of one bank the warp asks
// for, at most, less one.
inline uint32_t bankConflicts(const uint64_t *at, uint32_t mask,
                              uint32_t bytes) {
  // Accesses of 8 and 16 bytes go in halves and quarters of the warp.
  uint32_t phase = bytes <= 4 ? 32 : 128 / bytes, lost = 0;
  for (uint32_t begin = 0; begin < 32; begin += phase) {
    uint64_t seen[32][32];
    uint32_t count[32] = {}, most = 1;
    for (uint32_t i = begin; i < begin + phase; ++i) {
      if (!(mask >> i & 1))
        continue;
      for (uint64_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
        uint32_t bank = word % 32;
        if (std::find(seen[bank], seen[bank] + count[bank], word) ==
            seen[bank] + count[bank])
          seen[bank][count[bank]++] = word;
        most = std::max(most, count[bank]);
      }
    }
    lost += most - 1;
  }
  return lost;
}

// How many sectors of 32 bytes the lanes touch, which is what an access of
// global memory costs. No access crosses one.
inline uint32_t sectorsOf(const uint64_t *at, uint32_t mask) {
  uint64_t sectors[32];
  uint32_t count = 0;
  for (uint32_t i = 0; i < 32; ++i)
    if (mask >> i & 1)
      sectors[count++] = at[i] / 32;
  std::sort(sectors, sectors + count);
  return std::unique(sectors, sectors + count) - sectors;
}

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_MEMORY_H
