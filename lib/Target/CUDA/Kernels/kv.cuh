//===- kv.cuh - the paged cache of keys and values ------------------------===//
//
// The structs are those of Format/Program.h. A block is one page of one head:
// keys [D][page], then values [page][pitch], f32.
//
//===----------------------------------------------------------------------===//
#pragma once

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

/// Layers, heads, head size and page of a cache.
template <int Layers, int Heads, int D, int Page> struct Cache {
  static constexpr int layers = Layers, heads = Heads, head = D, page = Page;
  static constexpr int pitch = (D + 15) / 16 * 16;                  // of values
  static constexpr long long block = (long long)(D + pitch) * Page; // elements

  /// The block of page number `index` (position / page) of a sequence.
  __device__ static float *at(const gptc_kv_view *view, long long sequence,
                              long long index, int kv_head) {
    long long page = view->pages[sequence * view->max_pages + index];
    return reinterpret_cast<float *>(view->pool) +
           (page * Layers * Heads + kv_head) * block;
  }
  __device__ static float *values(float *keys) {
    return keys + (long long)D * Page;
  }

  /// Writes channel `column` = head * D + d of a token's keys or values.
  template <bool Keys>
  __device__ static void append(const gptc_kv_view *view, int sequence,
                                int position, int column, float v) {
    int d = column % D, slot = position % Page;
    float *keys = at(view, sequence, position / Page, column / D);
    if (Keys)
      keys[(long long)d * Page + slot] = v;
    else
      values(keys)[(long long)slot * pitch + d] = v;
  }
};

} // namespace gptc
