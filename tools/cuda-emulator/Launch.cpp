// Runs a grid: blocks in an order that the seed gives, on two threads unless
// their order could be seen.
#include "Machine.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>

namespace emu {

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end;
  uint64_t value = std::strtoull(text, &end, 10);
  return *end ? otherwise : value;
}

void Launch::run() {
  const uint64_t all = blocks();
  // Of a grid too large to compute, a test may want the ends only.
  const uint64_t ends = setting("GPTC_EMULATOR_BLOCKS", 0);
  const uint64_t count = ends && all / 2 > ends ? 2 * ends : all;
  seed = setting("GPTC_EMULATOR_SEED", 1);
  limit = setting("GPTC_EMULATOR_LIMIT", 4000000000ull);
  stampBase = arena->beginLaunch(all);
  // A permutation of a large grid would be too long a list; its blocks run in
  // runs of 1024.
  std::vector<uint32_t> order(std::min<uint64_t>(count, 1024));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random() % i]);
  // The last run is shorter.
  std::vector<uint32_t> lastOrder;
  for (uint32_t each : order)
    if (each < count - (count - 1) / 1024 * 1024)
      lastOrder.push_back(each);

  std::atomic<uint64_t> next{0}, failed{~0ull};
  std::mutex lock;
  std::unique_ptr<Error> error;
  auto work = [&] {
    auto block = std::make_unique<Block>();
    while (true) {
      uint64_t i = next++;
      if (i >= count || i > failed)
        break;
      bool last = i / 1024 == (count - 1) / 1024;
      uint64_t number = i / 1024 * 1024 + (last ? lastOrder : order)[i % 1024];
      if (number >= ends && count < all)
        number += all - count;
      try {
        block->start(*this, number);
        block->run();
        for (Warp &warp : block->warps)
          block->stats.ops += warp.executed;
      } catch (Error &caught) {
        std::lock_guard<std::mutex> guard(lock);
        if (i < failed) {
          failed = i;
          error = std::make_unique<Error>(std::move(caught));
        }
      }
    }
    std::lock_guard<std::mutex> guard(lock);
    stats.add(block->stats);
  };
  uint64_t threads = setting("GPTC_EMULATOR_THREADS", 2);
  if (code->hasAtomics || count == 1 || threads < 1)
    threads = 1;
  threads = std::min({threads, count, uint64_t(64)});
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
  if (error)
    throw Error(*error);
}

} // namespace emu
