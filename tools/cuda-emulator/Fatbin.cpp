// Finds the PTX in a fatbin, and what its machine code says of registers, as
// fatbinary of CUDA 13 writes it:
//
//   u32 magic, u16 version, u16 header bytes, u64 bytes that follow
//   then entries: u16 kind (1 PTX, 2 machine code), u16 version,
//   u32 header bytes, u64 payload bytes, u32 compressed bytes,
//   u32 options, u16 minor, u16 major, u32 SM, u32 name, u32 name bytes,
//   u64 flags, u64 zero, u64 bytes when uncompressed; the payload.
//
// Machine code is an ELF file whose section .text.NAME has the registers of
// kernel NAME in the high byte of sh_info.
#include "Module.h"

#include <elf.h>

#include <fmt/format.h>

namespace emu {

static constexpr uint32_t magic = 0xba55ed50, wrapperMagic = 0x466243b1;

template <class T> static T get(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Registers of each kernel of an ELF file; what does not fit is left out.
static std::map<std::string, uint32_t> registersOf(const uint8_t *at,
                                                   uint64_t size) {
  std::map<std::string, uint32_t> found;
  auto inside = [&](uint64_t offset, uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
  };
  if (!inside(0, sizeof(Elf64_Ehdr)) || std::memcmp(at, ELFMAG, SELFMAG))
    return found;
  auto header = get<Elf64_Ehdr>(at);
  uint64_t bytes = uint64_t(header.e_shnum) * sizeof(Elf64_Shdr);
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(header.e_shoff, bytes) || header.e_shstrndx >= header.e_shnum)
    return found;
  auto section = [&](uint64_t i) {
    return get<Elf64_Shdr>(at + header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  Elf64_Shdr names = section(header.e_shstrndx);
  if (!inside(names.sh_offset, names.sh_size))
    return found;
  static constexpr std::string_view prefix = ".text.";
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr each = section(i);
    if (each.sh_name >= names.sh_size)
      continue;
    const char *text =
        reinterpret_cast<const char *>(at) + names.sh_offset + each.sh_name;
    std::string_view name(text, strnlen(text, names.sh_size - each.sh_name));
    if (name.starts_with(prefix))
      found[std::string(name.substr(prefix.size()))] = each.sh_info >> 24;
  }
  return found;
}

Image imageOf(const void *image, int deviceSm) {
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
    return {text, {}}; // PTX ends with a zero
  }
  uint16_t header = get<uint16_t>(at + 6);
  uint64_t size = get<uint64_t>(at + 8), offset = 0;
  if (header < 16 || size > 1ull << 32)
    throw Error(InvalidImage, "expected a fatbin of at most 4 GiB");
  at += header;
  const uint8_t *best = nullptr;
  uint64_t bestSize = 0;
  uint32_t bestSm = 0, codeSm = 0;
  bool compressed = false, newer = false;
  Image found;
  while (offset + 64 <= size) {
    const uint8_t *entry = at + offset;
    uint16_t kind = get<uint16_t>(entry);
    uint64_t head = get<uint32_t>(entry + 4), bytes = get<uint64_t>(entry + 8);
    if (head < 64 || head > size - offset || bytes > size - offset - head)
      throw Error(InvalidImage, "expected entries inside the fatbin");
    uint32_t packed = get<uint32_t>(entry + 16), sm = get<uint32_t>(entry + 28);
    // Machine code runs on the same major version, the same minor or a later.
    bool runs = sm / 10 == uint32_t(deviceSm) / 10 && sm <= uint32_t(deviceSm);
    if (kind == 2 && !packed && runs && sm > codeSm) {
      found.registers = registersOf(entry + head, bytes);
      codeSm = sm;
    }
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
  if (best) {
    const char *text = reinterpret_cast<const char *>(best);
    found.ptx.assign(text, strnlen(text, bestSize));
    return found;
  }
  if (compressed)
    throw Error(InvalidImage, "expected PTX that is not compressed; pass "
                              "-no-compress to nvcc");
  throw Error(NoBinaryForGpu,
              newer ? fmt::format("expected PTX for sm_{} or older", deviceSm)
                    : "expected PTX in the fatbin; pass code=compute_NN to "
                      "nvcc");
}

} // namespace emu
