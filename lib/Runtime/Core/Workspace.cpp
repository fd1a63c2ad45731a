//===- Workspace.cpp - Where an entry's buffers lie -----------------------===//
//
// The compiler has assigned buffers of disjoint lifetimes to one slot; here the
// slots get their sizes, which depend on the dynamic dimensions, and places.
// For steps this happens once, at the limits of the session; for entries with
// named tensors at every run, growing the memory when needed.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace gptc::core {

uint64_t sizeAt(const gptc_size &size, const int64_t *dims) {
  uint64_t bytes = size.bytes;
  for (int i = 0; i < 3; ++i)
    if (size.dims[i] >= 0)
      bytes = saturatingMul(bytes, dims[size.dims[i]]);
  return bytes;
}

uint64_t scratchAt(const gptc_entry_desc &entry, const int64_t *dims) {
  uint64_t most = 0;
  for (int32_t i = 0; i < entry.call_count; ++i) {
    const gptc_call_desc &call = entry.calls[i];
    uint64_t bytes = call.scratch_bytes;
    if (call.scratch_dim >= 0)
      bytes = saturatingMul(bytes, dims[call.scratch_dim]);
    most = bytes > most ? bytes : most;
  }
  return most;
}

bool placeBuffers(const gptc_host &host, Queue &queue,
                  const gptc_entry_desc &entry, const int64_t *dims,
                  Workspace &workspace) {
  uint64_t slotBytes = entry.slot_count * sizeof(uint64_t);
  if (!workspace.slots || workspace.slotMemory.bytes < padded(slotBytes)) {
    release(host, workspace.slotMemory);
    workspace.slots = nullptr;
    if (!allocate(host, slotBytes, false, workspace.slotMemory))
      return false;
    workspace.slots = static_cast<uint64_t *>(workspace.slotMemory.pointer);
  }
  for (int32_t i = 0; i < entry.slot_count; ++i)
    workspace.slots[i] = 0;
  for (int32_t i = 0; i < entry.buffer_count; ++i) {
    uint64_t bytes = sizeAt(entry.buffers[i], dims);
    uint64_t &slot = workspace.slots[entry.buffers[i].slot];
    slot = bytes > slot ? bytes : slot;
  }
  uint64_t total = 0;
  for (int32_t i = 0; i < entry.slot_count; ++i) {
    uint64_t bytes = padded(workspace.slots[i]);
    workspace.slots[i] = total;
    total = saturatingAdd(total, bytes);
  }
  if (total && workspace.memory.bytes < padded(total)) {
    releaseForKernels(host, queue, workspace.memory);
    return allocateForKernels(host, queue, total, false, workspace.memory);
  }
  return true;
}

bool growScratch(Session &session, uint64_t bytes) {
  uint64_t stride = padded(bytes);
  if (!bytes || stride <= session.scratchStride)
    return true;
  const gptc_host &host = session.model->host;
  const int64_t parts = session.queue.device ? 1 : session.limits.threads;
  // Without memory for it, steps go on with what they have.
  Block larger;
  if (!allocateForKernels(host, session.queue, saturatingMul(stride, parts),
                          false, larger))
    return false;
  synchronize(session.queue);
  releaseForKernels(host, session.queue, session.scratch);
  session.scratch = larger;
  session.scratchStride = stride;
  return true;
}

} // namespace gptc::core
