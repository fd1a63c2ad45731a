//===- Progress.cpp - A line that says how far long work is ---------------===//

#include "Progress.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace gptc;
using Clock = std::chrono::steady_clock;

static constexpr uint64_t least = uint64_t(16) << 20;
static constexpr auto interval = std::chrono::milliseconds(100);

Progress::Progress(llvm::StringRef what, uint64_t total)
    : what(what), total(total),
      shown(total >= least && llvm::errs().is_displayed()) {
  if (shown)
    show();
}

/// Spaces over the line, since not every terminal knows how to erase one.
Progress::~Progress() {
  if (shown)
    llvm::errs() << '\r' << std::string(width, ' ') << '\r';
}

void Progress::advance(uint64_t bytes) {
  done += bytes;
  if (shown && Clock::now() - last >= interval)
    show();
}

void Progress::show() {
  last = Clock::now();
  std::string line = fmt::format("gptc: {}: {:.0f} % of {} MB", what.str(),
                                 100.0 * static_cast<double>(done) /
                                     static_cast<double>(total),
                                 total / 1'000'000);
  width = std::max(width, line.size());
  llvm::errs() << '\r' << line;
  llvm::errs().flush();
}
