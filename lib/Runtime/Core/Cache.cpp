//===- Cache.cpp - Pages of the KV cache ----------------------------------===//
//
// Paged as in vLLM (Kwon et al., arXiv:2309.06180): each sequence has a table
// of pages, forks share pages by reference count, and a page is copied before
// its first write after a fork. Pages are counted from position 0 of a
// sequence, so the arithmetic of attention does not depend on how a prompt was
// split.
//
// A batch is prepared in two passes: the first gives up the pages behind the
// new starting positions and counts what is needed, and can be undone; the
// second cannot fail.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include <string.h>

namespace gptc::core {

static int64_t pagesFor(const Cache &cache, int64_t positions) {
  return (positions + cache.page - 1) / cache.page;
}

static int32_t *pagesOf(const Cache &cache, int64_t sequence) {
  return cache.table + sequence * cache.maxPages;
}

void resetCache(Cache &cache) {
  // The stack hands out page 0 first.
  for (int64_t i = 0; i < cache.pages; ++i)
    cache.free[i] = static_cast<int32_t>(cache.pages - 1 - i);
  cache.freeCount = cache.pages;
}

static void dropPage(Cache &cache, int32_t page) {
  if (--cache.owners[page] == 0)
    cache.free[cache.freeCount++] = page;
}

/// A page for one owner. Pages that held something are zeroed: what attention
/// masks it multiplies by zero, and infinities of an earlier sequence would
/// survive that.
static int32_t takePage(Cache &cache, bool zeroed) {
  int32_t page = cache.free[--cache.freeCount];
  cache.owners[page] = 1;
  if (page >= cache.clean)
    cache.clean = page + 1;
  else if (zeroed && onDevice())
    clear(*cache.queue, cache.pool + page * cache.pageBytes, cache.pageBytes);
  else if (zeroed)
    memset(cache.pool + page * cache.pageBytes, 0, cache.pageBytes);
  return page;
}

gptc_status prepareRuns(Cache &cache, const gptc_run_desc *runs,
                        int64_t count) {
  const int64_t freeBefore = cache.freeCount;
  for (int64_t r = 0; r < count; ++r) {
    const int32_t *pages = pagesOf(cache, runs[r].sequence);
    int64_t had = pagesFor(cache, cache.lengths[runs[r].sequence]);
    for (int64_t i = pagesFor(cache, runs[r].position); i < had; ++i)
      dropPage(cache, pages[i]);
  }
  int64_t needed = 0;
  for (int64_t r = 0; r < count; ++r) {
    const gptc_run_desc &run = runs[r];
    int64_t kept = pagesFor(cache, run.position);
    needed += pagesFor(cache, int64_t(run.position) + run.count) - kept;
    // The first new position may lie in a page that a fork still shares.
    uint8_t copy = 0;
    if (run.position % cache.page) {
      int32_t last = pagesOf(cache, run.sequence)[kept - 1];
      copy = cache.owners[last] > 1;
      cache.owners[last] -= copy;
    }
    cache.copies[run.sequence] = copy;
    needed += copy;
  }

  if (needed > cache.freeCount) {
    long long available = cache.freeCount;
    for (int64_t r = 0; r < count; ++r) {
      const int32_t *pages = pagesOf(cache, runs[r].sequence);
      int64_t kept = pagesFor(cache, runs[r].position);
      if (cache.copies[runs[r].sequence])
        ++cache.owners[pages[kept - 1]];
      int64_t had = pagesFor(cache, cache.lengths[runs[r].sequence]);
      for (int64_t i = kept; i < had; ++i)
        ++cache.owners[pages[i]];
    }
    cache.freeCount = freeBefore;
    return fail(GPTC_LIMIT,
                "the batch needs %lld more KV pages of %lld positions, and "
                "%lld of the session's %lld are free; shorten sequences or "
                "open the session with more pages",
                static_cast<long long>(needed),
                static_cast<long long>(cache.page), available,
                static_cast<long long>(cache.pages));
  }

  for (int64_t r = 0; r < count; ++r) {
    const gptc_run_desc &run = runs[r];
    int32_t *pages = pagesOf(cache, run.sequence);
    int64_t kept = pagesFor(cache, run.position);
    int64_t end = int64_t(run.position) + run.count;
    if (cache.copies[run.sequence]) {
      int32_t shared = pages[kept - 1];
      int32_t copy = takePage(cache, false);
      char *to = cache.pool + copy * cache.pageBytes;
      const char *from = cache.pool + shared * cache.pageBytes;
      if (onDevice())
        copyWithin(*cache.queue, to, from, cache.pageBytes);
      else
        memcpy(to, from, cache.pageBytes);
      pages[kept - 1] = copy;
    }
    for (int64_t i = kept; i < pagesFor(cache, end); ++i)
      pages[i] = takePage(cache, true);
    cache.lengths[run.sequence] = end;
  }
  return GPTC_OK;
}

gptc_status forkSequence(Cache &cache, int32_t from, int32_t to,
                         int64_t length) {
  const int32_t named[] = {from, to};
  for (int32_t sequence : named)
    if (sequence < 0 || sequence >= cache.sequences)
      return fail(GPTC_OUT_OF_RANGE,
                  "fork: expected a sequence below %lld, got %d",
                  static_cast<long long>(cache.sequences), sequence);
  if (length < 0 || length > cache.lengths[from])
    return fail(GPTC_OUT_OF_RANGE,
                "fork: expected a length of at most %lld, that of sequence "
                "%d, got %lld",
                static_cast<long long>(cache.lengths[from]), from,
                static_cast<long long>(length));
  int64_t kept = pagesFor(cache, length);
  const int32_t *source = pagesOf(cache, from);
  int32_t *pages = pagesOf(cache, to);
  // Owned once more before the old ones go: `to` may share them already.
  for (int64_t i = 0; i < kept; ++i)
    ++cache.owners[source[i]];
  for (int64_t i = 0; i < pagesFor(cache, cache.lengths[to]); ++i)
    dropPage(cache, pages[i]);
  if (from != to)
    memcpy(pages, source, kept * sizeof(int32_t));
  cache.lengths[to] = length;
  return GPTC_OK;
}

} // namespace gptc::core
