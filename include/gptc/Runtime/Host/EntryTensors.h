//===- EntryTensors.h - What an entry's tensors are called ------*- C++ -*-===//
//
// For gptc-run and gptc-check, which run an entry with the arrays of an .npz.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_ENTRYTENSORS_H
#define GPTC_RUNTIME_HOST_ENTRYTENSORS_H

#include "gptc/Runtime/Host/Npy.h"
#include "gptc/Runtime/Host/Package.h"

namespace gptc::host {

/// The tensors of an entry, as the package's manifest names them.
struct EntryTensors {
  std::string entry;
  std::vector<std::string> inputs, inputTypes, outputs;

  /// Empty with a message that names the entries if there is no such one.
  static std::optional<EntryTensors>
  find(const Package &package, const std::string &entry, std::string &error);

  /// The arrays of the archive at `path` that are inputs, f32 or i32. Outputs
  /// may be in it too: what is expected, say. Empty with a message for a file
  /// that is no archive, another array, floats for integers, integers for
  /// floats.
  std::optional<std::vector<Array>> read(const std::string &path,
                                         std::string &error) const;
};

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_ENTRYTENSORS_H
