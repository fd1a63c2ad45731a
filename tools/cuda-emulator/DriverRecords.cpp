// What was launched and what it cost, for GPTC_EMULATOR_COVERAGE and
// GPTC_EMULATOR_STATS.
#include "Driver.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace emu {

void KernelStats::add(const KernelStats &other) {
  launches += other.launches;
  ops += other.ops;
  sharedCycles += other.sharedCycles;
  matrixCycles += other.matrixCycles;
  copyCycles += other.copyCycles;
  requests += other.requests;
  sectors += other.sectors;
  copyRequests += other.copyRequests;
  copySectors += other.copySectors;
}

// One write, so that processes that end at once do not mix their lines.
static void writeCoverage() {
  std::string text;
  for (auto &[kernel, launches] : state().coverage)
    text += fmt::format("{} {} {}\n", kernel.first, kernel.second, launches);
  state().coverage.clear();
  const char *path = std::getenv("GPTC_EMULATOR_COVERAGE");
  std::FILE *file =
      path && *path && !text.empty() ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  std::setvbuf(file, nullptr, _IOFBF, text.size() + 1);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

static void reportStats() {
  for (auto &[name, s] : state().stats)
    report(fmt::format("{}: {} launches, {} warp instructions; cycles lost to "
                       "bank conflicts: {} of ld and st, {} of matrix ops, {} "
                       "of cp.async; global memory: {} sectors in {} ld and "
                       "st, {} in {} cp.async",
                       name, s.launches, s.ops, s.sharedCycles, s.matrixCycles,
                       s.copyCycles, s.sectors, s.requests, s.copySectors,
                       s.copyRequests));
  state().stats.clear();
}

void endRecords() {
  writeCoverage();
  if (setting("GPTC_EMULATOR_STATS", 0))
    reportStats();
}

} // namespace emu
