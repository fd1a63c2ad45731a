//===- MappedFile.cpp - A file mapped for reading -------------------------===//

#include "gptc/Checkpoint/MappedFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace gptc::checkpoint;

static Error systemError(const std::string &path, const char *what) {
  return Error{fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

Expected<MappedFile> MappedFile::open(const std::string &path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return systemError(path, "cannot open");
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};

  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return systemError(path, "cannot read the file's size");
  if (S_ISDIR(status.st_mode))
    return Error{fmt::format("{}: expected a file, got a folder", path)};
  if (!S_ISREG(status.st_mode))
    return Error{fmt::format(
        "{}: expected a regular file, got a device, pipe or socket", path)};

  MappedFile file;
  file.filePath = path;
  file.length = static_cast<size_t>(status.st_size);
  if (file.length == 0) // mmap refuses a length of 0
    return file;
  void *address =
      ::mmap(nullptr, file.length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    file.length = 0;
    return systemError(path, "cannot map the file");
  }
  file.begin = static_cast<const uint8_t *>(address);
  return file;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : filePath(std::move(other.filePath)),
      begin(std::exchange(other.begin, nullptr)),
      length(std::exchange(other.length, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(begin, other.begin);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin)
    ::munmap(const_cast<uint8_t *>(begin), length);
}

void gptc::checkpoint::releasePages(const uint8_t *data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(data), end = begin + bytes;
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) // only advice: failing changes nothing
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}
