// Driver calls: memory. Copies take place at once, also the asynchronous ones.
#include "Driver.h"

#include <cstdlib>
#include <fmt/format.h>

using namespace emu;

namespace emu {

static Result refuse(const std::string &text) {
  report(text);
  return InvalidValue;
}

Result copyBytes(uint64_t to, bool toDevice, uint64_t from, bool fromDevice,
                 size_t size) {
  Arena &arena = *state().arena;
  if (size == 0)
    return Success;
  if (!to || !from)
    return InvalidValue;
  auto device = [&](uint64_t address) {
    return arena.contains(address, size) || arena.findHost(address, size);
  };
  if (toDevice && !device(to))
    return refuse(fmt::format("copy of {} bytes to the device: expected "
                              "allocated memory, got {}",
                              size, arena.describe(to)));
  if (fromDevice && !device(from))
    return refuse(fmt::format("copy of {} bytes from the device: expected "
                              "allocated memory, got {}",
                              size, arena.describe(from)));
  if (!toDevice && to >= deviceBase)
    return refuse("copy to the host: expected a host pointer");
  if (!fromDevice && from >= deviceBase)
    return refuse("copy from the host: expected a host pointer");
  auto bytes = [&](uint64_t address) {
    return address >= deviceBase ? arena.host(address)
                                 : reinterpret_cast<uint8_t *>(address);
  };
  std::memmove(bytes(to), bytes(from), size);
  if (to >= deviceBase) {
    if (from >= deviceBase)
      arena.copyMarks(to, from, size);
    else
      arena.mark(to, size);
  }
  return Success;
}

Result fillBytes(uint64_t to, uint64_t value, unsigned elementSize,
                 size_t count) {
  Arena &arena = *state().arena;
  size_t size = count * elementSize;
  if (size == 0)
    return Success;
  if (size / elementSize != count || to % elementSize)
    return InvalidValue;
  if (!arena.contains(to, size))
    return refuse(fmt::format("memset of {} bytes: expected allocated memory, "
                              "got {}",
                              size, arena.describe(to)));
  if (value == 0 && arena.zero(to, size))
    return Success;
  uint8_t *at = arena.host(to);
  if (elementSize == 1)
    std::memset(at, value, size);
  else
    for (size_t i = 0; i < count; ++i)
      std::memcpy(at + i * elementSize, &value, elementSize);
  arena.mark(to, size);
  return Success;
}

} // namespace emu

// --- allocations ---

EMU_API cuMemAlloc_v2(uint64_t *address, size_t size) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!address || size == 0)
      return InvalidValue;
    uint64_t at = s.arena->allocate(size);
    if (!at)
      return OutOfMemory;
    *address = at;
    return Success;
  });
}

EMU_API cuMemFree_v2(uint64_t address) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!address)
      return Success;
    return s.arena->release(address) ? Success : InvalidValue;
  });
}

EMU_API cuMemAllocAsync(uint64_t *address, size_t size, void *stream) {
  return isStream(stream) ? cuMemAlloc_v2(address, size) : InvalidHandle;
}
EMU_API cuMemFreeAsync(uint64_t address, void *stream) {
  return isStream(stream) ? cuMemFree_v2(address) : InvalidHandle;
}

EMU_API cuMemHostAlloc(void **data, size_t size, unsigned) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!data || size == 0)
      return InvalidValue;
    *data = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (!*data)
      return OutOfMemory;
    s.arena->addHost(*data, size);
    return Success;
  });
}
EMU_API cuMemAllocHost_v2(void **data, size_t size) {
  return cuMemHostAlloc(data, size, 0);
}

EMU_API cuMemFreeHost(void *data) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!data || !s.arena->removeHost(data))
      return InvalidValue;
    std::free(data);
    return Success;
  });
}

EMU_API cuMemHostRegister_v2(void *data, size_t size, unsigned) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!data || size == 0)
      return InvalidValue;
    return s.arena->addHost(data, size) ? Success : HostMemoryAlreadyRegistered;
  });
}
EMU_API cuMemHostUnregister(void *data) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!data)
      return InvalidValue;
    return s.arena->removeHost(data) ? Success : HostMemoryNotRegistered;
  });
}
EMU_API cuMemHostGetDevicePointer_v2(uint64_t *address, void *data, unsigned) {
  return driverCall(Needs::Context, [&](State &s) {
    uint64_t at = reinterpret_cast<uint64_t>(data);
    if (!address || !s.arena->findHost(at, 1))
      return InvalidValue;
    *address = at;
    return Success;
  });
}

EMU_API cuMemGetInfo_v2(size_t *free, size_t *total) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!free || !total)
      return InvalidValue;
    *total = s.arena->total();
    *free = s.arena->total() - s.arena->used();
    return Success;
  });
}

EMU_API cuMemGetAddressRange_v2(uint64_t *base, size_t *size,
                                uint64_t address) {
  return driverCall(Needs::Context, [&](State &s) {
    auto [begin, bytes] = s.arena->find(address);
    if (!bytes)
      return NotFound;
    if (base)
      *base = begin;
    if (size)
      *size = bytes;
    return Success;
  });
}

EMU_API cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  return driverCall(Needs::Context, [&](State &s) {
    bool onDevice = s.arena->contains(address, 1);
    if (!value || (!onDevice && !s.arena->findHost(address, 1)))
      return InvalidValue;
    switch (attribute) {
    case 1: { // context
      void *context = currentContext();
      std::memcpy(value, &context, sizeof(context));
      return Success;
    }
    case 2: { // memory type
      unsigned type = onDevice ? 2 : 1;
      std::memcpy(value, &type, sizeof(type));
      return Success;
    }
    case 4: // host pointer
      if (onDevice)
        return InvalidValue;
      [[fallthrough]];
    case 3: // device pointer
      std::memcpy(value, &address, sizeof(address));
      return Success;
    case 8: { // managed
      unsigned managed = 0;
      std::memcpy(value, &managed, sizeof(managed));
      return Success;
    }
    case 9: { // device
      int number = 0;
      std::memcpy(value, &number, sizeof(number));
      return Success;
    }
    default:
      return InvalidValue;
    }
  });
}

// --- copies ---

static int copy(uint64_t to, bool toDevice, uint64_t from, bool fromDevice,
                size_t size, void *stream) {
  return driverCall(Needs::Context, [&](State &) {
    if (!isStream(stream))
      return InvalidHandle;
    return copyBytes(to, toDevice, from, fromDevice, size);
  });
}
static uint64_t number(const void *data) {
  return reinterpret_cast<uint64_t>(data);
}

EMU_API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size,
                             void *stream) {
  return copy(to, true, number(from), false, size, stream);
}
EMU_API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size,
                             void *stream) {
  return copy(number(to), false, from, true, size, stream);
}
EMU_API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size,
                             void *stream) {
  return copy(to, true, from, true, size, stream);
}
EMU_API cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
  return copy(to, to >= deviceBase, from, from >= deviceBase, size, stream);
}
EMU_API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  return cuMemcpyHtoDAsync_v2(to, from, size, nullptr);
}
EMU_API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  return cuMemcpyDtoHAsync_v2(to, from, size, nullptr);
}
EMU_API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) {
  return cuMemcpyDtoDAsync_v2(to, from, size, nullptr);
}
EMU_API cuMemcpy(uint64_t to, uint64_t from, size_t size) {
  return cuMemcpyAsync(to, from, size, nullptr);
}

static int fill(uint64_t to, uint64_t value, unsigned elementSize, size_t count,
                void *stream) {
  return driverCall(Needs::Context, [&](State &) {
    if (!isStream(stream))
      return InvalidHandle;
    return fillBytes(to, value, elementSize, count);
  });
}
EMU_API cuMemsetD8Async(uint64_t to, unsigned char value, size_t count,
                        void *stream) {
  return fill(to, value, 1, count, stream);
}
EMU_API cuMemsetD16Async(uint64_t to, unsigned short value, size_t count,
                         void *stream) {
  return fill(to, value, 2, count, stream);
}
EMU_API cuMemsetD32Async(uint64_t to, unsigned value, size_t count,
                         void *stream) {
  return fill(to, value, 4, count, stream);
}
EMU_API cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}
EMU_API cuMemsetD16_v2(uint64_t to, unsigned short value, size_t count) {
  return cuMemsetD16Async(to, value, count, nullptr);
}
EMU_API cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}
