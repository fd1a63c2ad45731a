//===- Files.cpp - Whole files in, files aside and renamed out ------------===//

#include "gptc/Runtime/Host/Files.h"
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace gptc::host;

static std::string systemError(const std::string &path, const char *what) {
  return fmt::format("{}: {}: {}", path, what, std::strerror(errno));
}

std::optional<std::vector<uint8_t>>
gptc::host::readFile(const std::string &path, std::string &error) {
  bool standard = path == "-";
  std::FILE *file = standard ? stdin : std::fopen(path.c_str(), "rbe");
  if (!file) {
    error = systemError(path, "cannot be opened");
    return std::nullopt;
  }
  // Read to the end rather than to a size asked for: pipes have none.
  std::vector<uint8_t> bytes;
  uint8_t buffer[1 << 16];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof(buffer), file)) > 0)
    bytes.insert(bytes.end(), buffer, buffer + got);
  bool failed = std::ferror(file);
  if (failed)
    error = systemError(path, "cannot be read");
  if (!standard)
    std::fclose(file);
  if (failed)
    return std::nullopt;
  return bytes;
}

std::optional<OutputFile> OutputFile::create(const std::string &path,
                                             std::string &error) {
  OutputFile out;
  out.path = path;
  if (path == "-") {
    out.file = stdout;
    return out;
  }
  // Renaming would put a regular file in the place of a device or pipe.
  struct stat status;
  bool inPlace = !stat(path.c_str(), &status) && !S_ISREG(status.st_mode);
  if (!inPlace)
    out.aside = fmt::format("{}.{}.part", path, getpid());
  out.file = std::fopen((inPlace ? path : out.aside).c_str(), "wbe");
  if (!out.file) {
    error = systemError(path, "cannot be written");
    return std::nullopt;
  }
  return out;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : file(std::exchange(other.file, nullptr)), path(std::move(other.path)),
      aside(std::move(other.aside)) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(file, other.file);
  std::swap(path, other.path);
  std::swap(aside, other.aside);
  return *this;
}

OutputFile::~OutputFile() {
  if (!file || file == stdout)
    return;
  std::fclose(file);
  if (!aside.empty())
    std::remove(aside.c_str());
}

bool OutputFile::write(const void *data, size_t bytes, std::string &error) {
  if (std::fwrite(data, 1, bytes, file) == bytes)
    return true;
  error = systemError(path, "cannot be written");
  return false;
}

bool OutputFile::commit(std::string &error) {
  std::FILE *done = std::exchange(file, nullptr);
  bool good = std::fflush(done) == 0;
  if (done != stdout) {
    good &= std::fclose(done) == 0;
    if (good && !aside.empty())
      good = std::rename(aside.c_str(), path.c_str()) == 0;
  }
  if (!good) {
    error = systemError(path, "cannot be written");
    if (!aside.empty())
      std::remove(aside.c_str());
  }
  return good;
}
