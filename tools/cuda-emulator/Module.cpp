// Loads a module: places variables, builds functions.
#include "Module.h"

#include <fmt/format.h>

namespace emu {

// The limit of parameters since PTX 8.1 is larger on sm_70 and later.
static constexpr uint64_t maxParamBytes = 32764;
// Between shared variables, so that an index past the end of one is found.
static constexpr uint32_t sharedGap = 128;

// "model.cu-1f00f5c9b3ad2a4e": a name for what a text is, in records that many
// processes write. FNV-1a of 64 bits.
static std::string labelOf(const Source &source) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : source.text)
    hash = (hash ^ c) * 0x100000001b3;
  std::string_view file;
  for (std::string_view each : source.files)
    if (each.ends_with(".cu"))
      file = each.substr(each.rfind('/') + 1);
  return fmt::format("{}-{:016x}", file.empty() ? "ptx" : file, hash);
}

Module::Module(Image image, Arena &arena, int deviceSm) : arena(&arena) {
  source = parse(std::move(image.ptx));
  label = labelOf(*source);
  if (source->target > deviceSm)
    throw Error(NoBinaryForGpu,
                fmt::format("expected a module for sm_{} or older (the device "
                            "that GPTC_EMULATOR_SM chooses), got sm_{}",
                            deviceSm, source->target));
  try {
    placeGlobals();
    placeShared();
    build(image);
  } catch (...) {
    for (uint64_t address : allocations)
      arena.release(address);
    throw;
  }
}

Module::~Module() {
  for (uint64_t address : allocations)
    arena->release(address);
}

void Module::placeGlobals() {
  std::vector<Variable *> all;
  for (auto &variable : source->variables)
    if (variable->space != Space::Shared)
      all.push_back(variable.get());
  for (auto &function : source->functions)
    for (auto &variable : function->locals)
      if (variable->space == Space::Global || variable->space == Space::Const)
        all.push_back(variable.get());
  for (Variable *variable : all) {
    if (variable->isExtern)
      throw Error(InvalidPtx,
                  fmt::format("expected a definition of {}: modules "
                              "are not linked",
                              variable->name));
    variable->address =
        arena->allocate(std::max<uint64_t>(variable->size, 1), true);
    if (!variable->address)
      throw Error(OutOfMemory, fmt::format("no room for {} bytes of {}",
                                           variable->size, variable->name));
    allocations.push_back(variable->address);
    std::copy(variable->init.begin(), variable->init.end(),
              arena->host(variable->address));
  }
  for (Variable *variable : all)
    for (const Relocation &relocation : variable->relocations) {
      const Variable *to = source->variable(relocation.symbol);
      if (!to || to->space == Space::Shared)
        throw Error(InvalidPtx,
                    fmt::format("expected the address of a variable in the "
                                "value of {}, got {}",
                                variable->name, relocation.symbol));
      uint64_t value = to->address + relocation.addend;
      std::memcpy(arena->host(variable->address) + relocation.offset, &value,
                  8);
    }
}

// Shared variables of the module and of its functions lie first, then those of
// each kernel; extern ones begin where the largest kernel's end.
void Module::placeShared() {
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
  auto place = [&](Variable &variable, uint32_t &end, Ranges &ranges) {
    if (variable.space != Space::Shared || variable.isExtern)
      return;
    if (variable.size > 1u << 20 || end > 1u << 24)
      throw Error(InvalidPtx, fmt::format("expected at most 1 MiB of shared "
                                          "memory for {}",
                                          variable.name));
    uint32_t align = std::max(variable.align, 16u);
    uint32_t at = (end + align - 1) / align * align;
    variable.address = at;
    end = at + variable.size;
    ranges.push_back({at, end});
    end = (end + sharedGap + 127) / 128 * 128;
  };
  uint32_t common = 0;
  for (auto &variable : source->variables)
    place(*variable, common, sharedByAll);
  for (auto &function : source->functions)
    if (!function->isEntry)
      for (auto &variable : function->locals)
        place(*variable, common, sharedByAll);
  dynamicAt = common;
  for (auto &function : source->functions)
    if (function->isEntry) {
      uint32_t end = common;
      Ranges &ranges = sharedByKernel[function.get()];
      ranges = sharedByAll;
      for (auto &variable : function->locals)
        place(*variable, end, ranges);
      dynamicAt = std::max(dynamicAt, end);
    }
  for (auto &variable : source->variables)
    if (variable->space == Space::Shared && variable->isExtern)
      variable->address = dynamicAt;
}

void Module::build(const Image &image) {
  std::map<std::string_view, Code *> byName;
  for (auto &function : source->functions) {
    if (!function->hasBody)
      continue;
    auto code = std::make_unique<Code>();
    code->function = function.get();
    byName[function->name] = code.get();
    codes.push_back(std::move(code));
  }
  std::function<const Code *(std::string_view)> codeOf =
      [&](std::string_view name) -> const Code * {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : found->second;
  };
  std::vector<Builder> builders;
  for (auto &code : codes)
    builders.emplace_back(*source, const_cast<Function &>(*code->function),
                          *code, pool, codeOf);
  for (Builder &builder : builders)
    builder.layOutLocals();
  // Parameters of kernels lie as in the buffer that a launch gets.
  for (auto &code : codes)
    if (code->function->isEntry)
      describe(const_cast<Function &>(*code->function), *code);
  for (Builder &builder : builders)
    builder.run();
  for (auto &kernel : kernels) {
    if (auto found = image.registers.find(std::string(kernel->function->name));
        found != image.registers.end())
      kernel->registers = found->second;
    std::vector<const Code *> path;
    kernel->localStride = stackOf(*kernel->code, path);
    if (kernel->code->hasCalls)
      for (auto &code : codes)
        const_cast<Code *>(kernel->code)->hasAtomics |= code->hasAtomics;
  }
}

// Bytes of local memory that a function and what it calls need; recursion gets
// 16 KiB, as there is no telling.
uint32_t Module::stackOf(const Code &code, std::vector<const Code *> &path) {
  if (std::find(path.begin(), path.end(), &code) != path.end())
    return 16 << 10;
  if (auto found = stacks.find(&code); found != stacks.end())
    return found->second;
  path.push_back(&code);
  uint32_t deepest = 0;
  for (const Op &op : code.ops)
    if (op.callee)
      deepest = std::max(deepest, stackOf(*op.callee, path));
  path.pop_back();
  uint32_t bytes = (code.localBytes + 15) / 16 * 16 + deepest;
  return stacks[&code] = std::min(bytes, 1u << 24);
}

void Module::describe(Function &function, const Code &code) {
  auto kernel = std::make_unique<Kernel>();
  kernel->module = this;
  kernel->function = &function;
  kernel->code = &code;
  uint64_t at = 0;
  for (auto &param : function.params) {
    at = (at + param->align - 1) / param->align * param->align;
    param->address = at;
    kernel->paramOffsets.push_back(at);
    kernel->paramSizes.push_back(param->size);
    at += param->size;
  }
  if (at > maxParamBytes)
    throw Error(InvalidPtx,
                fmt::format("kernel {}: expected at most {} bytes of "
                            "parameters, got {}",
                            function.name, maxParamBytes, at));
  kernel->paramBytes = at;
  kernel->sharedVariables = sharedByKernel[&function];
  kernel->dynamicAt = dynamicAt;
  // What counts: the kernel's own variables, and those of the module.
  uint64_t bytes = 0;
  auto count = [&](const Variable &variable) {
    if (variable.space == Space::Shared && !variable.isExtern)
      bytes = (bytes + variable.align - 1) / variable.align * variable.align +
              variable.size;
  };
  for (auto &variable : source->variables)
    count(*variable);
  for (auto &variable : function.locals)
    count(*variable);
  kernel->staticShared = bytes;
  kernels.push_back(std::move(kernel));
}

Kernel *Module::kernel(std::string_view name) {
  for (auto &kernel : kernels)
    if (kernel->function->name == name)
      return kernel.get();
  return nullptr;
}

} // namespace emu
