//===- Files.h - Whole files in, files aside and renamed out --------------===//
//
// "-" is standard input or output. An output that is not committed leaves
// nothing behind.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_FILES_H
#define GPTC_RUNTIME_HOST_FILES_H

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace gptc::host {

std::optional<std::vector<uint8_t>> readFile(const std::string &path,
                                             std::string &error);

/// Written beside its destination and renamed by commit(); a device or pipe is
/// written in place.
class OutputFile {
public:
  static std::optional<OutputFile> create(const std::string &path,
                                          std::string &error);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  bool write(const void *data, size_t bytes, std::string &error);
  bool commit(std::string &error);

private:
  OutputFile() = default;
  std::FILE *file = nullptr;
  std::string path, aside;
};

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_FILES_H
