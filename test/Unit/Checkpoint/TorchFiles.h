//===- TorchFiles.h - Files like those of torch.save ------------*- C++ -*-===//
//
// A zip archive and its pickle, put together from parts; the tests break one
// part at a time. test/Golden has files that PyTorch wrote.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_TEST_UNIT_CHECKPOINT_TORCHFILES_H
#define GPTC_TEST_UNIT_CHECKPOINT_TORCHFILES_H

#include "TestFiles.h"
#include <optional>
#include <vector>

namespace gptc::checkpoint::test {

inline std::string u16(uint64_t value) { return littleEndian(value, 2); }

// Values of a pickle, as opcodes.
inline std::string text(std::string_view value) {
  return "X" + u32(value.size()) + std::string(value);
}
inline std::string integer(uint64_t value) { return "J" + u32(value); }
inline std::string wide(uint64_t value) { return "\x8a\x08" + u64(value); }
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::string_view items) {
  return "(" + std::string(items) + "t";
}
/// "[2,3]" as a tuple.
inline std::string integers(std::string_view list) {
  std::string items, number;
  for (char c : list)
    if (c == ',' || c == ']') {
      if (!number.empty())
        items += wide(static_cast<uint64_t>(std::stoll(number)));
      number.clear();
    } else if (c != '[') {
      number += c;
    }
  return tuple(items);
}
inline const std::string orderedDict = global("collections", "OrderedDict");
inline const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");

/// One tensor of a state dict, under its name. `type` F, H, B or L; `offset`
/// empty: 0.
inline std::string tensor(std::string_view name, std::string_view type,
                          std::string_view key, uint64_t count,
                          std::string_view offset, std::string_view sizes,
                          std::string_view strides) {
  std::string_view storage = type == "F"   ? "FloatStorage"
                             : type == "H" ? "HalfStorage"
                             : type == "B" ? "BFloat16Storage"
                                           : "LongStorage";
  std::string id = tuple(text("storage") + global("torch", storage) +
                         text(key) + text("cpu") + wide(count));
  return text(name) + rebuild +
         tuple(id + "Q" +
               (offset.empty() ? integer(0)
                               : wide(static_cast<uint64_t>(
                                     std::stoll(std::string(offset))))) +
               integers(sizes) + integers(strides) + "\x89" + orderedDict +
               ")R") +
         "R";
}

inline std::string dict(const std::vector<std::string> &members) {
  std::string items;
  for (const std::string &member : members)
    items += member;
  return "}(" + items + "u";
}
inline std::string pickled(std::string_view value) {
  return "\x80\x02" + std::string(value) + ".";
}
inline std::string stateDict(const std::vector<std::string> &members) {
  return pickled(dict(members));
}

struct ZipMember {
  std::string name = {}, data = {};
  uint16_t method = 0, flags = 0;
  /// What the directory says where it is not the truth.
  std::optional<uint64_t> size = {}, stored = {}, header = {};
  std::optional<uint16_t> listedMethod = {}, listedFlags = {};
  /// What the local header says where it is not the truth.
  std::optional<uint64_t> localSize = {}, localStored = {};
  uint16_t disk = 0;
  std::string localName = name;
  /// Before the data, as torch.save aligns it.
  std::string padding = {};
  std::string extra = {}; // of the directory
};

/// The members, a directory, its end; with a 64-bit end too.
inline std::string zip(const std::vector<ZipMember> &members,
                       bool with64 = false, std::string_view comment = "") {
  std::string file, directory;
  for (const ZipMember &m : members) {
    uint64_t header = file.size();
    file += "PK\x03\x04" + u16(0) + u16(m.flags) + u16(m.method) + u32(0) +
            u32(0) + u32(m.localStored.value_or(m.data.size())) +
            u32(m.localSize.value_or(m.data.size())) + u16(m.localName.size()) +
            u16(m.padding.size()) + m.localName + m.padding + m.data;
    directory += "PK\x01\x02" + u16(0) + u16(0) +
                 u16(m.listedFlags.value_or(m.flags)) +
                 u16(m.listedMethod.value_or(m.method)) + u32(0) + u32(0) +
                 u32(m.stored.value_or(m.data.size())) +
                 u32(m.size.value_or(m.data.size())) + u16(m.name.size()) +
                 u16(m.extra.size()) + u16(0) + u16(m.disk) + u16(0) + u32(0) +
                 u32(m.header.value_or(header)) + m.name + m.extra;
  }
  uint64_t begin = file.size(), count = members.size();
  file += directory;
  if (with64) {
    uint64_t end = file.size();
    file += std::string("PK\x06\x06") + u64(44) + u16(45) + u16(45) + u32(0) +
            u32(0) + u64(count) + u64(count) + u64(directory.size()) +
            u64(begin) + "PK\x06\x07" + u32(0) + u64(end) + u32(1);
  }
  return file + "PK\x05\x06" + u16(0) + u16(0) + u16(count) + u16(count) +
         u32(directory.size()) + u32(begin) + u16(comment.size()) +
         std::string(comment);
}

/// A state dict of one tensor, 'w', [2] of f32.
struct TorchBuilder {
  std::string pickle = stateDict({tensor("w", "F", "0", 2, "", "[2]", "[1]")});
  std::string data = f32(1) + f32(2);
  std::string byteOrder = "little";
  std::vector<ZipMember> more;

  std::vector<ZipMember> members() const {
    std::vector<ZipMember> list = {{.name = "m/data.pkl", .data = pickle},
                                   {.name = "m/byteorder", .data = byteOrder},
                                   {.name = "m/data/0", .data = data}};
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  std::string file() const { return zip(members(), /*with64=*/true); }
};

} // namespace gptc::checkpoint::test

#endif // GPTC_TEST_UNIT_CHECKPOINT_TORCHFILES_H
