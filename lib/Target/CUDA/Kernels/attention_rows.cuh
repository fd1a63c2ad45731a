//===- attention_rows.cuh - which rows meet which keys --------------------===//
//
// Rows are (token, query head of a KV head). A tile T (attention.cuh,
// attention_mma.cuh) computes rows of one sequence against its keys:
//   T::run(a, keys, rows, q, out, shared)
//
// A description A says what becomes of a score: groups, window (0: none),
// causal, scale, and
//   MaskRow mask_row(row), float score(s, query_head, query, key, MaskRow)
// where query is the row's own position among the keys.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "common.cuh"
#include "kv.cuh"

namespace gptc {

/// Keys [D][page] and values [page][pitch] of a sequence's pages; a key block
/// does not cross a page. seek() goes to the block that begins with a key.
template <class C> struct PagedKeys {
  using E = typename C::E;
  static constexpr bool by_channel = true; // keys of a channel are neighbours
  const gptc_kv_view *view;
  long long sequence;
  int head;
  const E *k, *v;

  __device__ void seek(long long base) {
    const E *block = C::at(view, sequence, base / C::page, head);
    k = block + base % C::page;
    v = C::values(block) + base % C::page * C::pitch;
  }
  /// Channel d of key and value j of the block.
  __device__ const E *key_at(int j, int d) const {
    return k + (long long)d * C::page + j;
  }
  __device__ const E *value_at(int j, int d) const {
    return v + (long long)j * C::pitch + d;
  }
  __device__ float key(int j, int d) const { return widen(*key_at(j, d)); }
  __device__ float value(int j, int d) const { return widen(*value_at(j, d)); }
};

/// Keys and values [Sk][D].
template <int D> struct DenseKeys {
  using E = float;
  static constexpr bool by_channel = false;
  const float *all_keys, *all_values;
  const float *k, *v;

  __device__ void seek(long long base) {
    k = all_keys + base * D;
    v = all_values + base * D;
  }
  __device__ float key(int j, int d) const { return k[(long long)j * D + d]; }
  __device__ float value(int j, int d) const { return v[(long long)j * D + d]; }
};

/// Rows of one run of a ragged batch; q and out, of any element, are
/// [T][heads][groups][D].
template <class A> struct PagedRows {
  int count;       // rows of the tile
  long long row0;  // the first, counted token * groups + g through the batch
  long long shift; // position of a token less its number in the batch
  int kv_head, heads;

  __device__ long long token(int r) const { return (row0 + r) / A::groups; }
  __device__ int g(int r) const { return int((row0 + r) % A::groups); }
  /// How many keys the row sees, its position among them, its query head, its
  /// place among the rows of q and out, its mask.
  __device__ long long visible(int r) const { return token(r) + shift + 1; }
  __device__ long long query(int r) const { return token(r) + shift; }
  __device__ int head(int r) const { return kv_head * A::groups + g(r); }
  __device__ long long place(int r) const {
    return (token(r) * heads + kv_head) * A::groups + g(r);
  }
  __device__ typename A::MaskRow mask_row(int) const { return {}; }
};

/// Rows of dense queries [H][Sq][D] of one KV head, batch dimensions counted as
/// heads; row r is token * groups + g.
template <class A> struct DenseRows {
  const A &a;
  int count;
  long long row0, sq, sk, kv_head;

  __device__ long long token(int r) const { return (row0 + r) / A::groups; }
  __device__ long long visible(int r) const {
    return A::causal ? max(token(r) + sk - sq + 1, 0ll) : sk;
  }
  __device__ long long query(int r) const { return token(r) + sk - sq; }
  __device__ long long head_row(int r) const {
    return kv_head * A::groups + (row0 + r) % A::groups;
  }
  __device__ int head(int r) const { return int(head_row(r) % A::heads); }
  __device__ long long place(int r) const {
    return head_row(r) * sq + token(r);
  }
  __device__ typename A::MaskRow mask_row(int r) const {
    return a.mask_row(place(r));
  }
};

/// Whether a row that sees `visible` keys sees this one.
template <class A> __device__ bool sees(long long visible, long long key) {
  return key < visible && (A::window == 0 || key >= visible - A::window);
}

/// The first key block that any row sees anything of, when the first row sees
/// `fewest` keys.
template <class A>
__device__ long long first_block(long long fewest, int block) {
  return A::window > 0 && fewest > A::window ? (fewest - A::window) / block : 0;
}

/// blockIdx.x: T::R rows of the packed batch, which may belong to several runs;
/// blockIdx.y: KV head.
template <class T, class C, class A, class Q, class O>
__device__ void attention_paged(const A &a, const Q *q,
                                const gptc_kv_view *view, O *out,
                                long long tokens, float *shared) {
  const long long from = (long long)blockIdx.x * T::R;
  const long long to = min(from + T::R, tokens * A::groups);
  for (long long i = 0; i < view->run_count; ++i) {
    const gptc_run_desc run = view->runs[i];
    long long lo = max(from, (long long)run.first * A::groups);
    long long hi = min(to, ((long long)run.first + run.count) * A::groups);
    if (lo >= hi)
      continue;
    PagedKeys<C> keys = {view, run.sequence, int(blockIdx.y)};
    PagedRows<A> rows = {int(hi - lo), lo, (long long)run.position - run.first,
                         int(blockIdx.y), C::heads};
    T::run(a, keys, rows, q, out, shared);
  }
}

/// blockIdx.x: T::R rows of (query, head of the group); blockIdx.y: KV head.
template <class T, class A, class Q, class O>
__device__ void attention_dense(const A &a, const Q *q, const float *k,
                                const float *v, O *out, long long sq,
                                long long sk, float *shared) {
  const long long from = (long long)blockIdx.x * T::R;
  const long long to = min(from + T::R, sq * A::groups);
  const long long offset = (long long)blockIdx.y * sk * T::D;
  DenseKeys<T::D> keys = {k + offset, v + offset};
  DenseRows<A> rows = {a, int(to - from), from, sq, sk, (long long)blockIdx.y};
  T::run(a, keys, rows, q, out, shared);
}

} // namespace gptc
