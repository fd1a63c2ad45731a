//===- OutputFolder.h - all of a folder or none of it -----------*- C++ -*-===//
//
// Files are written into a new folder beside the wanted one, which takes its
// name at the end. An earlier package of that name is exchanged in one step
// where the file system can, and removed after. What is not committed is
// removed, also when the process is interrupted; what a killed one has left,
// the next run for the same output removes (a lock tells it from one still at
// work).
//
// Refuses to replace anything but an empty folder or a package.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace gptc {

class OutputFolder {
public:
  /// Makes the temporary folder. The parent must exist and be writable.
  static llvm::Expected<OutputFolder> create(llvm::StringRef wanted);

  /// A folder `prefix`XXXXXX in that for temporary files (TMPDIR), never to be
  /// committed. Files only, no folders, may be made in it.
  static llvm::Expected<OutputFolder> temporary(llvm::StringRef prefix);

  OutputFolder(OutputFolder &&other) noexcept;
  OutputFolder &operator=(OutputFolder &&) = delete;
  ~OutputFolder();

  /// The temporary folder.
  const std::string &path() const { return folder; }
  /// Path of a file of this name in the temporary folder.
  std::string file(llvm::StringRef name) const;
  llvm::Error write(llvm::StringRef name, llvm::StringRef contents) const;
  void remove(llvm::StringRef name) const;
  /// Gives the folder its name.
  llvm::Error commit();

private:
  OutputFolder(std::string wanted, std::string folder, int lock)
      : wanted(std::move(wanted)), folder(std::move(folder)), lock(lock) {}

  static llvm::Expected<OutputFolder>
  make(llvm::StringRef parent, llvm::StringRef prefix, std::string wanted);

  std::string wanted, folder;
  int lock; ///< descriptor of the temporary folder, or -1
};

} // namespace gptc
