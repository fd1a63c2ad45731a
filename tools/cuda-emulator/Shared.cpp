// The records of shared memory where the quick checks do not decide.
#include "Shared.h"

#include <cstring>

namespace emu {

static void resize(Records &records, size_t count) {
  records.written.assign(count, 0);
  records.read.assign(count, 0);
  records.readers.assign(count, 0);
  records.writer.assign(count, 0);
  records.reader.assign(count, 0);
}

void SharedMemory::start(
    const std::vector<std::pair<uint32_t, uint32_t>> &variables, uint32_t size,
    uint32_t warps) {
  uint32_t room = (size + 127) / 128 * 128;
  if (memory.size() < room || clock > lastTime / 2) {
    memory.resize(std::max<size_t>(room, memory.size()));
    resize(words, memory.size() / 4);
    resize(bytes, memory.size());
    clock = 1;
  }
  bytesUsed = room;
  warpCount = warps;
  origin = clock++;
  // The gaps between variables are marked by bytes, so that one of 10 bytes
  // ends where it ends.
  uint32_t at = 0;
  auto gapTo = [&](uint32_t end) {
    for (; at < end && at % 4; ++at) {
      if (words.written[at / 4] != mixed) {
        words.written[at / 4] = mixed;
        for (uint32_t i = at / 4 * 4; i < at / 4 * 4 + 4; ++i)
          bytes.written[i] = bytes.read[i] = 0;
      }
      bytes.written[at] = gap;
    }
    for (; at < end; at += 4)
      words.written[at / 4] = gap;
  };
  for (auto [begin, end] : variables) {
    gapTo(begin);
    std::fill(words.written.begin() + begin / 4,
              words.written.begin() + (end + 3) / 4, 0);
    at = std::max(at, end);
  }
  gapTo(room);
  for (uint32_t w = 0; w < 32; ++w) {
    std::fill(seen[w], seen[w] + 32, origin);
    early[w] = origin;
  }
}

void SharedMemory::step() { ++clock; }

void SharedMemory::refresh(uint32_t warp) {
  early[warp] = *std::min_element(seen[warp], seen[warp] + warpCount);
}

void SharedMemory::syncWarp(uint32_t warp) {
  bool least = early[warp] == seen[warp][warp];
  seen[warp][warp] = clock;
  step();
  if (least)
    refresh(warp);
}

void SharedMemory::syncWarps(uint32_t mask) {
  uint32_t all[32] = {};
  for (uint32_t w = 0; w < warpCount; ++w)
    if (mask >> w & 1)
      for (uint32_t v = 0; v < warpCount; ++v)
        all[v] = std::max(all[v], mask >> v & 1 ? clock : seen[w][v]);
  for (uint32_t w = 0; w < warpCount; ++w)
    if (mask >> w & 1) {
      std::copy(all, all + 32, seen[w]);
      refresh(w);
    }
  step();
}

void SharedMemory::mix(uint32_t word) {
  if (words.written[word] == mixed)
    return;
  for (uint32_t i = word * 4; i < word * 4 + 4; ++i) {
    bytes.written[i] = words.written[word];
    bytes.writer[i] = words.writer[word];
    bytes.read[i] = words.read[word];
    bytes.readers[i] = words.readers[word];
    bytes.reader[i] = words.reader[word];
  }
  words.written[word] = mixed;
}

Conflict SharedMemory::checkLoad(Records &in, uint32_t i, uint32_t thread) {
  uint32_t when = in.written[i], who = in.writer[i] & ~atomicBit;
  other = who;
  if (when == gap)
    return Conflict::Outside;
  if (when == inFlight)
    return Conflict::InFlight;
  if (when <= origin)
    return Conflict::Uninitialised;
  if (who != thread && when > seen[thread / 32][who / 32])
    return Conflict::Write;
  noteRead(in, i, thread);
  return Conflict::None;
}

Conflict SharedMemory::checkStore(Records &in, uint32_t i, uint32_t thread,
                                  bool atomic, bool same) {
  uint32_t when = in.written[i], who = in.writer[i] & ~atomicBit;
  uint32_t warp = thread / 32;
  other = who;
  if (when == gap)
    return Conflict::Outside;
  if (when == inFlight)
    return Conflict::InFlight;
  bool bothAtomic = atomic && (in.writer[i] & atomicBit);
  if (when > origin && who != thread && !bothAtomic &&
      when > seen[warp][who / 32] && !(same && who / 32 == warp))
    return Conflict::Write;
  if (in.read[i] > early[warp]) {
    uint32_t reader = in.reader[i];
    other = reader == manyThreads ? ~0u : reader;
    for (uint32_t v = 0; v < warpCount; ++v)
      if (in.readers[i] >> v & 1 && in.read[i] > seen[warp][v] &&
          !(v == warp && reader == thread))
        return Conflict::Read;
  }
  in.written[i] = clock;
  in.writer[i] = atomic ? thread | atomicBit : thread;
  return Conflict::None;
}

Conflict SharedMemory::loadSlowly(uint32_t at, uint32_t size, uint32_t thread) {
  for (uint32_t i = at; i < at + size;) {
    Conflict found;
    conflictAt = i;
    if (size >= 4 && words.written[i / 4] != mixed) {
      found = checkLoad(words, i / 4, thread);
      i += 4;
    } else {
      mix(i / 4);
      found = checkLoad(bytes, i, thread);
      ++i;
    }
    if (found != Conflict::None)
      return found;
  }
  return Conflict::None;
}

Conflict SharedMemory::storeSlowly(uint32_t at, uint32_t size, uint32_t thread,
                                   const void *value, bool atomic) {
  bool same = value && std::memcmp(memory.data() + at, value, size) == 0;
  for (uint32_t i = at; i < at + size;) {
    Conflict found;
    conflictAt = i;
    if (size >= 4 && words.written[i / 4] != mixed) {
      found = checkStore(words, i / 4, thread, atomic, same);
      i += 4;
    } else {
      mix(i / 4);
      found = checkStore(bytes, i, thread, atomic, same);
      ++i;
      if (i % 4 == 0 && size >= 4 && found == Conflict::None) {
        // Written as a whole: one record does again.
        words.written[i / 4 - 1] = clock;
        words.writer[i / 4 - 1] = bytes.writer[i - 1];
        words.read[i / 4 - 1] = 0;
      }
    }
    if (found != Conflict::None)
      return found;
  }
  return Conflict::None;
}

bool SharedMemory::isWritten(uint32_t at, uint32_t size) const {
  for (uint32_t i = at; i < at + size; ++i) {
    uint32_t when = words.written[i / 4];
    if ((when == mixed ? bytes.written[i] : when) <= origin)
      return false;
  }
  return true;
}

Conflict SharedMemory::beginCopy(uint32_t at, uint32_t size, uint32_t thread) {
  Conflict found = store(at, size, thread, nullptr);
  if (found == Conflict::None)
    for (uint32_t w = at / 4; w < (at + size) / 4; ++w)
      words.written[w] = inFlight;
  return found;
}

void SharedMemory::endCopy(uint32_t at, uint32_t size, uint32_t thread) {
  for (uint32_t w = at / 4; w < (at + size) / 4; ++w) {
    words.written[w] = clock;
    words.writer[w] = thread;
  }
}

} // namespace emu
