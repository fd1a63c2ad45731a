//===- CpuFeatures.cpp - What this CPU and its kernel offer ---------------===//
//
// Names are LLVM's. A feature counts only if the operating system saves the
// registers that it needs (XCR0). Bits: Intel SDM vol. 2A, CPUID; AMD APM
// vol. 3, appendix E. A name that is not in the table counts as missing: the
// package was made by a compiler that knows more than its own runtime.
//
//===----------------------------------------------------------------------===//

#include "Core.h"
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

enum Register : uint8_t { A, B, C, D };
/// Registers that the operating system must save.
enum State : uint32_t { None = 0, Avx = 0x6, Avx512 = 0xe6, Amx = 0x60000 };

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  State state;
};

const Feature table[] = {
    {"cx8", 1, 0, D, 8, None},
    {"cmov", 1, 0, D, 15, None},
    {"mmx", 1, 0, D, 23, None},
    {"fxsr", 1, 0, D, 24, None},
    {"sse", 1, 0, D, 25, None},
    {"sse2", 1, 0, D, 26, None},
    {"sse3", 1, 0, C, 0, None},
    {"pclmul", 1, 0, C, 1, None},
    {"ssse3", 1, 0, C, 9, None},
    {"fma", 1, 0, C, 12, Avx},
    {"cx16", 1, 0, C, 13, None},
    {"sse4.1", 1, 0, C, 19, None},
    {"sse4.2", 1, 0, C, 20, None},
    {"movbe", 1, 0, C, 22, None},
    {"popcnt", 1, 0, C, 23, None},
    {"aes", 1, 0, C, 25, None},
    {"xsave", 1, 0, C, 26, None},
    {"avx", 1, 0, C, 28, Avx},
    {"f16c", 1, 0, C, 29, Avx},
    {"bmi", 7, 0, B, 3, None},
    {"avx2", 7, 0, B, 5, Avx},
    {"bmi2", 7, 0, B, 8, None},
    {"avx512f", 7, 0, B, 16, Avx512},
    {"avx512dq", 7, 0, B, 17, Avx512},
    {"avx512ifma", 7, 0, B, 21, Avx512},
    {"avx512cd", 7, 0, B, 28, Avx512},
    {"avx512bw", 7, 0, B, 30, Avx512},
    {"avx512vl", 7, 0, B, 31, Avx512},
    {"avx512vbmi", 7, 0, C, 1, Avx512},
    {"avx512vbmi2", 7, 0, C, 6, Avx512},
    {"gfni", 7, 0, C, 8, None},
    {"vaes", 7, 0, C, 9, Avx},
    {"vpclmulqdq", 7, 0, C, 10, Avx},
    {"avx512vnni", 7, 0, C, 11, Avx512},
    {"avx512bitalg", 7, 0, C, 12, Avx512},
    {"avx512vpopcntdq", 7, 0, C, 14, Avx512},
    {"avx512vp2intersect", 7, 0, D, 8, Avx512},
    {"amx-bf16", 7, 0, D, 22, Amx},
    {"avx512fp16", 7, 0, D, 23, Avx512},
    {"amx-tile", 7, 0, D, 24, Amx},
    {"amx-int8", 7, 0, D, 25, Amx},
    {"avxvnni", 7, 1, A, 4, Avx},
    {"avx512bf16", 7, 1, A, 5, Avx512},
    {"amx-fp16", 7, 1, A, 21, Amx},
    {"avxifma", 7, 1, A, 23, Avx},
    {"avxvnniint8", 7, 1, D, 4, Avx},
    {"avxneconvert", 7, 1, D, 5, Avx},
    {"avxvnniint16", 7, 1, D, 10, Avx},
    {"sahf", 0x80000001, 0, C, 0, None},
    {"lzcnt", 0x80000001, 0, C, 5, None},
};

uint64_t savedState() {
  uint32_t a, b, c, d;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
    return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool hasFeature(const char *name, size_t length) {
  for (const Feature &feature : table) {
    if (strlen(feature.name) != length || memcmp(feature.name, name, length))
      continue;
    uint32_t regs[4];
    return __get_cpuid_count(feature.leaf, feature.subleaf, &regs[A], &regs[B],
                             &regs[C], &regs[D]) &&
           (regs[feature.reg] >> feature.bit & 1) &&
           (savedState() & feature.state) == feature.state;
  }
  return false;
}

} // namespace
#else
/// Only the baseline of other targets is generated so far.
static bool hasFeature(const char *, size_t) { return false; }
#endif

namespace gptc::core {

/// The first of the program's features that is missing, with its length.
static const char *missingFeature(const gptc_program &program, size_t &length) {
  for (const char *at = program.cpu_features; *at; at += *at == ',') {
    length = strcspn(at, ",");
    if (length && !hasFeature(at, length))
      return at;
    at += length;
  }
  return nullptr;
}

const gptc_program &chosenProgram() {
  if (gptc_the_programs.count == 1)
    return *gptc_the_programs.programs[0];
  // CPUID is slow in a virtual machine. Every thread comes to the same choice.
  static const gptc_program *chosen;
  if (const gptc_program *known = __atomic_load_n(&chosen, __ATOMIC_RELAXED))
    return *known;
  const gptc_programs &all = gptc_the_programs;
  int64_t last = all.count - 1, i = 0;
  size_t length;
  while (i < last && missingFeature(*all.programs[i], length))
    ++i;
  __atomic_store_n(&chosen, all.programs[i], __ATOMIC_RELAXED);
  return *all.programs[i];
}

gptc_status checkCpu(const gptc_program &program) {
  size_t length;
  const char *missing = missingFeature(program, length);
  if (!missing)
    return GPTC_OK;
  return fail(GPTC_UNSUPPORTED_CPU,
              "this CPU or its operating system lacks %.*s, which the package "
              "%.100s was compiled for (%.100s%s); compile for an older level",
              static_cast<int>(length < 64 ? length : 64), missing,
              program.info->name, program.info->target,
              gptc_the_programs.count > 1 ? ", its lowest level" : "");
}

} // namespace gptc::core
