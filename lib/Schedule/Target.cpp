//===- Target.cpp - x86-64 levels and the host ----------------------------===//
//
// Levels and their features are those of the x86-64 psABI, section 3.1.1. The
// host is its highest level with its own cache sizes, a CPU by name its highest
// level tuned for it. Both add vpdpbusd where the CPU has it, and vdpbf16ps for
// bf16; else the code runs on every CPU of the level.
//
//===----------------------------------------------------------------------===//
#include "gptc/Schedule/Target.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
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
  t.pairBroadcast = level == 2;
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

/// Features of the host, or of a CPU that LLVM knows by name; none if it does
/// not, or if it is no x86-64.
static llvm::StringSet<> featuresOf(StringRef march) {
  llvm::StringSet<> found;
  if (march == "native") {
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      if (feature.second)
        found.insert(feature.first());
    return found;
  }
  llvm::SmallVector<StringRef> known, features;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (llvm::is_contained(known, march))
    llvm::X86::getFeaturesForCPU(march, features);
  for (StringRef feature : features)
    found.insert(feature);
  return found;
}

/// A feature beyond the level that code of the target uses.
static void require(TargetDesc &t, const std::string &feature) {
  t.features += ",+" + feature;
  t.requiredFeatures += "," + feature;
}

std::vector<std::string> gptc::targetNames() {
  std::vector<std::string> names{"native"};
  for (int level = lowest; level <= highest; ++level)
    names.push_back(describe(level).name);
  return names;
}

std::optional<TargetDesc> gptc::lookupTarget(StringRef march,
                                             std::string &error,
                                             InputPrecision precision) {
  bool native = march == "native";
  for (int level = lowest; level <= highest; ++level)
    if (TargetDesc t = describe(level); march == t.name)
      return t;
  llvm::StringSet<> features = featuresOf(march);
  if (features.empty()) {
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
  TargetDesc t = describe(levelOf(
      [&](StringRef feature) { return features.contains(feature); }));
  if (precision == InputPrecision::BF16 && t.level == highest &&
      features.contains("avx512bf16") &&
      // An Intel Emerald Rapids has a quarter of the rate of its multiply-adds
      // (measured: 0.79 ns against 0.19). Zen's is expected to have the same,
      // and was not measured.
      (native ? llvm::sys::getHostCPUName() : march).starts_with("znver")) {
    require(t, "avx512bf16");
    t.bf16Dot = true;
  }
  if (t.level == highest && features.contains("avx512vnni")) {
    require(t, "avx512vnni");
    t.byteDot = true;
  }
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

std::optional<std::vector<TargetDesc>>
gptc::lookupTargets(StringRef marches, std::string &error,
                    InputPrecision precision) {
  std::vector<TargetDesc> targets;
  for (StringRef march : llvm::split(marches, ',')) {
    auto target = lookupTarget(march, error, precision);
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
