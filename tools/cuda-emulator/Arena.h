// Device memory. Addresses of the device begin at deviceBase, which no host
// pointer reaches, so host code that follows one faults.
//
// Each word of four bytes has a stamp that says all that the checks ask: is it
// allocated, was it written, and by which block of which launch. A word whose
// bytes differ has the stamp mixed, and its bytes have stamps of their own.
// All of it is address space that is backed only where it is touched; large
// allocations have no stamps until then, so that what lies far apart in them is
// cheap, too.
#ifndef GPTC_CUDA_EMULATOR_ARENA_H
#define GPTC_CUDA_EMULATOR_ARENA_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace emu {

constexpr uint64_t deviceBase = 1ull << 47;
constexpr uint64_t sharedBase = 1ull << 49; // generic addresses of shared,
constexpr uint64_t localBase = 1ull << 50;  // local
constexpr uint64_t paramBase = 1ull << 51;  // and parameter space
constexpr uint64_t windowSize = 1ull << 32;

namespace stamp {
constexpr uint32_t unallocated = 0, uninitialised = 1, host = 2, mixed = ~0u;
constexpr uint32_t last = ~0u - 16; // of launches
} // namespace stamp

class Arena {
public:
  Arena();
  ~Arena();

  // 0 where there is no room. The address is a multiple of 512.
  uint64_t allocate(uint64_t size, bool initialised = false);
  bool release(uint64_t address); // false: not the start of an allocation
  uint64_t total() const { return limit; }
  uint64_t used() const { return live; }
  // The allocation around an address: base and size, or size 0.
  std::pair<uint64_t, uint64_t> find(uint64_t address) const;
  bool contains(uint64_t address, uint64_t size) const;

  // Host memory that kernels may read and write: pinned or registered.
  bool addHost(const void *data, uint64_t size);
  bool removeHost(const void *data);
  bool findHost(uint64_t address, uint64_t size) const;

  // "12 bytes after the end of the 64 bytes at 0x...", for messages.
  std::string describe(uint64_t address) const;

  uint8_t *host(uint64_t address) { return data + (address - deviceBase); }
  // Makes a whole large allocation zeros; false: not one.
  bool zero(uint64_t address, uint64_t size);
  // Marks bytes as written by the host, or with any stamp.
  void mark(uint64_t address, uint64_t size, uint32_t value = stamp::host);
  // The stamp of a byte.
  uint32_t byteStamp(uint64_t offset) const;
  // Sets stamps of part of a word; locked.
  void markBytes(uint64_t offset, uint64_t size, uint32_t value);
  // Copies stamps so that copies of uninitialised bytes stay uninitialised.
  void copyMarks(uint64_t to, uint64_t from, uint64_t size);
  // Whether the host may read: every byte written. Else the first that is not.
  bool isInitialised(uint64_t address, uint64_t size, uint64_t &first) const;
  // Numbers for the blocks of a launch: base + 1 ... base + count.
  uint32_t beginLaunch(uint64_t blocks);

  uint8_t *data = nullptr;
  uint32_t *words = nullptr; // a stamp for each word
  uint32_t *bytes = nullptr; // and for each byte of mixed ones
  uint64_t capacity = 0;     // of the address space

private:
  static constexpr uint64_t large = 1ull << 30;
  void markAllocated(uint64_t offset, uint64_t size, uint32_t value);
  uint32_t untouchedStamp(uint64_t offset) const;

  uint64_t next = 512, live = 0, limit;
  uint32_t lastStamp = stamp::host;
  std::map<uint64_t, uint64_t> allocations, freed; // offset, size
  // Of large allocations: the stamp that their words without one stand for.
  std::map<uint64_t, uint32_t> untouched;
  std::map<uint64_t, uint64_t> hosts;
  mutable std::mutex lock;
};

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_ARENA_H
