//===- Target.cpp - x86-64 levels and the host ----------------------------===//
//
// Levels are those of the x86-64 psABI (v2 SSE4.2, v3 AVX2+FMA+F16C, v4
// AVX-512 F/BW/CD/DQ/VL). The host is its highest level with its own cache
// sizes, so that "native" code still runs on every CPU of that level.
//
//===----------------------------------------------------------------------===//
#include "gptc/Schedule/Target.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <fmt/format.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;

static TargetDesc level(int n) {
  TargetDesc t;
  t.name = fmt::format("x86-64-v{}", n);
  t.triple = "x86_64-unknown-linux-gnu";
  t.cpu = t.name;
  if (n == 2) {
    t.requiredFeatures = "ssse3,sse4.1,sse4.2,popcnt";
    return t;
  }
  t.fma = t.f16Convert = true;
  t.lanes = 8;
  t.requiredFeatures = "avx2,fma,f16c,bmi2";
  if (n == 3)
    return t;
  t.lanes = 16;
  t.registers = 32;
  t.permute16 = true;
  // 512-bit vectors are what the kernels are written in; the tuning default of
  // some CPUs would split them.
  t.features = "-prefer-256-bit";
  t.requiredFeatures = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
  return t;
}

static int hostLevel() {
  llvm::StringMap<bool> f = llvm::sys::getHostCPUFeatures();
  auto all = [&](std::initializer_list<const char *> names) {
    for (const char *n : names)
      if (!f.lookup(n))
        return false;
    return true;
  };
  if (!all({"avx2", "fma", "f16c", "bmi2"}))
    return 2;
  return all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? 4
                                                                          : 3;
}

std::vector<std::string> gptc::targetNames() {
  return {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
}

std::optional<TargetDesc> gptc::lookupTarget(StringRef march,
                                             std::string &error) {
  int n = 0;
  if (march == "native")
    n = hostLevel();
  else if (march.size() == 9 && march.starts_with("x86-64-v") &&
           march[8] >= '2' && march[8] <= '4')
    n = march[8] - '0';
  if (!n) {
    std::vector<std::string> known = targetNames();
    StringRef nearest = nearestName(march, known);
    error = fmt::format(
        "unknown -march '{}': expected native, x86-64-v2, x86-64-v3 or "
        "x86-64-v4{}",
        march.str(),
        nearest.empty() ? ""
                        : fmt::format("; did you mean '{}'?", nearest.str()));
    return std::nullopt;
  }
  TargetDesc t = level(n);
  if (march == "native") {
    if (long v = sysconf(_SC_LEVEL1_DCACHE_SIZE); v > 0)
      t.l1Bytes = v;
    if (long v = sysconf(_SC_LEVEL2_CACHE_SIZE); v > 0)
      t.l2Bytes = v;
  }
  return t;
}
