// Device memory and its stamps.
#include "Arena.h"
#include "Machine.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>

namespace emu {

static void *reserve(uint64_t size) {
  void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

Arena::Arena() : limit(setting("GPTC_EMULATOR_MEMORY", 4096) << 20) {
  // Addresses are not used twice while there are fresh ones, so that freed
  // memory stays an error.
  for (capacity = 256ull << 30; capacity >= 1ull << 30; capacity /= 2) {
    data = static_cast<uint8_t *>(reserve(capacity));
    words = static_cast<uint32_t *>(reserve(capacity));
    bytes = static_cast<uint32_t *>(reserve(capacity * 4));
    if (data && words && bytes)
      break;
    for (void *part : {(void *)data, (void *)words})
      if (part)
        munmap(part, capacity);
    if (bytes)
      munmap(bytes, capacity * 4);
    data = nullptr;
  }
  if (!data)
    throw Error(OutOfMemory, "expected 6 GiB of address space for the device");
  limit = std::min(limit, capacity / 2);
}

Arena::~Arena() {
  munmap(data, capacity);
  munmap(words, capacity);
  munmap(bytes, capacity * 4);
}

uint64_t Arena::allocate(uint64_t size, bool initialised) {
  if (size == 0 || size > limit - live)
    return 0;
  // A gap of at least 256 bytes follows, where every access is an error.
  uint64_t room = (size + 256 + 511) / 512 * 512;
  if (next + room + 512 > capacity) {
    // The oldest freed range that is large enough.
    auto found = std::find_if(freed.begin(), freed.end(), [&](auto &range) {
      return (range.second + 256 + 511) / 512 * 512 >= room;
    });
    if (found == freed.end())
      return 0;
    uint64_t at = found->first;
    freed.erase(found);
    allocations[at] = size;
    live += size;
    markAllocated(at, size, initialised ? stamp::host : stamp::uninitialised);
    return deviceBase + at;
  }
  uint64_t at = next;
  next += room;
  live += size;
  allocations[at] = size;
  markAllocated(at, size, initialised ? stamp::host : stamp::uninitialised);
  return deviceBase + at;
}

void Arena::markAllocated(uint64_t at, uint64_t size, uint32_t value) {
  uint64_t first = 0;
  if (size >= large) {
    untouched[at] = value;
    first = size / 4 * 4; // the rest of a word is not allocated
  }
  if (first < size)
    mark(deviceBase + at + first, size - first, value);
}

uint32_t Arena::untouchedStamp(uint64_t offset) const {
  auto after = untouched.upper_bound(offset);
  if (after == untouched.begin())
    return stamp::unallocated;
  --after;
  uint64_t size = allocations.at(after->first);
  return offset - after->first < size ? after->second : stamp::unallocated;
}

static void discard(void *begin, uint64_t size) {
  uint64_t from = reinterpret_cast<uint64_t>(begin), to = from + size;
  uint64_t first = std::min<uint64_t>((from + 4095) & ~4095ull, to);
  uint64_t last = std::max<uint64_t>(first, to & ~4095ull);
  std::memset(begin, 0, first - from);
  if (last > first)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
  std::memset(reinterpret_cast<void *>(last), 0, to - last);
}

bool Arena::zero(uint64_t address, uint64_t size) {
  auto found = untouched.find(address - deviceBase);
  if (found == untouched.end() || allocations.at(found->first) != size)
    return false;
  discard(data + found->first, size);
  discard(words + found->first / 4, (size + 3) / 4 * 4);
  markAllocated(found->first, size, stamp::host);
  return true;
}

bool Arena::release(uint64_t address) {
  auto found = allocations.find(address - deviceBase);
  if (found == allocations.end())
    return false;
  uint64_t at = found->first, size = found->second;
  live -= size;
  freed[at] = size;
  allocations.erase(found);
  untouched.erase(at);
  discard(data + at, size);
  discard(words + at / 4, (size + 3) / 4 * 4);
  return true;
}

std::pair<uint64_t, uint64_t> Arena::find(uint64_t address) const {
  auto after = allocations.upper_bound(address - deviceBase);
  if (address < deviceBase || after == allocations.begin())
    return {0, 0};
  --after;
  if (address - deviceBase >= after->first + after->second)
    return {0, 0};
  return {deviceBase + after->first, after->second};
}

bool Arena::contains(uint64_t address, uint64_t size) const {
  auto [base, length] = find(address);
  return length && size <= length - (address - base);
}

bool Arena::addHost(const void *data, uint64_t size) {
  return hosts.emplace(reinterpret_cast<uint64_t>(data), size).second;
}
bool Arena::removeHost(const void *data) {
  return hosts.erase(reinterpret_cast<uint64_t>(data));
}
bool Arena::findHost(uint64_t address, uint64_t size) const {
  auto after = hosts.upper_bound(address);
  if (after == hosts.begin())
    return false;
  --after;
  return address - after->first < after->second &&
         size <= after->second - (address - after->first);
}

std::string Arena::describe(uint64_t address) const {
  if (address < deviceBase || address - deviceBase >= capacity)
    return fmt::format("0x{:x}, no address of the device", address);
  uint64_t at = address - deviceBase;
  auto text = [&](uint64_t begin, uint64_t size) {
    if (at < begin + size)
      return fmt::format("byte {} of the {} bytes at 0x{:x}", at - begin, size,
                         deviceBase + begin);
    return fmt::format("0x{:x}, {} bytes after the end of the {} bytes at "
                       "0x{:x}",
                       address, at - begin - size, size, deviceBase + begin);
  };
  auto dead = freed.upper_bound(at);
  if (dead != freed.begin() &&
      at < std::prev(dead)->first + std::prev(dead)->second)
    return text(std::prev(dead)->first, std::prev(dead)->second) +
           ", which were freed";
  auto after = allocations.upper_bound(at);
  if (after != allocations.end() && after->first - at <= 256)
    return fmt::format("0x{:x}, {} bytes before the {} bytes at 0x{:x}",
                       address, after->first - at, after->second,
                       deviceBase + after->first);
  if (after == allocations.begin())
    return fmt::format("0x{:x}, not allocated", address);
  --after;
  return text(after->first, after->second);
}

uint32_t Arena::byteStamp(uint64_t offset) const {
  uint32_t word = words[offset / 4];
  return word == stamp::mixed         ? bytes[offset]
         : word == stamp::unallocated ? untouchedStamp(offset)
                                      : word;
}

void Arena::markBytes(uint64_t offset, uint64_t size, uint32_t value) {
  std::lock_guard<std::mutex> guard(lock);
  uint64_t word = offset / 4;
  uint32_t *four = bytes + word * 4;
  if (words[word] != stamp::mixed) {
    if (words[word] == value)
      return;
    for (int i = 0; i < 4; ++i)
      four[i] = byteStamp(word * 4 + i);
  }
  std::fill(bytes + offset, bytes + offset + size, value);
  bool same = four[0] == four[1] && four[0] == four[2] && four[0] == four[3];
  words[word] = same ? four[0] : stamp::mixed;
}

void Arena::mark(uint64_t address, uint64_t size, uint32_t value) {
  uint64_t at = address - deviceBase, end = at + size;
  if (at % 4) {
    uint64_t part = std::min(4 - at % 4, size);
    markBytes(at, part, value);
    at += part;
  }
  if (end - at >= 4) {
    std::fill(words + at / 4, words + end / 4, value);
    at = end / 4 * 4;
  }
  if (at < end)
    markBytes(at, end - at, value);
}

void Arena::copyMarks(uint64_t to, uint64_t from, uint64_t size) {
  for (uint64_t i = 0; i < size;) {
    uint64_t a = to - deviceBase + i, b = from - deviceBase + i;
    uint64_t step = a % 4 || b % 4 || size - i < 4 ? 1 : 4;
    uint32_t value = byteStamp(b);
    if (step == 4 && words[b / 4] == stamp::mixed)
      step = 1;
    value = value == stamp::uninitialised ? value : stamp::host;
    if (step == 4)
      words[a / 4] = value;
    else
      markBytes(a, 1, value);
    i += step;
  }
}

bool Arena::isInitialised(uint64_t address, uint64_t size,
                          uint64_t &first) const {
  uint64_t at = address - deviceBase, end = at + size;
  while (at < end) {
    if (at % 4 == 0 && end - at >= 4) {
      uint32_t word = words[at / 4];
      if (word > stamp::uninitialised && word != stamp::mixed) {
        at += 4;
        continue;
      }
    }
    if (byteStamp(at) <= stamp::uninitialised) {
      first = at - (address - deviceBase);
      return false;
    }
    ++at;
  }
  return true;
}

uint32_t Arena::beginLaunch(uint64_t blocks) {
  if (blocks > stamp::last - lastStamp) {
    // Every number was used: what is written counts as the host's again.
    auto fold = [](uint32_t &value) {
      if (value > stamp::host && value != stamp::mixed)
        value = stamp::host;
    };
    for (auto &[at, size] : allocations)
      for (uint64_t word = at / 4; word < (at + size + 3) / 4; ++word) {
        fold(words[word]);
        if (words[word] == stamp::mixed)
          std::for_each(bytes + word * 4, bytes + word * 4 + 4, fold);
      }
    lastStamp = stamp::host;
  }
  uint32_t base = lastStamp;
  lastStamp += blocks;
  return base;
}

} // namespace emu
