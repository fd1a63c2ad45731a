//===- Memory.cpp - Memory of models and sessions -------------------------===//
//
// From the host's allocator where there is one. The package's own takes large
// blocks straight from the kernel: they are zero, cost nothing until touched
// (a KV cache is sized for the full context), and may use huge pages, which
// spares address translations while weights and keys stream through.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace gptc::core {

/// From here on a block is mapped: at least one huge page.
static constexpr uint64_t mapBytes = 2u << 20;

bool allocate(const gptc_host &host, uint64_t bytes, bool zeroed,
              Block &block) {
  block = {};
  uint64_t total = padded(bytes);
  void *pointer = nullptr;
  // PTRDIFF_MAX bounds every object; it also catches saturated sizes.
  if (total <= PTRDIFF_MAX) {
    if (host.allocate) {
      pointer = host.allocate(host.user, total, vectorBytes);
    } else if (total >= mapBytes) {
      pointer = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pointer == MAP_FAILED)
        pointer = nullptr;
      else
        madvise(pointer, total, MADV_HUGEPAGE); // advice: may be refused
    } else if (posix_memalign(&pointer, vectorBytes, total)) {
      pointer = nullptr;
    }
  }
  if (!pointer) {
    fail(GPTC_NO_MEMORY, "no memory for %llu bytes",
         static_cast<unsigned long long>(total));
    return false;
  }
  if (zeroed && (host.allocate || total < mapBytes))
    memset(pointer, 0, total);
  block = {pointer, total};
  return true;
}

bool allocateForKernels(const gptc_host &host, Queue &queue, uint64_t bytes,
                        bool zeroed, Block &block) {
  return onDevice() ? allocateOnDevice(queue, bytes, zeroed, block)
                    : allocate(host, bytes, zeroed, block);
}

void releaseForKernels(const gptc_host &host, const Queue &queue,
                       Block &block) {
  if (!onDevice())
    release(host, block);
  else if (queue.device)
    releaseOnDevice(*queue.device, block);
}

void release(const gptc_host &host, Block &block) {
  if (!block.pointer)
    return;
  if (host.allocate) {
    if (host.release)
      host.release(host.user, block.pointer, block.bytes);
  } else if (block.bytes >= mapBytes) {
    munmap(block.pointer, block.bytes);
  } else {
    free(block.pointer);
  }
  block = {};
}

} // namespace gptc::core
