//===- RunTensors.cpp - Where the tensors of a run lie --------------------===//

#include "RunTensors.h"
#include "Device.h"
#include <string.h>

namespace gptc::core {

/// The smallest pages that there are on the CPUs that packages run on.
static constexpr uint64_t pageBytes = 4096;

/// Copies of at least so many bytes are worth the threads' wake.
static constexpr uint64_t sharedBytes = 256 << 10;

/// Whether the vector past the end is in the page of the last byte. Not of what
/// no memory can hold, which the allocator then says.
static bool mayReadPast(const RunTensor &tensor) {
  if (tensor.bytes > PTRDIFF_MAX)
    return false;
  uint64_t last = reinterpret_cast<uintptr_t>(tensor.host) + tensor.bytes - 1;
  return last % pageBytes + vectorBytes < pageBytes;
}

static bool overlap(const RunTensor &a, const RunTensor &b) {
  return a.host < b.host + b.bytes && b.host < a.host + a.bytes;
}

static bool isUsedInPlace(const RunTensors &run, int32_t i) {
  const RunTensor &tensor = run.tensors[i];
  if (onDevice() || !tensor.host || tensor.checked || !mayReadPast(tensor))
    return false;
  for (int32_t j = 0; j < run.count(); ++j)
    if (i >= run.inputs && j != i && run.tensors[j].host &&
        overlap(tensor, run.tensors[j]))
      return false;
  return true;
}

bool placeTensors(Session &session, const RunTensors &run) {
  uint64_t bytes = 0;
  for (int32_t i = 0; i < run.count(); ++i) {
    run.places[i] = isUsedInPlace(run, i) ? run.tensors[i].host : nullptr;
    if (!run.places[i])
      bytes = saturatingAdd(bytes, padded(run.tensors[i].bytes));
  }
  const gptc_host &host = session.model->host;
  if (bytes && session.values.bytes < padded(bytes)) {
    releaseForKernels(host, session.queue, session.values);
    if (!allocateForKernels(host, session.queue, bytes, false, session.values))
      return false;
  }
  char *next = static_cast<char *>(session.values.pointer);
  for (int32_t i = 0; i < run.count(); ++i)
    if (!run.places[i]) {
      run.places[i] = next;
      next += padded(run.tensors[i].bytes);
    }
  return true;
}

namespace {
struct CopyJob {
  char *to;
  const char *from;
  uint64_t bytes;
  int64_t parts;

  /// Where part i begins: whole vectors.
  uint64_t begin(int64_t i) const {
    return i == parts ? bytes : bytes / vectorBytes * i / parts * vectorBytes;
  }
};
} // namespace

static void copyPart(void *data, int32_t part) {
  const CopyJob &job = *static_cast<const CopyJob *>(data);
  uint64_t begin = job.begin(part);
  memcpy(job.to + begin, job.from + begin, job.begin(part + 1) - begin);
}

static void copyShared(Session &session, void *to, const void *from,
                       uint64_t bytes) {
  if (bytes < sharedBytes) {
    memcpy(to, from, bytes);
    return;
  }
  CopyJob job = {static_cast<char *>(to), static_cast<const char *>(from),
                 bytes, session.limits.threads};
  runOnThreads(session, copyPart, &job);
}

void copyInputs(Session &session, const RunTensors &run) {
  Queue &queue = session.queue;
  for (int32_t i = 0; i < run.inputs; ++i) {
    const RunTensor &tensor = run.tensors[i];
    if (run.places[i] == tensor.host)
      continue;
    if (!onDevice())
      copyShared(session, run.places[i], tensor.host, tensor.bytes);
    else if (isOnDevice(queue, tensor.host))
      copyWithin(queue, run.places[i], tensor.host, tensor.bytes);
    else
      copyIn(queue, run.places[i], tensor.host, tensor.bytes);
  }
}

void copyOutputs(Session &session, const RunTensors &run) {
  for (int32_t i = run.inputs; i < run.count(); ++i) {
    const RunTensor &tensor = run.tensors[i];
    if (!tensor.host || run.places[i] == tensor.host)
      continue;
    if (onDevice())
      copyOut(session.queue, tensor.host, run.places[i], tensor.bytes);
    else
      copyShared(session, tensor.host, run.places[i], tensor.bytes);
  }
}

} // namespace gptc::core
