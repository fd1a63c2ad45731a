// What the driver calls share: the device's state, handles that are checked,
// and how a call ends. The exported functions have the names and types of
// NVIDIA's documented driver API; nothing here is taken from its headers.
#ifndef GPTC_CUDA_EMULATOR_DRIVER_H
#define GPTC_CUDA_EMULATOR_DRIVER_H

#include "Device.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#define EMU_API extern "C" __attribute__((visibility("default"))) int

namespace emu {

struct Context {
  int references = 0;
  unsigned flags = 0;
};
struct Stream {
  unsigned flags = 0;
};
struct Event {
  bool recorded = false;
  std::chrono::steady_clock::time_point when;
};

struct LaunchArguments { // of a kernel, copied
  Kernel *kernel = nullptr;
  uint32_t grid[3] = {}, block[3] = {}, dynamicShared = 0;
  std::vector<uint8_t> params;
};

template <class T> class Handles {
public:
  T *add(std::unique_ptr<T> made) {
    T *at = made.get();
    all.emplace(at, std::move(made));
    return at;
  }
  T *find(void *handle) const {
    auto found = all.find(handle);
    return found == all.end() ? nullptr : found->second.get();
  }
  bool remove(void *handle) { return all.erase(handle); }
  void clear() { all.clear(); }

private:
  std::unordered_map<void *, std::unique_ptr<T>> all;
};

struct Graph;
struct GraphExec;

struct State {
  std::recursive_mutex lock;
  bool initialised = false;
  std::unique_ptr<Arena> arena;
  Context primary;
  Handles<Context> contexts;
  Handles<Module> modules;
  std::unordered_set<void *> kernels;
  Handles<Stream> streams;
  Handles<Event> events;
  std::shared_ptr<void> graphs; // DriverGraph.cpp's
  int sticky = Success;         // of the device; it ends with the context
  std::map<std::string, KernelStats> stats;
  // Of every kernel of every module that was loaded: how often it was launched.
  std::map<std::pair<std::string, std::string>, uint64_t> coverage;
  ~State();

  void reset(); // the last context is gone
  // A launch that was checked. Errors become sticky.
  void run(const LaunchArguments &arguments);
};

State &state();

// Writes what was counted until now, where the environment asks for it, and
// forgets it.
void endRecords();

// The current context of the thread, or null.
Context *currentContext();
std::vector<Context *> &contextStack();

// Copies the arguments of a launch; Success, or why not.
Result gather(LaunchArguments &arguments, void *function,
              const uint32_t (&grid)[3], const uint32_t (&block)[3],
              uint32_t dynamicShared, void **params, void **extra);
// Copies and sets between checked ranges.
Result copyBytes(uint64_t to, bool toDevice, uint64_t from, bool fromDevice,
                 size_t size);
Result fillBytes(uint64_t to, uint64_t value, unsigned elementSize,
                 size_t count);
bool isStream(void *stream); // null and the two special ones are

// Runs a call's body; nothing is thrown at the caller.
enum class Needs { Nothing, Init, Context };
template <class F> int driverCall(Needs needs, F body) {
  State &s = state();
  std::lock_guard<std::recursive_mutex> guard(s.lock);
  if (needs != Needs::Nothing && !s.initialised)
    return NotInitialized;
  if (needs == Needs::Context) {
    if (!currentContext())
      return InvalidContext;
    if (s.sticky != Success)
      return s.sticky;
  }
  try {
    return body(s);
  } catch (const Error &error) {
    report(error.what());
    return error.result;
  } catch (const std::bad_alloc &) {
    return OutOfMemory;
  }
}

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_DRIVER_H
