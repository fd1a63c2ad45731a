//===- Zip.cpp - The directory of a zip archive ---------------------------===//

#include "Zip.h"
#include <algorithm>
#include <fmt/format.h>
#include <span>

using namespace gptc::checkpoint;

// Bytes of the records without their variable parts.
static constexpr uint64_t endBytes = 22, end64Bytes = 56, locatorBytes = 20;
static constexpr uint64_t directoryBytes = 46, localBytes = 30;
static constexpr uint64_t maxComment = 0xffff;
/// Flags of entries that are not plain bytes: encrypted (0 and 6), a patch (5),
/// headers that hide what they say (13).
static constexpr uint16_t notPlain = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 13;
/// The local header was written before the sizes were known; they follow the
/// data.
static constexpr uint16_t sizesFollow = 1 << 3;
/// A model has thousands of tensors; a bound keeps the directory in memory.
static constexpr uint64_t maxEntries = uint64_t(1) << 20;

namespace gptc::checkpoint {
/// Reads one file. Offsets are checked before they are read at.
class ZipReader {
public:
  explicit ZipReader(const MappedFile &file) : file(file) {}

  Expected<ZipArchive> read();

private:
  Expected<void> findEnd();
  Expected<void> readEnd64(uint64_t locator);
  Expected<ZipEntry> readEntry();
  Expected<void> readZip64Extra(std::string_view name, std::string_view extra,
                                std::span<uint64_t> fields) const;
  Expected<void> checkPlain(std::string_view name, uint16_t flags,
                            uint16_t method) const;
  Expected<void> findData(ZipEntry &entry) const;
  Expected<void> checkLocal(const ZipEntry &entry, uint64_t nameBytes,
                            uint64_t extraBytes) const;
  Expected<void> checkTogether();

  template <typename Number> Number number(uint64_t offset) const {
    Number value = 0;
    for (size_t i = sizeof(Number); i-- > 0;)
      value = static_cast<Number>(value << 8 | file.data()[offset + i]);
    return value;
  }
  bool hasRecord(uint64_t offset, std::string_view signature) const {
    return file.text().substr(offset, 4) == signature;
  }
  Error error(std::string_view rule) const {
    return Error{fmt::format("{}: zip archive: {}", file.path(), rule)};
  }
  Error error(std::string_view entry, std::string_view rule) const {
    return Error{
        fmt::format("{}: entry {}: {}", file.path(), quote(entry), rule)};
  }

  const MappedFile &file;
  /// Where the records that end the archive begin: the directory lies before.
  uint64_t limit = 0;
  uint64_t count = 0, directory = 0, directorySize = 0;
  /// The next record of the directory.
  uint64_t at = 0;
  ZipArchive archive;
};
} // namespace gptc::checkpoint

/// The end record is the last one, before a comment that it gives the length
/// of.
Expected<void> ZipReader::findEnd() {
  uint64_t size = file.size();
  if (size < endBytes)
    return error(fmt::format("expected at least {} bytes, got a file of {}",
                             endBytes, size));
  uint64_t last = size - endBytes, end = size;
  for (uint64_t comment = 0; comment <= std::min(last, maxComment); ++comment)
    if (hasRecord(last - comment, "PK\x05\x06") &&
        number<uint16_t>(last - comment + 20) == comment) {
      end = last - comment;
      break;
    }
  if (end == size)
    return error("expected a directory at the end, got none; the file is "
                 "truncated or damaged");
  if (number<uint16_t>(end + 4) != 0 || number<uint16_t>(end + 6) != 0 ||
      number<uint16_t>(end + 8) != number<uint16_t>(end + 10))
    return error("expected one file, got one part of several");
  limit = end;
  count = number<uint16_t>(end + 10);
  directorySize = number<uint32_t>(end + 12);
  directory = number<uint32_t>(end + 16);
  if (end >= locatorBytes && hasRecord(end - locatorBytes, "PK\x06\x07"))
    return readEnd64(end - locatorBytes);
  return {};
}

/// The 64-bit end record, which must say the same wherever 32 bits suffice.
Expected<void> ZipReader::readEnd64(uint64_t locator) {
  uint64_t end = number<uint64_t>(locator + 8);
  if (end > locator || locator - end < end64Bytes ||
      !hasRecord(end, std::string_view("PK\x06\x06", 4)))
    return error(fmt::format("expected the zip64 end record before byte {}, "
                             "got offset {}; the file is damaged",
                             locator, end));
  // Of the locator: the disk of the record, and how many there are.
  if (number<uint32_t>(locator + 4) != 0 ||
      number<uint32_t>(locator + 16) > 1 || number<uint32_t>(end + 16) != 0 ||
      number<uint32_t>(end + 20) != 0 ||
      number<uint64_t>(end + 24) != number<uint64_t>(end + 32))
    return error("expected one file, got one part of several");
  limit = end;
  uint64_t wide[] = {number<uint64_t>(end + 32), number<uint64_t>(end + 40),
                     number<uint64_t>(end + 48)};
  bool agree = (count == wide[0] || count == 0xffff) &&
               (directorySize == wide[1] || directorySize == 0xffffffff) &&
               (directory == wide[2] || directory == 0xffffffff);
  if (!agree)
    return error("expected both end records to say the same, got different "
                 "ones; the file is damaged");
  count = wide[0];
  directorySize = wide[1];
  directory = wide[2];
  return {};
}

/// Fields (size, stored size, header offset, or the first two of them) that are
/// all ones in 32 bits stand in the extra field of id 1, in this order.
Expected<void> ZipReader::readZip64Extra(std::string_view name,
                                         std::string_view extra,
                                         std::span<uint64_t> fields) const {
  auto wide = [](uint64_t field) { return field == 0xffffffff; };
  if (std::none_of(fields.begin(), fields.end(), wide))
    return {};
  auto begin = static_cast<uint64_t>(extra.data() - file.text().data());
  for (uint64_t used = 0; extra.size() - used >= 4;) {
    uint16_t id = number<uint16_t>(begin + used);
    uint64_t length = number<uint16_t>(begin + used + 2);
    used += 4;
    if (length > extra.size() - used)
      break;
    if (id != 1) {
      used += length;
      continue;
    }
    uint64_t end = used + length;
    for (uint64_t &field : fields) {
      if (!wide(field))
        continue;
      if (end - used < 8)
        return error(name, "its zip64 field is too short");
      field = number<uint64_t>(begin + used);
      used += 8;
    }
    return {};
  }
  return error(name, "expected a zip64 field, as its 32-bit sizes say, got "
                     "none");
}

/// What the directory and the local header say each for itself.
Expected<void> ZipReader::checkPlain(std::string_view name, uint16_t flags,
                                     uint16_t method) const {
  if (flags & notPlain)
    return error(name, flags & (1 << 5)
                           ? "expected plain bytes, got a patch"
                           : "expected plain bytes, got an encrypted entry");
  if (method)
    return error(name,
                 fmt::format("expected stored bytes, got compression method "
                             "{}; torch.save writes stored ones",
                             method));
  return {};
}

/// Goes by the local header, which has a name and extra field of its own
/// lengths before the data.
Expected<void> ZipReader::findData(ZipEntry &entry) const {
  if (entry.header > directory || directory - entry.header < localBytes ||
      !hasRecord(entry.header, "PK\x03\x04"))
    return error(entry.name,
                 fmt::format("expected its header before the directory at {}, "
                             "got offset {}; the file is damaged",
                             directory, entry.header));
  uint64_t name = number<uint16_t>(entry.header + 26);
  uint64_t extra = number<uint16_t>(entry.header + 28);
  entry.offset = entry.header + localBytes + name + extra;
  if (file.text().substr(entry.header + localBytes, name) != entry.name)
    return error(entry.name, "its header has another name; the file is "
                             "damaged");
  if (entry.offset > directory || directory - entry.offset < entry.size)
    return error(entry.name,
                 fmt::format("expected {} bytes from {} on, got a directory at "
                             "{}; the file is truncated or damaged",
                             entry.size, entry.offset, directory));
  return checkLocal(entry, name, extra);
}

/// The local header says what the directory says. Where sizes follow the data
/// it may leave them 0.
Expected<void> ZipReader::checkLocal(const ZipEntry &entry, uint64_t nameBytes,
                                     uint64_t extraBytes) const {
  uint16_t flags = number<uint16_t>(entry.header + 6);
  if (auto plain =
          checkPlain(entry.name, flags, number<uint16_t>(entry.header + 8));
      !plain)
    return plain;
  uint64_t sizes[] = {number<uint32_t>(entry.header + 22),
                      number<uint32_t>(entry.header + 18)};
  if (auto read = readZip64Extra(
          entry.name,
          file.text().substr(entry.header + localBytes + nameBytes, extraBytes),
          sizes);
      !read)
    return read;
  for (uint64_t size : sizes)
    if (size != entry.size && !(size == 0 && flags & sizesFollow))
      return error(entry.name,
                   fmt::format("expected {} bytes as in the directory, got a "
                               "header with {}; the file is damaged",
                               entry.size, size));
  return {};
}

Expected<ZipEntry> ZipReader::readEntry() {
  uint64_t end = directory + directorySize;
  if (end - at < directoryBytes || !hasRecord(at, "PK\x01\x02"))
    return error(fmt::format("expected {} entries in the directory, got {}; "
                             "the file is damaged",
                             count, archive.list.size()));
  uint64_t nameBytes = number<uint16_t>(at + 28);
  uint64_t extraBytes = number<uint16_t>(at + 30);
  uint64_t comment = number<uint16_t>(at + 32);
  if (end - at - directoryBytes < nameBytes + extraBytes + comment)
    return error(fmt::format("directory entry {}: its name does not fit; the "
                             "file is damaged",
                             archive.list.size()));
  ZipEntry entry;
  entry.name = file.text().substr(at + directoryBytes, nameBytes);
  std::string_view extra =
      file.text().substr(at + directoryBytes + nameBytes, extraBytes);
  uint64_t fields[] = {number<uint32_t>(at + 24), number<uint32_t>(at + 20),
                       number<uint32_t>(at + 42)};
  if (auto read = readZip64Extra(entry.name, extra, fields); !read)
    return read.error();
  if (auto plain = checkPlain(entry.name, number<uint16_t>(at + 8),
                              number<uint16_t>(at + 10));
      !plain)
    return plain.error();
  if (number<uint16_t>(at + 34) != 0)
    return error(entry.name, "expected one file, got one part of several");
  if (fields[0] != fields[1])
    return error(entry.name,
                 fmt::format("expected {} stored bytes, got {}; the file is "
                             "damaged",
                             fields[0], fields[1]));
  entry.size = fields[0];
  entry.header = fields[2];
  if (auto found = findData(entry); !found)
    return found.error();
  at += directoryBytes + nameBytes + extraBytes + comment;
  return entry;
}

/// No name twice, no byte of two entries.
Expected<void> ZipReader::checkTogether() {
  archive.index.reserve(archive.list.size());
  std::vector<const ZipEntry *> order;
  order.reserve(archive.list.size());
  for (const ZipEntry &entry : archive.list) {
    if (!archive.index.emplace(entry.name, order.size()).second)
      return error(entry.name, "duplicate name");
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](const ZipEntry *a, const ZipEntry *b) {
              return a->header < b->header;
            });
  for (size_t i = 1; i < order.size(); ++i) {
    const ZipEntry &before = *order[i - 1], &entry = *order[i];
    if (entry.header < before.offset + before.size)
      return error(entry.name,
                   fmt::format("its bytes from {} on overlap those of entry "
                               "{}, [{}, {}]",
                               entry.header, quote(before.name), before.header,
                               before.offset + before.size));
  }
  return {};
}

Expected<ZipArchive> ZipReader::read() {
  if (auto found = findEnd(); !found)
    return found.error();
  if (directory > limit || directorySize > limit - directory)
    return error(fmt::format("expected a directory before byte {}, got {} "
                             "bytes from {} on; the file is truncated or "
                             "damaged",
                             limit, directorySize, directory));
  if (count > maxEntries || count * directoryBytes > directorySize)
    return error(
        fmt::format("expected at most {} entries in a directory of "
                    "{} bytes, got {}",
                    std::min(maxEntries, directorySize / directoryBytes),
                    directorySize, count));
  archive.list.reserve(count);
  at = directory;
  for (uint64_t i = 0; i < count; ++i) {
    auto entry = readEntry();
    if (!entry)
      return entry.error();
    archive.list.push_back(*entry);
  }
  if (at != directory + directorySize)
    return error(fmt::format("expected the directory of {} entries to end at "
                             "{}, got {}",
                             count, at, directory + directorySize));
  if (auto checked = checkTogether(); !checked)
    return checked.error();
  return std::move(archive);
}

const ZipEntry *ZipArchive::find(std::string_view name) const {
  auto found = index.find(name);
  return found == index.end() ? nullptr : &list[found->second];
}

Expected<ZipArchive> ZipArchive::read(const MappedFile &file) {
  return ZipReader(file).read();
}
