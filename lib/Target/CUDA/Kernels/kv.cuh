//===- kv.cuh - the paged cache of keys and values ------------------------===//
//
// The structs are those of Format/Program.h. A block is one page of one head:
// keys [D][page], then values [page][pitch], in the cache's element.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "elements.cuh"

struct gptc_run_desc {
  int first, count, sequence, position;
};
struct gptc_kv_view {
  char *pool;
  const int *pages; // [sequences][max_pages]
  long long max_pages;
  const gptc_run_desc *runs;
  long long run_count;
};

namespace gptc {

/// Element, layers, heads, head size and page of a cache.
template <class E_, int Layers, int Heads, int D, int Page> struct Cache {
  using E = E_;
  static constexpr int layers = Layers, heads = Heads, head = D, page = Page;
  static constexpr int pitch = (D + 15) / 16 * 16;                  // of values
  static constexpr long long block = (long long)(D + pitch) * Page; // elements

  /// The block of page number `index` (position / page) of a sequence.
  __device__ static E *at(const gptc_kv_view *view, long long sequence,
                          long long index, int kv_head) {
    long long page = view->pages[sequence * view->max_pages + index];
    return reinterpret_cast<E *>(view->pool) +
           (page * Layers * Heads + kv_head) * block;
  }
  template <class Word> __device__ static Word *values(Word *keys) {
    return keys + (long long)D * Page;
  }

  /// Writes channel `column` = head * D + d of a token's keys or values.
  template <bool Keys>
  __device__ static void append(const gptc_kv_view *view, int sequence,
                                int position, int column, float v) {
    int d = column % D, slot = position % Page;
    E *keys = at(view, sequence, position / Page, column / D);
    if (Keys)
      keys[(long long)d * Page + slot] = narrow<E>(v);
    else
      values(keys)[(long long)slot * pitch + d] = narrow<E>(v);
  }
};

} // namespace gptc
