// Finds the PTX in a fatbin, as fatbinary of CUDA 13 writes it:
//
//   u32 magic, u16 version, u16 header bytes, u64 bytes that follow
//   then entries: u16 kind (1 PTX, 2 machine code), u16 version,
//   u32 header bytes, u64 payload bytes, u32 compressed bytes,
//   u32 options, u16 minor, u16 major, u32 SM, u32 name, u32 name bytes,
//   u64 flags, u64 zero, u64 bytes when uncompressed; the payload.
#include "Module.h"

#include <fmt/format.h>

namespace emu {

static constexpr uint32_t magic = 0xba55ed50, wrapperMagic = 0x466243b1;

template <class T> static T get(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string ptxOf(const void *image, int deviceSm) {
  const uint8_t *at = static_cast<const uint8_t *>(image);
  uint32_t first = get<uint32_t>(at);
  if (first == wrapperMagic) { // struct of nvcc's host code: magic, version,
    at = get<const uint8_t *>(at + 8); // data
    first = at ? get<uint32_t>(at) : 0;
  }
  if (first == 0x464c457f)
    throw Error(NoBinaryForGpu,
                "expected PTX or a fatbin with PTX, got machine code; pass "
                "'-ptx', or '-fatbin' with 'code=compute_NN', to nvcc");
  if (first != magic) {
    const char *text = reinterpret_cast<const char *>(at);
    return std::string(text); // PTX ends with a zero
  }
  uint16_t header = get<uint16_t>(at + 6);
  uint64_t size = get<uint64_t>(at + 8), offset = 0;
  if (header < 16 || size > 1ull << 32)
    throw Error(InvalidImage, "expected a fatbin of at most 4 GiB");
  at += header;
  const uint8_t *best = nullptr;
  uint64_t bestSize = 0;
  uint32_t bestSm = 0;
  bool compressed = false, newer = false;
  while (offset + 64 <= size) {
    const uint8_t *entry = at + offset;
    uint16_t kind = get<uint16_t>(entry);
    uint64_t head = get<uint32_t>(entry + 4), bytes = get<uint64_t>(entry + 8);
    if (head < 64 || head > size - offset || bytes > size - offset - head)
      throw Error(InvalidImage, "expected entries inside the fatbin");
    uint32_t packed = get<uint32_t>(entry + 16), sm = get<uint32_t>(entry + 28);
    if (kind == 1) {
      if (packed)
        compressed = true;
      else if (sm > uint32_t(deviceSm))
        newer = true;
      else if (!best || sm > bestSm)
        best = entry + head, bestSize = bytes, bestSm = sm;
    }
    offset += head + bytes;
  }
  if (best)
    return std::string(reinterpret_cast<const char *>(best),
                       strnlen(reinterpret_cast<const char *>(best), bestSize));
  if (compressed)
    throw Error(InvalidImage, "expected PTX that is not compressed; pass "
                              "-no-compress to nvcc");
  throw Error(NoBinaryForGpu,
              newer ? fmt::format("expected PTX for sm_{} or older", deviceSm)
                    : "expected PTX in the fatbin; pass code=compute_NN to "
                      "nvcc");
}

} // namespace emu
