// Driver calls: modules, functions and launches.
#include "Driver.h"

#include <fmt/format.h>

using namespace emu;

namespace emu {

Result gather(LaunchArguments &arguments, void *function,
              const uint32_t (&grid)[3], const uint32_t (&block)[3],
              uint32_t dynamicShared, void **params, void **extra) {
  State &s = state();
  if (!s.kernels.count(function))
    return InvalidHandle;
  Kernel &kernel = *static_cast<Kernel *>(function);
  arguments.kernel = &kernel;
  std::copy(grid, grid + 3, arguments.grid);
  std::copy(block, block + 3, arguments.block);
  arguments.dynamicShared = dynamicShared;
  Result result = checkLaunch(kernel, grid, block, dynamicShared);
  if (result != Success)
    return result;
  if (params && extra)
    return InvalidValue;
  arguments.params.assign(kernel.paramBytes, 0);
  if (extra) {
    // Pairs that end with 0: 1 the buffer, 2 its size.
    const void *buffer = nullptr;
    size_t size = 0;
    for (; *extra; extra += 2) {
      if (*extra == reinterpret_cast<void *>(1))
        buffer = extra[1];
      else if (*extra == reinterpret_cast<void *>(2))
        size = *static_cast<size_t *>(extra[1]);
      else
        return InvalidValue;
    }
    if (!buffer || size < kernel.paramBytes)
      return InvalidValue;
    std::memcpy(arguments.params.data(), buffer, kernel.paramBytes);
    return Success;
  }
  if (!params && !kernel.paramSizes.empty())
    return InvalidValue;
  for (size_t i = 0; i < kernel.paramSizes.size(); ++i) {
    if (!params[i])
      return InvalidValue;
    std::memcpy(arguments.params.data() + kernel.paramOffsets[i], params[i],
                kernel.paramSizes[i]);
  }
  return Success;
}

void State::run(const LaunchArguments &arguments) {
  Kernel &kernel = *arguments.kernel;
  Launch launch;
  launch.source = kernel.module->source.get();
  launch.code = kernel.code;
  launch.pool = kernel.module->pool.data.data();
  launch.arena = arena.get();
  std::copy(arguments.grid, arguments.grid + 3, launch.grid);
  std::copy(arguments.block, arguments.block + 3, launch.block);
  launch.dynamicShared = arguments.dynamicShared;
  launch.sharedVariables = kernel.sharedVariables;
  launch.sharedBytes = kernel.dynamicAt + arguments.dynamicShared;
  if (arguments.dynamicShared)
    launch.sharedVariables.push_back(
        {kernel.dynamicAt, kernel.dynamicAt + arguments.dynamicShared});
  launch.params = arguments.params;
  launch.localStride = kernel.localStride;
  launch.countAccesses = setting("GPTC_EMULATOR_STATS", 0);
  launch.races = setting("GPTC_EMULATOR_GLOBAL_RACES", 1);
  try {
    launch.run();
  } catch (const Error &error) {
    report(error.what());
    sticky = error.result;
  }
  launch.stats.launches = 1;
  std::string name(kernel.function->name);
  stats[name].add(launch.stats);
  ++coverage[{kernel.module->label, name}];
}

} // namespace emu

EMU_API cuModuleLoadData(void **module, const void *image) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!module || !image)
      return InvalidValue;
    auto made = std::make_unique<Module>(imageOf(image, device().sm), *s.arena,
                                         device().sm);
    for (auto &kernel : made->kernels) {
      s.kernels.insert(kernel.get());
      s.coverage[{made->label, std::string(kernel->function->name)}];
    }
    *module = s.modules.add(std::move(made));
    return Success;
  });
}
EMU_API cuModuleLoadDataEx(void **module, const void *image, unsigned, int *,
                           void **) {
  return cuModuleLoadData(module, image);
}
EMU_API cuModuleLoadFatBinary(void **module, const void *image) {
  return cuModuleLoadData(module, image);
}

EMU_API cuModuleUnload(void *handle) {
  return driverCall(Needs::Context, [&](State &s) {
    Module *module = s.modules.find(handle);
    if (!module)
      return InvalidHandle;
    for (auto &kernel : module->kernels)
      s.kernels.erase(kernel.get());
    s.modules.remove(handle);
    return Success;
  });
}

EMU_API cuModuleGetFunction(void **function, void *handle, const char *name) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!function || !name)
      return InvalidValue;
    Module *module = s.modules.find(handle);
    if (!module)
      return InvalidHandle;
    Kernel *kernel = module->kernel(name);
    if (!kernel)
      return NotFound;
    *function = kernel;
    return Success;
  });
}

EMU_API cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *handle,
                             const char *name) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!name || (!address && !size))
      return InvalidValue;
    Module *module = s.modules.find(handle);
    if (!module)
      return InvalidHandle;
    const Variable *variable = module->source->variable(name);
    if (!variable || variable->space == Space::Shared)
      return NotFound;
    if (address)
      *address = variable->address;
    if (size)
      *size = variable->size;
    return Success;
  });
}

EMU_API cuFuncGetAttribute(int *value, int attribute, void *function) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!value)
      return InvalidValue;
    if (!s.kernels.count(function))
      return InvalidHandle;
    const Kernel &kernel = *static_cast<Kernel *>(function);
    const uint32_t *most = kernel.function->maxThreads;
    const uint32_t *exact = kernel.function->requiredThreads;
    switch (attribute) {
    case 0:
      *value = most[0]    ? most[0] * most[1] * most[2]
               : exact[0] ? exact[0] * exact[1] * exact[2]
                          : 1024;
      break;
    case 1:
      *value = kernel.staticShared;
      break;
    case 2:
      *value = 0;
      break;
    case 3:
      *value = kernel.code->localBytes;
      break;
    case 4:
      *value = kernel.registers ? kernel.registers : 32;
      break;
    case 5:
    case 6:
      *value = device().sm;
      break;
    case 7:
      *value = 0;
      break;
    case 8:
      *value = kernel.maxDynamicShared
                   ? kernel.maxDynamicShared
                   : device().sharedPerBlock - kernel.staticShared;
      break;
    case 9:
      *value = kernel.preferredCarveout;
      break;
    default:
      return InvalidValue;
    }
    return Success;
  });
}

EMU_API cuFuncSetAttribute(void *function, int attribute, int value) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!s.kernels.count(function))
      return InvalidHandle;
    Kernel &kernel = *static_cast<Kernel *>(function);
    if (attribute == 8) {
      if (value < 0 || uint64_t(value) + kernel.staticShared >
                           uint64_t(device().sharedOptIn)) {
        report(fmt::format("cuFuncSetAttribute of {}: expected at most {} "
                           "bytes of shared memory, got {} static and {} "
                           "dynamic",
                           kernel.function->name, device().sharedOptIn,
                           kernel.staticShared, value));
        return InvalidValue;
      }
      kernel.maxDynamicShared = value;
      return Success;
    }
    if (attribute == 9 && value >= -1 && value <= 100) {
      kernel.preferredCarveout = value;
      return Success;
    }
    return InvalidValue;
  });
}

EMU_API cuFuncSetCacheConfig(void *function, int) {
  return driverCall(Needs::Context, [&](State &s) {
    return s.kernels.count(function) ? Success : InvalidHandle;
  });
}

EMU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                    int threads,
                                                    size_t dynamicShared) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!blocks || threads < 1 || threads > 1024)
      return InvalidValue;
    if (!s.kernels.count(function))
      return InvalidHandle;
    *blocks = residentBlocks(*static_cast<Kernel *>(function), threads,
                             dynamicShared);
    return Success;
  });
}

EMU_API cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                       unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned dynamicShared, void *stream,
                       void **params, void **extra) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!isStream(stream))
      return InvalidHandle;
    LaunchArguments arguments;
    Result result =
        gather(arguments, function, {gridX, gridY, gridZ},
               {blockX, blockY, blockZ}, dynamicShared, params, extra);
    if (result == Success)
      s.run(arguments); // as on a device, its errors come with the next call
    return result;
  });
}
