//===- Npz.cpp - .npz archives --------------------------------------------===//
//
// A zip archive of .npy files. The directory at its end is what counts; each
// entry's local header only says where its data begins.
//
//===----------------------------------------------------------------------===//

#include "gptc/Runtime/Host/Npy.h"
#include <algorithm>
#include <fmt/format.h>
#include <zlib.h>

using namespace gptc::host;

namespace {

constexpr uint32_t localMagic = 0x04034b50, entryMagic = 0x02014b50,
                   endMagic = 0x06054b50;
constexpr size_t localBytes = 30, entryBytes = 46, endBytes = 22;

/// Little-endian fields; every read is within the bytes.
struct Reader {
  std::span<const uint8_t> bytes;
  bool holds(size_t at, size_t count) const {
    return at <= bytes.size() && count <= bytes.size() - at;
  }
  uint16_t u16(size_t at) const { return bytes[at] | bytes[at + 1] << 8; }
  uint32_t u32(size_t at) const {
    return u16(at) | static_cast<uint32_t>(u16(at + 2)) << 16;
  }
};

/// Where the end record is; it may be followed by a comment of 64 KiB.
std::optional<size_t> findEnd(const Reader &zip) {
  if (zip.bytes.size() < endBytes)
    return std::nullopt;
  size_t last = zip.bytes.size() - endBytes;
  for (size_t at = last + 1; at-- > 0 && last - at <= 0xffff;)
    if (zip.u32(at) == endMagic)
      return at;
  return std::nullopt;
}

/// Raw deflate; the output must be exactly `size` bytes.
bool inflateRaw(std::span<const uint8_t> in, size_t size,
                std::vector<uint8_t> &out) {
  // Deflate cannot shrink by more than about 1032 to 1.
  if (size / 1100 > in.size())
    return false;
  out.resize(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  uint8_t none;
  stream.next_in = const_cast<uint8_t *>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = size ? out.data() : &none;
  stream.avail_out = static_cast<uInt>(size);
  int code = inflate(&stream, Z_FINISH);
  bool whole = code == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

/// The entry of the directory at `at`, unpacked and checked.
std::optional<std::vector<uint8_t>> unpack(const Reader &zip, size_t at,
                                           std::string &error) {
  uint16_t flags = zip.u16(at + 8), method = zip.u16(at + 10);
  uint32_t crc = zip.u32(at + 16), packed = zip.u32(at + 20),
           size = zip.u32(at + 24), local = zip.u32(at + 42);
  if (flags & 1 || (method != 0 && method != 8)) {
    error = fmt::format("expected a stored or deflated entry, got method {}{}",
                        method, flags & 1 ? ", encrypted" : "");
    return std::nullopt;
  }
  if (packed == 0xffffffff || size == 0xffffffff || local == 0xffffffff) {
    error = "entries of 4 GiB and more (zip64) are not supported";
    return std::nullopt;
  }
  if (!zip.holds(local, localBytes) || zip.u32(local) != localMagic) {
    error = "damaged: no entry where the directory says";
    return std::nullopt;
  }
  size_t data = local + localBytes + zip.u16(local + 26) + zip.u16(local + 28);
  if (!zip.holds(data, packed) || (method == 0 && packed != size)) {
    error = "damaged: the entry does not fit the file";
    return std::nullopt;
  }
  std::span<const uint8_t> bytes = zip.bytes.subspan(data, packed);
  std::vector<uint8_t> out;
  if (method == 0)
    out.assign(bytes.begin(), bytes.end());
  else if (!inflateRaw(bytes, size, out)) {
    error = "damaged: the deflated entry does not unpack to its size";
    return std::nullopt;
  }
  uint32_t got = crc32(0, out.data(), static_cast<uInt>(out.size()));
  if (got != crc) {
    error = fmt::format("damaged: expected CRC {:08x}, got {:08x}", crc, got);
    return std::nullopt;
  }
  return out;
}

struct Writer {
  std::vector<uint8_t> bytes;
  void u16(uint32_t v) {
    bytes.push_back(v & 255);
    bytes.push_back(v >> 8 & 255);
  }
  void u32(uint32_t v) {
    u16(v & 0xffff);
    u16(v >> 16);
  }
  void text(std::string_view s) {
    bytes.insert(bytes.end(), s.begin(), s.end());
  }
  /// What local header and directory entry have in common. Time is fixed
  /// (1980-01-01), so that equal arrays make equal files.
  void common(uint32_t crc, uint32_t size, size_t name) {
    u16(20);
    u16(0);
    u16(0);
    u16(0);
    u16(0x21);
    u32(crc);
    u32(size);
    u32(size);
    u16(static_cast<uint32_t>(name));
    u16(0);
  }
};

} // namespace

std::optional<std::vector<Array>>
gptc::host::parseNpz(std::span<const uint8_t> bytes, std::string &error,
                     std::span<const std::string> wanted,
                     std::vector<std::string> *others) {
  Reader zip{bytes};
  std::optional<size_t> end = findEnd(zip);
  if (!end) {
    error = "not an .npz file: expected a zip archive with its directory";
    return std::nullopt;
  }
  std::vector<Array> arrays;
  size_t at = zip.u32(*end + 16);
  for (size_t i = 0, count = zip.u16(*end + 10); i < count; ++i) {
    if (!zip.holds(at, entryBytes) || zip.u32(at) != entryMagic ||
        !zip.holds(at + entryBytes, zip.u16(at + 28))) {
      error = fmt::format("damaged: directory entry {} of {} is not there", i,
                          count);
      return std::nullopt;
    }
    std::string name(reinterpret_cast<const char *>(bytes.data()) + at +
                         entryBytes,
                     zip.u16(at + 28));
    if (name.ends_with(".npy"))
      name.resize(name.size() - 4);
    size_t entry = at;
    at += entryBytes + zip.u16(at + 28) + zip.u16(at + 30) + zip.u16(at + 32);
    if ((others || !wanted.empty()) &&
        std::ranges::find(wanted, name) == wanted.end()) {
      if (others)
        others->push_back(std::move(name));
      continue;
    }
    std::string why;
    std::optional<std::vector<uint8_t>> content = unpack(zip, entry, why);
    std::optional<Array> array;
    if (content)
      array = parseNpy(*content, why);
    if (!array) {
      error = fmt::format("array '{}': {}", name, why);
      return std::nullopt;
    }
    array->name = std::move(name);
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

std::vector<uint8_t> gptc::host::serializeNpz(std::span<const Array> arrays) {
  Writer zip, directory;
  for (const Array &array : arrays) {
    std::string name = array.name + ".npy";
    std::string header = npyHeader(array.dtype, array.shape);
    uint32_t crc = crc32(0, reinterpret_cast<const Bytef *>(header.data()),
                         static_cast<uInt>(header.size()));
    if (!array.data.empty()) // zlib takes null for a wish to start anew
      crc = crc32(crc, array.data.data(), static_cast<uInt>(array.data.size()));
    auto size = static_cast<uint32_t>(header.size() + array.data.size());
    auto offset = static_cast<uint32_t>(zip.bytes.size());
    zip.u32(localMagic);
    zip.common(crc, size, name.size());
    zip.text(name);
    zip.text(header);
    zip.bytes.insert(zip.bytes.end(), array.data.begin(), array.data.end());

    directory.u32(entryMagic);
    directory.u16(20);
    directory.common(crc, size, name.size());
    directory.u16(0); // comment, disk, attributes
    directory.u16(0);
    directory.u16(0);
    directory.u32(0);
    directory.u32(offset);
    directory.text(name);
  }
  auto begin = static_cast<uint32_t>(zip.bytes.size());
  auto count = static_cast<uint32_t>(arrays.size());
  zip.bytes.insert(zip.bytes.end(), directory.bytes.begin(),
                   directory.bytes.end());
  zip.u32(endMagic);
  zip.u16(0);
  zip.u16(0);
  zip.u16(count);
  zip.u16(count);
  zip.u32(static_cast<uint32_t>(directory.bytes.size()));
  zip.u32(begin);
  zip.u16(0);
  return zip.bytes;
}
