//===- Target.cpp - x86-64 levels and the host ----------------------------===//
//
// Levels and their features are those of the x86-64 psABI, section 3.1.1. The
// host is its highest level with its own cache sizes, a CPU by name its highest
// level tuned for it, so that the code still runs on every CPU of that level.
//
//===----------------------------------------------------------------------===//
#include "gptc/Schedule/Target.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <fmt/format.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;

/// What level n has beyond level n - 1. Also what the runtime checks at open:
/// all that LLVM may use for the level.
static constexpr StringRef levelFeatures[] = {
    "", "sse2", "cx16,sahf,popcnt,sse3,ssse3,sse4.1,sse4.2",
    "avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe",
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl"};
static constexpr int lowest = 1, highest = 4;

static TargetDesc describe(int level) {
  TargetDesc t;
  t.level = level;
  t.name = level == 1 ? "x86-64" : fmt::format("x86-64-v{}", level);
  t.triple = "x86_64-unknown-linux-gnu";
  t.cpu = t.name;
  for (int i = lowest; i <= level; ++i)
    t.requiredFeatures += (i > lowest ? "," : "") + levelFeatures[i].str();
  if (level >= 3) {
    t.fma = t.f16Convert = true;
    t.lanes = 8;
  }
  if (level >= 4) {
    t.lanes = 16;
    t.registers = 32;
    t.permute16 = true;
    // 512-bit vectors are what the kernels are written in; the tuning default
    // of some CPUs would split them.
    t.features = "-prefer-256-bit";
  }
  return t;
}

/// The highest level whose features `has` all has. The first is what every
/// x86-64 CPU has.
static int levelOf(llvm::function_ref<bool(StringRef)> has) {
  for (int level = lowest + 1; level <= highest; ++level)
    for (StringRef feature : llvm::split(levelFeatures[level], ','))
      if (!has(feature))
        return level - 1;
  return highest;
}

static int hostLevel() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return levelOf([&](StringRef feature) { return features.lookup(feature); });
}

/// Of a CPU that LLVM knows by name; 0 if it does not, or if it is no x86-64.
static int namedLevel(StringRef cpu) {
  llvm::SmallVector<StringRef> known, features;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (!llvm::is_contained(known, cpu))
    return 0;
  llvm::X86::getFeaturesForCPU(cpu, features);
  return levelOf(
      [&](StringRef feature) { return llvm::is_contained(features, feature); });
}

std::vector<std::string> gptc::targetNames() {
  std::vector<std::string> names{"native"};
  for (int level = lowest; level <= highest; ++level)
    names.push_back(describe(level).name);
  return names;
}

std::optional<TargetDesc> gptc::lookupTarget(StringRef march,
                                             std::string &error) {
  bool native = march == "native";
  for (int level = lowest; level <= highest; ++level)
    if (TargetDesc t = describe(level); march == t.name)
      return t;
  int level = native ? hostLevel() : namedLevel(march);
  if (!level) {
    std::vector<std::string> known = targetNames();
    llvm::SmallVector<StringRef> cpus;
    llvm::X86::fillValidCPUArchList(cpus, /*Only64Bit=*/true);
    known.insert(known.end(), cpus.begin(), cpus.end());
    StringRef nearest = nearestName(march, known);
    error = fmt::format(
        "unknown -march '{}': expected native, x86-64, x86-64-v2, x86-64-v3, "
        "x86-64-v4 or a CPU by its name, as in znver5{}",
        march.str(),
        nearest.empty() ? ""
                        : fmt::format("; did you mean '{}'?", nearest.str()));
    return std::nullopt;
  }
  TargetDesc t = describe(level);
  if (!native)
    t.tune = march.str();
  if (native) {
    if (long v = sysconf(_SC_LEVEL1_DCACHE_SIZE); v > 0)
      t.l1Bytes = v;
    if (long v = sysconf(_SC_LEVEL2_CACHE_SIZE); v > 0)
      t.l2Bytes = v;
  }
  return t;
}

std::optional<std::vector<TargetDesc>> gptc::lookupTargets(StringRef marches,
                                                           std::string &error) {
  std::vector<TargetDesc> targets;
  for (StringRef march : llvm::split(marches, ',')) {
    auto target = lookupTarget(march, error);
    if (!target)
      return std::nullopt;
    target->march = march.str();
    for (const TargetDesc &other : targets)
      if (other.level == target->level) {
        error = fmt::format("-march: expected every level once, got '{}' and "
                            "'{}', both {}",
                            other.march, march.str(), other.name);
        return std::nullopt;
      }
    targets.push_back(std::move(*target));
  }
  llvm::sort(targets, [](const TargetDesc &a, const TargetDesc &b) {
    return a.level > b.level;
  });
  return targets;
}
