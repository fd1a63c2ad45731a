//===- Zip.h - The directory of a zip archive -------------------*- C++ -*-===//
//
// Reads the central directory, zip64 or not, of an archive whose entries are
// stored, not compressed, so that their bytes can be used where they lie.
// Refuses, naming the entry and the rule: an end record, directory or local
// header that does not fit or does not agree with the others (name, sizes,
// method; sizes that follow the data may be left 0), archives of
// several disks, compressed and encrypted entries, duplicate names, entries
// that overlap. Checksums are not computed: that would read every byte. Spec:
// PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 to 4.3.16 and 4.5.3.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_CHECKPOINT_ZIP_H
#define GPTC_LIB_CHECKPOINT_ZIP_H

#include "gptc/Checkpoint/MappedFile.h"
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gptc::checkpoint {

struct ZipEntry {
  /// A view of the mapping.
  std::string_view name;
  /// Of its local header and of its data, from the start of the file.
  uint64_t header = 0, offset = 0;
  /// In bytes; offset + size lies in the file.
  uint64_t size = 0;
};

class ZipArchive {
public:
  static Expected<ZipArchive> read(const MappedFile &file);

  /// In the order of the directory.
  const std::vector<ZipEntry> &entries() const { return list; }
  /// Null when there is none of that name.
  const ZipEntry *find(std::string_view name) const;

private:
  friend class ZipReader;
  std::vector<ZipEntry> list;
  std::unordered_map<std::string_view, size_t> index;
};

} // namespace gptc::checkpoint

#endif // GPTC_LIB_CHECKPOINT_ZIP_H
