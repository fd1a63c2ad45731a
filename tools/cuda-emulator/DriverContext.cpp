// Driver calls: the device, contexts, names of errors, addresses of calls.
#include "Driver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <string_view>

using namespace emu;

namespace emu {

State &state() {
  // Never destroyed: a program's own destructors may still make calls.
  static State *one = new State;
  return *one;
}

State::~State() = default;

static thread_local std::vector<Context *> stack;
std::vector<Context *> &contextStack() { return stack; }

static bool isContext(void *handle) {
  State &s = state();
  return (handle == &s.primary && s.primary.references > 0) ||
         s.contexts.find(handle);
}

Context *currentContext() {
  if (stack.empty() || !isContext(stack.back()))
    return nullptr;
  return stack.back();
}

void State::reset() {
  endRecords();
  modules.clear();
  kernels.clear();
  streams.clear();
  events.clear();
  graphs.reset();
  arena = std::make_unique<Arena>();
  sticky = Success;
}

} // namespace emu

// A setting that is not understood would test something else in silence.
static bool settingsAreKnown() {
  for (const char *name :
       {"GPTC_EMULATOR_SM", "GPTC_EMULATOR_SEED", "GPTC_EMULATOR_THREADS",
        "GPTC_EMULATOR_MEMORY", "GPTC_EMULATOR_LIMIT", "GPTC_EMULATOR_STATS",
        "GPTC_EMULATOR_BLOCKS", "GPTC_EMULATOR_GLOBAL_RACES",
        "GPTC_EMULATOR_LEVEL"}) {
    const char *text = std::getenv(name);
    std::string_view value = text ? text : "";
    const bool isDevice = std::string_view(name) == "GPTC_EMULATOR_SM";
    const bool known =
        value.empty() ||
        (isDevice
             ? value == "80" || value == "86" || value == "89" || value == "90"
             : value.size() <= 18 &&
                   value.find_first_not_of("0123456789") == value.npos);
    if (!known) {
      report(fmt::format("{}: expected {}, got '{}'", name,
                         isDevice ? "80, 86, 89 or 90" : "a number", value));
      return false;
    }
  }
  return true;
}

EMU_API cuInit(unsigned flags) {
  return driverCall(Needs::Nothing, [&](State &s) {
    if (flags)
      return InvalidValue;
    if (!s.initialised) {
      if (!settingsAreKnown())
        return InvalidValue;
      s.arena = std::make_unique<Arena>();
      s.initialised = true;
      std::atexit(endRecords);
    }
    return Success;
  });
}

EMU_API cuDriverGetVersion(int *version) {
  if (!version)
    return InvalidValue;
  *version = 13000;
  return Success;
}

EMU_API cuDeviceGetCount(int *count) {
  return driverCall(Needs::Init, [&](State &) {
    if (!count)
      return InvalidValue;
    *count = 1;
    return Success;
  });
}

EMU_API cuDeviceGet(int *device, int ordinal) {
  return driverCall(Needs::Init, [&](State &) {
    if (!device)
      return InvalidValue;
    if (ordinal != 0)
      return InvalidDevice;
    *device = 0;
    return Success;
  });
}

EMU_API cuDeviceGetName(char *name, int length, int number) {
  return driverCall(Needs::Init, [&](State &) {
    if (!name || length < 1)
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    std::snprintf(name, length, "%s", device().name.c_str());
    return Success;
  });
}

EMU_API cuDeviceGetUuid(void *uuid, int number) {
  return driverCall(Needs::Init, [&](State &) {
    if (!uuid)
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    std::memcpy(uuid, "gptc-emulator-00", 16);
    return Success;
  });
}
EMU_API cuDeviceGetUuid_v2(void *uuid, int number) {
  return cuDeviceGetUuid(uuid, number);
}

EMU_API cuDeviceGetAttribute(int *value, int attribute, int number) {
  return driverCall(Needs::Init, [&](State &) {
    int found = 0;
    if (!value || !deviceAttribute(attribute, found))
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    *value = found;
    return Success;
  });
}

EMU_API cuDeviceTotalMem_v2(size_t *bytes, int number) {
  return driverCall(Needs::Init, [&](State &s) {
    if (!bytes)
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    *bytes = s.arena->total();
    return Success;
  });
}

// --- contexts ---

EMU_API cuDevicePrimaryCtxRetain(void **context, int number) {
  return driverCall(Needs::Init, [&](State &s) {
    if (!context)
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    ++s.primary.references;
    *context = &s.primary;
    return Success;
  });
}

EMU_API cuDevicePrimaryCtxRelease_v2(int number) {
  return driverCall(Needs::Init, [&](State &s) {
    if (number != 0)
      return InvalidDevice;
    if (s.primary.references == 0)
      return InvalidContext;
    if (--s.primary.references == 0)
      s.reset();
    return Success;
  });
}

EMU_API cuDevicePrimaryCtxReset_v2(int number) {
  return driverCall(Needs::Init, [&](State &s) {
    if (number != 0)
      return InvalidDevice;
    s.reset();
    return Success;
  });
}

EMU_API cuDevicePrimaryCtxSetFlags_v2(int number, unsigned flags) {
  return driverCall(Needs::Init, [&](State &s) {
    if (number != 0)
      return InvalidDevice;
    s.primary.flags = flags;
    return Success;
  });
}

EMU_API cuDevicePrimaryCtxGetState(int number, unsigned *flags, int *active) {
  return driverCall(Needs::Init, [&](State &s) {
    if (number != 0)
      return InvalidDevice;
    if (!flags || !active)
      return InvalidValue;
    *flags = s.primary.flags;
    *active = s.primary.references > 0;
    return Success;
  });
}

EMU_API cuCtxCreate_v2(void **context, unsigned flags, int number) {
  return driverCall(Needs::Init, [&](State &s) {
    if (!context)
      return InvalidValue;
    if (number != 0)
      return InvalidDevice;
    auto made = std::make_unique<Context>();
    made->references = 1;
    made->flags = flags;
    Context *at = s.contexts.add(std::move(made));
    contextStack().push_back(at);
    *context = at;
    return Success;
  });
}
EMU_API cuCtxCreate_v4(void **context, void *, unsigned flags, int number) {
  return cuCtxCreate_v2(context, flags, number);
}

EMU_API cuCtxDestroy_v2(void *context) {
  return driverCall(Needs::Init, [&](State &s) {
    Context *made = s.contexts.find(context);
    if (!made)
      return InvalidContext;
    if (!contextStack().empty() && contextStack().back() == made)
      contextStack().pop_back();
    s.contexts.remove(context);
    s.reset();
    return Success;
  });
}

EMU_API cuCtxPushCurrent_v2(void *context) {
  return driverCall(Needs::Init, [&](State &) {
    if (!isContext(context))
      return InvalidContext;
    contextStack().push_back(static_cast<Context *>(context));
    return Success;
  });
}

EMU_API cuCtxPopCurrent_v2(void **context) {
  return driverCall(Needs::Init, [&](State &) {
    if (contextStack().empty())
      return InvalidContext;
    if (context)
      *context = contextStack().back();
    contextStack().pop_back();
    return Success;
  });
}

EMU_API cuCtxSetCurrent(void *context) {
  return driverCall(Needs::Init, [&](State &) {
    if (context && !isContext(context))
      return InvalidContext;
    if (!contextStack().empty())
      contextStack().pop_back();
    if (context)
      contextStack().push_back(static_cast<Context *>(context));
    return Success;
  });
}

EMU_API cuCtxGetCurrent(void **context) {
  return driverCall(Needs::Init, [&](State &) {
    if (!context)
      return InvalidValue;
    *context = currentContext();
    return Success;
  });
}

EMU_API cuCtxGetDevice(int *number) {
  return driverCall(Needs::Init, [&](State &) {
    if (!currentContext())
      return InvalidContext;
    if (!number)
      return InvalidValue;
    *number = 0;
    return Success;
  });
}

EMU_API cuCtxSynchronize() {
  return driverCall(Needs::Context, [](State &) { return Success; });
}

EMU_API cuCtxSetLimit(int, size_t) {
  return driverCall(Needs::Context, [](State &) { return Success; });
}

// --- names ---

EMU_API cuGetErrorName(int result, const char **text) {
  if (!text)
    return InvalidValue;
  *text = resultName(result);
  return *text ? Success : InvalidValue;
}

EMU_API cuGetErrorString(int result, const char **text) {
  if (!text)
    return InvalidValue;
  *text = resultText(result);
  return *text ? Success : InvalidValue;
}

EMU_API cuGetProcAddress_v2(const char *symbol, void **address, int version,
                            unsigned long long, int *status) {
  if (!symbol || !address)
    return InvalidValue;
  // The newest form of a call that there is, else the name itself.
  Dl_info self;
  void *library = nullptr;
  if (dladdr(reinterpret_cast<void *>(&cuGetProcAddress_v2), &self))
    library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *address = nullptr;
  for (const char *suffix : {"_v4", "_v2", "WithFlags", ""}) {
    if (*suffix == 'W' && std::string_view(symbol) != "cuGraphInstantiate")
      continue;
    if (!*address && library)
      *address = dlsym(library, (std::string(symbol) + suffix).c_str());
  }
  if (library)
    dlclose(library);
  if (status) // found, or not
    *status = *address ? 0 : 1;
  return *address ? Success : NotFound;
}
