// Limits of the device, and launches checked against them.
#include "Device.h"

#include <fmt/format.h>

namespace emu {

const Device &device() {
  static const Device chosen = [] {
    Device made;
    made.sm = setting("GPTC_EMULATOR_SM", 80);
    bool large = made.sm == 80 || made.sm == 90;
    made.sharedOptIn = (made.sm == 80 ? 163 : made.sm == 90 ? 227 : 99) << 10;
    made.sharedPerMultiprocessor = made.sharedOptIn + 1024;
    made.threadsPerMultiprocessor = large ? 2048 : 1536;
    made.blocksPerMultiprocessor = large ? 32 : made.sm == 86 ? 16 : 24;
    made.name = fmt::format("gptc emulator sm_{}", made.sm);
    return made;
  }();
  return chosen;
}

bool deviceAttribute(int attribute, int &value) {
  const Device &d = device();
  switch (attribute) {
  case 1:
    value = 1024;
    break; // threads per block
  case 2:
  case 3:
    value = 1024;
    break; // block dim x, y
  case 4:
    value = 64;
    break; // z
  case 5:
    value = 2147483647;
    break; // grid dim x
  case 6:
  case 7:
    value = 65535;
    break; // y, z
  case 8:
    value = d.sharedPerBlock;
    break;
  case 9:
    value = 65536;
    break; // constant memory
  case 10:
    value = 32;
    break; // warp size
  case 11:
    value = 2147483647;
    break; // pitch
  case 12:
    value = 65536;
    break; // registers per block
  case 13:
    value = 1410000;
    break; // kHz
  case 14:
    value = 512;
    break; // texture alignment
  case 15:
    value = 1;
    break; // copies beside kernels
  case 16:
    value = d.multiprocessors;
    break;
  case 17:
  case 18:
    value = 0;
    break; // timeout, integrated
  case 19:
    value = 1;
    break; // maps host memory
  case 20:
    value = 0;
    break; // compute mode: default
  case 31:
    value = 1;
    break; // concurrent kernels
  case 32:
    value = 0;
    break; // ECC
  case 33:
  case 34:
  case 35:
    value = 0;
    break; // PCI, TCC
  case 36:
    value = 1215000;
    break; // memory kHz
  case 37:
    value = 5120;
    break; // bus bits
  case 38:
    value = 40 << 20;
    break; // L2
  case 39:
    value = d.threadsPerMultiprocessor;
    break;
  case 40:
    value = 1;
    break; // copy engines
  case 41:
    value = 1;
    break; // unified addressing
  case 50:
    value = 0;
    break; // PCI domain
  case 75:
    value = d.sm / 10;
    break;
  case 76:
    value = d.sm % 10;
    break;
  case 78:
    value = 1;
    break; // stream priorities
  case 79:
  case 80:
    value = 1;
    break; // L1 caches
  case 81:
    value = d.sharedPerMultiprocessor;
    break;
  case 82:
    value = 65536;
    break; // registers per SM
  case 83:
  case 84:
    value = 0;
    break; // managed memory, boards
  case 95:
    value = 0;
    break; // cooperative launch
  case 97:
    value = d.sharedOptIn;
    break;
  case 99:
    value = 0;
    break; // registered pointer use
  case 106:
    value = d.blocksPerMultiprocessor;
    break;
  case 111:
    value = 1024;
    break; // reserved shared memory
  case 115:
    value = 0;
    break; // memory pools
  default:
    value = 0;
    return attribute > 0 && attribute < 150;
  }
  return true;
}

// A warp gets registers by the 256; a block's warps are spread over the four
// parts of a multiprocessor.
static constexpr uint32_t registersPerBlock = 65536;
static uint32_t registersOfBlock(const Kernel &kernel, uint32_t threads) {
  uint32_t warp = (kernel.registers * 32 + 255) / 256 * 256;
  return (threads + 127) / 128 * 4 * warp;
}

Result checkLaunch(const Kernel &kernel, const uint32_t (&grid)[3],
                   const uint32_t (&block)[3], uint32_t dynamicShared) {
  const Function &function = *kernel.function;
  auto refuse = [&](Result result, const std::string &text) {
    report(fmt::format("launch of {}: {}", function.name, text));
    return result;
  };
  static constexpr uint32_t gridLimits[] = {2147483647, 65535, 65535};
  static constexpr uint32_t blockLimits[] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || grid[i] > gridLimits[i])
      return refuse(InvalidValue,
                    fmt::format("expected 1 to {} blocks in {}, got {}",
                                gridLimits[i], "xyz"[i], grid[i]));
    if (block[i] == 0 || block[i] > blockLimits[i])
      return refuse(InvalidValue,
                    fmt::format("expected 1 to {} threads in {}, got {}",
                                blockLimits[i], "xyz"[i], block[i]));
  }
  uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
  if (threads > 1024)
    return refuse(InvalidValue, fmt::format("expected at most 1024 threads a "
                                            "block, got {}",
                                            threads));
  uint64_t bound = uint64_t(function.maxThreads[0]) * function.maxThreads[1] *
                   function.maxThreads[2];
  if (bound && threads > bound)
    return refuse(LaunchOutOfResources,
                  fmt::format("expected at most {} threads a block, as its "
                              "launch bounds say, got {}",
                              bound, threads));
  const auto &required = function.requiredThreads;
  if (required[0] && (block[0] != required[0] || block[1] != required[1] ||
                      block[2] != required[2]))
    return refuse(
        InvalidValue,
        fmt::format("expected blocks of {}x{}x{} threads, as .reqntid "
                    "says, got {}x{}x{}",
                    required[0], required[1], required[2], block[0], block[1],
                    block[2]));
  if (uint32_t registers = registersOfBlock(kernel, threads);
      registers > registersPerBlock)
    return refuse(LaunchOutOfResources,
                  fmt::format("expected at most {} registers a block, got {} "
                              "threads of {}: {} with the rounding of warps",
                              registersPerBlock, threads, kernel.registers,
                              registers));
  uint64_t fixed = kernel.staticShared, all = fixed + dynamicShared;
  uint64_t allowed = kernel.maxDynamicShared ? fixed + kernel.maxDynamicShared
                                             : device().sharedPerBlock;
  allowed = std::max<uint64_t>(allowed, device().sharedPerBlock);
  allowed = std::min<uint64_t>(allowed, device().sharedOptIn);
  if (all > allowed)
    return refuse(InvalidValue,
                  fmt::format("expected at most {} bytes of shared memory a "
                              "block (cuFuncSetAttribute raises the limit up "
                              "to {}), got {} static and {} dynamic",
                              allowed, device().sharedOptIn, fixed,
                              dynamicShared));
  return Success;
}

int residentBlocks(const Kernel &kernel, int threads, size_t dynamicShared) {
  const Device &d = device();
  int warps = (threads + 31) / 32;
  int count = std::min(d.blocksPerMultiprocessor,
                       d.threadsPerMultiprocessor / 32 / std::max(warps, 1));
  if (uint32_t registers = registersOfBlock(kernel, threads))
    count = std::min<uint32_t>(count, registersPerBlock / registers);
  uint64_t shared = kernel.staticShared + dynamicShared + 1024;
  return std::min<uint64_t>(count, d.sharedPerMultiprocessor / shared);
}

} // namespace emu
