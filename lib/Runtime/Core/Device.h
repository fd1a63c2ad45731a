//===- Device.h - A GPU through its driver --------------------------------===//
//
// Packages for a GPU keep weights, KV pages, workspace and a copy of a batch in
// the GPU's memory; the host decides what runs, as for the CPU. The driver API
// (CUDA driver API, 12 or later) is found with dlopen when a model is opened:
// nothing else needs it, and a machine without one gets a status that says so.
//
// Work of a session goes to one stream, in order. The first error of the driver
// stays with the queue, later work is dropped, and finish() reports it: CUDA's
// errors are sticky anyway.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_CORE_DEVICE_H
#define GPTC_RUNTIME_CORE_DEVICE_H

#include "Core.h"

namespace gptc::core {

/// Whether this package's kernels run on a GPU: a constant in a package, for the
/// optimizer to fold.
bool onDevice();

/// Finds the driver and a GPU, and loads the program's code. The context is
/// the host's current one, or else the first GPU's primary one.
gptc_status openDevice(Model &model);
void closeDevice(Model &model);

/// A stream of its own, or the host's.
gptc_status openQueue(const Model &model, Queue &queue);
void closeQueue(Queue &queue);
/// Waits until nothing is queued, whatever has failed.
void synchronize(const Queue &queue);

/// Makes the device's context current for as long as it lives. Around all of
/// the calls below.
class OnDevice {
public:
  explicit OnDevice(const Device *device);
  ~OnDevice();
  OnDevice(const OnDevice &) = delete;

private:
  const Device *device;
};

/// Memory of the GPU, with room to over-read as allocate gives it. False, with
/// the message set, if there is none.
bool allocateOnDevice(Queue &queue, uint64_t bytes, bool zeroed, Block &block);
/// The status of an allocation that has failed, for kernels or for the host.
gptc_status allocationFailed(const Queue &queue);
void releaseOnDevice(const Device &device, Block &block);

/// Copies from the host, to the host, and inside of the GPU's memory. copyOut
/// also takes a pointer to the GPU's memory.
void copyIn(Queue &queue, void *to, const void *from, uint64_t bytes);
void copyOut(Queue &queue, void *to, const void *from, uint64_t bytes);
void copyWithin(Queue &queue, void *to, const void *from, uint64_t bytes);
void clear(Queue &queue, void *to, uint64_t bytes);
bool isOnDevice(const Queue &queue, const void *pointer);

/// Copies the tables of a session. The driver may read them until
/// awaitTables returns, which whoever changes them calls first; what was queued
/// behind the copy goes on running.
void copyTables(Session &session);
void awaitTables(Session &session);

/// The launches of a call of these sizes.
const gptc_variant &variantOf(const gptc_call_desc &call, const int64_t *dims);
/// Queues the launches of a call that has been bound.
void launch(Session &session, const gptc_call_desc &call, int64_t *dims);
/// The same, and waits for them: milliseconds between events of the stream
/// before and after. 0 after an error.
float launchTimed(Session &session, const gptc_call_desc &call, int64_t *dims);

/// Waits for the queue if asked to. The status of the first thing that failed.
gptc_status finish(Queue &queue, bool wait);

} // namespace gptc::core

#endif // GPTC_RUNTIME_CORE_DEVICE_H
