//===- Model.cpp - Opening a package and its weights ----------------------===//
//
// The weights file is mapped read-only. Its size, magic and package hash are
// always checked; its checksum only if asked for (gptc_open_params::verify),
// because that reads all of it. The file must not be changed while mapped.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "gptc/Format/WeightLayout.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gptc::core {

static unsigned long long wide(uint64_t x) { return x; }

/// Checks the image of a weights file that is `bytes` long.
static gptc_status checkImage(const gptc_program &program, const char *path,
                              const char *image, uint64_t bytes, bool verify) {
  gptc_weights_header header;
  if (bytes < sizeof(header))
    return fail(GPTC_BAD_WEIGHTS,
                "%.300s: expected a weights file of %llu bytes, got %llu", path,
                wide(program.weights_file_bytes), wide(bytes));
  memcpy(&header, image, sizeof(header));
  if (memcmp(header.magic, GPTC_WEIGHTS_MAGIC, sizeof(header.magic)))
    return fail(GPTC_BAD_WEIGHTS,
                "%.300s: not a weights file: expected it to start with "
                "'" GPTC_WEIGHTS_MAGIC "'",
                path);
  if (header.package_hash != program.package_hash)
    return fail(GPTC_BAD_WEIGHTS,
                "%.300s: weights of another package: expected hash %016llx, "
                "got %016llx; use the file written with this package",
                path, wide(program.package_hash), wide(header.package_hash));
  if (bytes != program.weights_file_bytes || header.file_bytes != bytes)
    return fail(GPTC_BAD_WEIGHTS,
                "%.300s: truncated or damaged: expected %llu bytes, got %llu",
                path, wide(program.weights_file_bytes), wide(bytes));
  if (verify) {
    uint64_t sum =
        gptc_checksum(0, image + sizeof(header), bytes - sizeof(header));
    if (sum != header.checksum)
      return fail(GPTC_BAD_WEIGHTS,
                  "%.300s: damaged: expected checksum %016llx, got %016llx",
                  path, wide(header.checksum), wide(sum));
  }
  return GPTC_OK;
}

gptc_status mapWeights(const char *path, bool verify, Model &model) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(GPTC_BAD_WEIGHTS, "%.300s: cannot be opened: %s", path,
                errno == ENOENT   ? "no such file"
                : errno == EACCES ? "permission denied"
                                  : "see errno");
  struct stat status;
  if (fstat(file, &status) || !S_ISREG(status.st_mode)) {
    close(file);
    return fail(GPTC_BAD_WEIGHTS, "%.300s: expected a regular file", path);
  }
  uint64_t bytes = status.st_size;
  void *image = MAP_FAILED;
  if (bytes)
    image = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes && image == MAP_FAILED)
    return fail(GPTC_NO_MEMORY, "%.300s: %llu bytes cannot be mapped", path,
                wide(bytes));
  const gptc_program &program = programOf(model);
  gptc_status checked = checkImage(
      program, path, static_cast<const char *>(image), bytes, verify);
  if (checked != GPTC_OK) {
    if (bytes)
      munmap(image, bytes);
    return checked;
  }
  model.mapped = image;
  model.mappedBytes = bytes;
  char *section = static_cast<char *>(image) + program.weights_begin;
  madvise(section, program.weights_section_bytes, MADV_WILLNEED);
  model.image = section;
  return GPTC_OK;
}

static void unmapWeights(Model &model) {
  if (model.mappedBytes)
    munmap(model.mapped, model.mappedBytes);
  model.mappedBytes = 0;
}

/// From the host's memory to the GPU's.
static gptc_status moveWeights(Model &model) {
  OnDevice current(model.device);
  Queue queue;
  gptc_status status = openQueue(model, queue);
  if (status != GPTC_OK)
    return status;
  Block &moved = model.deviceWeights;
  uint64_t bytes = programOf(model).weights_section_bytes;
  if (allocateOnDevice(queue, bytes, false, moved)) {
    copyIn(queue, moved.pointer, model.image, bytes);
    status = finish(queue, true);
  } else {
    status = allocationFailed(queue);
  }
  synchronize(queue);
  closeQueue(queue);
  unmapWeights(model);
  release(model.host, model.weights);
  model.image = static_cast<const char *>(moved.pointer);
  return status;
}

gptc_status openModel(const gptc_open_params *given, Model **model) {
  gptc_open_params params = {};
  // A caller compiled against an older gptc.h has a shorter struct.
  memcpy(&params, given,
         given->size < sizeof(params) ? given->size : sizeof(params));
  if (given->size < offsetof(gptc_open_params, host))
    return fail(GPTC_INVALID_ARGUMENT,
                "open: expected params->size to be sizeof(gptc_open_params)");
  if (!params.weights_path == !params.weights)
    return fail(GPTC_INVALID_ARGUMENT,
                "open: expected exactly one of weights_path and weights, got "
                "%s",
                params.weights ? "both" : "neither");
  gptc_host host = {};
  if (params.host)
    memcpy(&host, params.host,
           params.host->size < sizeof(host) ? params.host->size : sizeof(host));
  if (!host.allocate != !host.release)
    return fail(GPTC_INVALID_ARGUMENT,
                "open: expected the host to give both allocate and release, "
                "or neither");
  const gptc_program &program = chosenProgram();
  gptc_status status = checkCpu(program);
  if (status != GPTC_OK)
    return status;

  Block memory;
  if (!allocate(host, sizeof(Model), true, memory))
    return GPTC_NO_MEMORY;
  Model *opened = static_cast<Model *>(memory.pointer);
  opened->kind = Kind::Model;
  opened->host = host;
  opened->chosen = &program;
  opened->self = memory;
  opened->references = 1;
  if (onDevice())
    status = openDevice(*opened);
  if (status == GPTC_OK)
    status = params.weights_path
                 ? mapWeights(params.weights_path, params.verify, *opened)
                 : packWeights(params.weights, params.weight_count, *opened);
  if (status == GPTC_OK && onDevice())
    status = moveWeights(*opened);
  if (status != GPTC_OK) {
    dropModel(opened);
    return status;
  }
  *model = opened;
  return GPTC_OK;
}

void dropModel(Model *model) {
  if (__atomic_sub_fetch(&model->references, 1, __ATOMIC_ACQ_REL))
    return;
  unmapWeights(*model);
  gptc_host host = model->host;
  if (onDevice())
    closeDevice(*model);
  release(host, model->weights);
  Block memory = model->self;
  release(host, memory);
}

} // namespace gptc::core
