// A module on the device: its variables in device memory and its functions as
// ops.
#ifndef GPTC_CUDA_EMULATOR_MODULE_H
#define GPTC_CUDA_EMULATOR_MODULE_H

#include "Builder.h"

namespace emu {

struct Module;

struct Kernel {
  Module *module = nullptr;
  Function *function = nullptr;
  const Code *code = nullptr;
  std::vector<uint64_t> paramOffsets, paramSizes;
  uint64_t paramBytes = 0;
  std::vector<std::pair<uint32_t, uint32_t>> sharedVariables; // no dynamic
  uint32_t staticShared = 0; // bytes that count against the limits
  uint32_t registers = 0;    // of a thread; 0: not known
  uint32_t dynamicAt = 0;
  uint32_t localStride = 0;
  uint32_t maxDynamicShared = 0; // cuFuncSetAttribute
  int preferredCarveout = -1;
};

// What cuModuleLoadData gets: PTX, or a fatbin that holds it.
struct Image {
  std::string ptx;
  // Of each kernel, by the fatbin's machine code for this device: registers of
  // a thread. Empty if it has none.
  std::map<std::string, uint32_t> registers;
};

struct Module {
  std::unique_ptr<Source> source;
  std::string label; // the file that it was compiled from, and which text
  Arena *arena = nullptr;
  Pool pool;
  std::vector<std::unique_ptr<Code>> codes;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<uint64_t> allocations;

  Module(Image image, Arena &arena, int deviceSm);
  ~Module();
  Kernel *kernel(std::string_view name);

private:
  void placeGlobals();
  void placeShared();
  void build(const Image &image);
  void describe(Function &function, const Code &code);
  uint32_t stackOf(const Code &code, std::vector<const Code *> &path);
  std::map<const Code *, uint32_t> stacks;
  uint32_t dynamicAt = 0; // where extern shared variables begin
  std::vector<std::pair<uint32_t, uint32_t>> sharedByAll;
  std::map<const Function *, std::vector<std::pair<uint32_t, uint32_t>>>
      sharedByKernel;
};

// Throws where there is no PTX for this device.
Image imageOf(const void *image, int deviceSm);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_MODULE_H
