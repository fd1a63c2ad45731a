//===- CachedAttention.cpp - attention over the KV cache ------------------===//
//
// q and result [T, H * D]. A prompt is cut into tiles of rows. Single tokens of
// few sequences are too few tiles for the threads to share: then units are
// chunks of keys, of all heads in a row, and a thread takes a range of them. A
// sequence's head that several threads have parts of is put together, chunk by
// chunk as ever, by the one that is done last; nobody waits, so that parts may
// run one after the other.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

/// Sequences' heads a thread, from which on whole ones are shared evenly
/// enough.
static constexpr int64_t itemsPerThread = 8;

namespace {
/// A run of consecutive tokens of a sequence.
struct Run {
  Value first, count, sequence, position;

  Run(Emitter &e, Value runs, Value index) {
    auto field = [&](size_t offset) {
      Value at = e.at(e.elem(runs, index, sizeof(gptc_run_desc)), offset);
      return Value(
          arith::ExtSIOp::create(e.b, e.loc, e.i64(), e.load(e.i32(), at)));
    };
    first = field(offsetof(gptc_run_desc, first));
    count = field(offsetof(gptc_run_desc, count));
    sequence = field(offsetof(gptc_run_desc, sequence));
    position = field(offsetof(gptc_run_desc, position));
  }
};

struct Cached {
  Emitter &e;
  const AttentionPlan &p;
  gpt::KVCacheType type;
  Attention &a;
  Value q, view, out, runs, runCount, partials;

  /// Of one row of q or the result.
  Value address(Value base, Value token, Value head) {
    const int64_t width = type.getHeads() * p.groups * p.d;
    return e.elem(base, e.add(e.mul(token, width), e.mul(head, p.d)));
  }
  Value queryHead(Value head, Value g) {
    return e.add(e.mul(head, p.groups), g);
  }
  /// `next`: the first row of the next tile.
  void load(const Run &run, Value head, Value token0, Value tokens, Value next);
  void pages(const Run &run, Value head, Value keyBase, Value visible);
  void finish(const Run &run, Value head, Value token0, Value tokens);

  void shareTiles(KernelContext &c);
  void tile(const Run &run, Value head, Value token0, Value most, Value next);

  // Single tokens by chunks of keys.
  /// First chunk of a run's token, and the end of its chunks.
  std::pair<Value, Value> chunks(const Run &run);
  void shareUnits(KernelContext &c, Value total);
  void takeUnits(const Run &run, Value item0, Value unit0, Value lo, Value hi);
  void units(const Run &run, Value head, Value item, Value unit0, Value from,
             Value to);
};
} // namespace

// Where the chunk's pages lie.
void Cached::pages(const Run &run, Value head, Value keyBase, Value visible) {
  Value keys = e.min(e.cst(p.chunk), e.sub(visible, keyBase));
  e.loop(e.cst(0), keys, p.page, [&](Value key) {
    Value index = e.div(key, p.page);
    Value block = kvBlock(e, view, type, run.sequence,
                          e.add(e.div(keyBase, p.page), index));
    block = e.at(block, e.mul(head, gptc_kv_block_bytes(p.d, p.page, 4)));
    e.store(block, a.elem(p.keyPages, index, 8));
    e.store(e.at(block, p.d * p.page * 4), a.elem(p.valuePages, index, 8));
  });
}

void Cached::load(const Run &run, Value head, Value token0, Value tokens,
                  Value next) {
  a.begin();
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    Value token = e.add(token0, t), h = queryHead(head, g);
    Value at = address(q, e.add(run.first, token), h);
    Value position = e.add(run.position, token);
    a.loadQuery(row, {at,
                      e.add(position, 1),
                      position,
                      h,
                      address(out, e.add(run.first, token), h),
                      address(next, t, g),
                      {}});
  });
}

void Cached::finish(const Run &run, Value head, Value token0, Value tokens) {
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    Value token = e.add(run.first, e.add(token0, t));
    a.finish(row, address(out, token, queryHead(head, g)));
  });
}

void Cached::tile(const Run &run, Value head, Value token0, Value most,
                  Value next) {
  Value tokens = e.min(most, e.sub(run.count, token0));
  // Keys that the tile's first token sees, and its last.
  Value visible0 = e.add(e.add(run.position, token0), 1),
        visible = e.sub(e.add(visible0, tokens), 1);
  load(run, head, token0, tokens, next);
  e.loop(a.firstChunk(visible0), e.ceilDiv(visible, p.chunk), 1,
         [&](Value index) {
           Value keyBase = e.mul(index, p.chunk);
           pages(run, head, keyBase, visible);
           a.chunk(e.mul(tokens, p.groups), keyBase);
         });
  finish(run, head, token0, tokens);
}

//===----------------------------------------------------------------------===//
// Single tokens by chunks of keys
//===----------------------------------------------------------------------===//

std::pair<Value, Value> Cached::chunks(const Run &run) {
  Value visible = e.add(run.position, 1);
  return {a.firstChunk(visible), e.ceilDiv(visible, p.chunk)};
}

// Units [from, to) of a head whose first one is unit0, each a chunk.
void Cached::units(const Run &run, Value head, Value item, Value unit0,
                   Value from, Value to) {
  auto [first, end] = chunks(run);
  Value base = e.sub(unit0, first), rows = e.cst(p.groups);
  auto part = [&](Value chunk) {
    Value at = e.elem(e.at(partials, GPTC_KV_COUNTERS * sizeof(int32_t)),
                      e.add(base, chunk), p.partBytes(p.groups));
    return ChunkPart(e, p, at, p.groups);
  };
  load(run, head, e.cst(0), e.cst(1), q);
  e.loop(e.sub(from, base), e.sub(to, base), 1, [&](Value chunk) {
    Value keyBase = e.mul(chunk, p.chunk);
    pages(run, head, keyBase, e.add(run.position, 1));
    a.computePart(rows, keyBase, part(chunk));
  });
  Value counter = e.elem(partials, item);
  Value count = arith::TruncIOp::create(e.b, e.loc, e.i32(), e.sub(to, from));
  Value before =
      LLVM::AtomicRMWOp::create(e.b, e.loc, LLVM::AtomicBinOp::add, counter,
                                count, LLVM::AtomicOrdering::acq_rel);
  Value done =
      arith::ExtSIOp::create(e.b, e.loc, e.i64(), Value(e.add(before, count)));
  e.ifThen(e.eq(done, e.sub(end, first)), [&] {
    e.store(e.constInt(e.i32(), 0), counter);
    e.loop(first, end, 1, [&](Value chunk) { a.takePart(rows, part(chunk)); });
    finish(run, head, e.cst(0), e.cst(1));
  });
}

// Of a range [lo, hi) of all units, those of one sequence.
void Cached::takeUnits(const Run &run, Value item0, Value unit0, Value lo,
                       Value hi) {
  auto [first, end] = chunks(run);
  Value count = e.sub(end, first);
  e.loop(e.cst(0), e.cst(type.getHeads()), 1, [&](Value head) {
    Value begin = e.add(unit0, e.mul(head, count));
    Value from = e.max(lo, begin), to = e.min(hi, e.add(begin, count));
    e.ifThen(e.lt(from, to),
             [&] { units(run, head, e.add(item0, head), begin, from, to); });
  });
}

void Cached::shareUnits(KernelContext &c, Value total) {
  auto [lo, hi] = c.share(e, total);
  e.loop(e.cst(0), runCount, 1, Values{e.cst(0), e.cst(0)},
         [&, lo = lo, hi = hi](Value index, ValueRange carried) -> Values {
           Run run(e, runs, index);
           auto [first, end] = chunks(run);
           takeUnits(run, carried[0], carried[1], lo, hi);
           const int64_t heads = type.getHeads();
           return {e.add(carried[0], heads),
                   e.add(carried[1], e.mul(e.sub(end, first), heads))};
         });
}

// Items are numbered through all runs; a thread takes every threads-th one.
void Cached::shareTiles(KernelContext &c) {
  e.loop(e.cst(0), runCount, 1, Values{e.cst(0)},
         [&](Value index, ValueRange carried) -> Values {
           Run run(e, runs, index);
           Value heads = e.cst(type.getHeads());
           Value most = tileTokens(
               e, p, e.mul(e.mul(heads, p.groups), run.count), c.threads);
           Value tiles = arith::DivUIOp::create(
               e.b, e.loc, e.sub(e.add(run.count, most), 1), most);
           Value items = e.mul(tiles, heads);
           e.loop(e.cst(0), items, 1, [&](Value item) {
             Value turn = arith::RemUIOp::create(
                 e.b, e.loc, e.add(carried[0], item), c.threads);
             e.ifThen(e.eq(turn, c.thread), [&] {
               auto [head, tile] = headAndTile(e, item, tiles);
               auto [nextHead, nextTile] =
                   headAndTile(e, e.add(item, c.threads), tiles);
               Value next = address(q, e.add(run.first, e.mul(nextTile, most)),
                                    queryHead(nextHead, e.cst(0)));
               this->tile(run, head, e.mul(tile, most), most, next);
             });
           });
           return {e.add(carried[0], items)};
         });
}

void gptc::cpu::emitCachedAttention(Emitter &e, KernelContext &c,
                                    gpt::FlashAttentionOp op,
                                    const AttentionPlan &p) {
  Value view = c.arg(e, 1);
  auto field = [&](Type t, size_t offset) {
    return e.load(t, e.at(view, offset));
  };
  Attention a(e, c, op, p);
  Cached cached{e,
                p,
                op.getCache().getType(),
                a,
                c.arg(e, 0),
                view,
                c.result(e, 0),
                field(e.ptr(), offsetof(gptc_kv_view, runs)),
                field(e.i64(), offsetof(gptc_kv_view, run_count)),
                field(e.ptr(), offsetof(gptc_kv_view, partials))};
  if (p.groups > p.block)
    return cached.shareTiles(c);
  const int64_t heads = cached.type.getHeads();
  Values found =
      e.loop(e.cst(0), cached.runCount, 1, Values{e.cst(0), e.cst(1)},
             [&](Value index, ValueRange carried) -> Values {
               Run run(e, cached.runs, index);
               auto [first, end] = cached.chunks(run);
               return {e.add(carried[0], e.mul(e.sub(end, first), heads)),
                       e.max(carried[1], run.count)};
             });
  Value units = found[0], items = e.mul(cached.runCount, heads);
  Value needed = e.add(e.mul(units, p.partBytes(p.groups)),
                       GPTC_KV_COUNTERS * int64_t(sizeof(int32_t)));
  Value splits = e.both(e.eq(found[1], e.cst(1)),
                        e.lt(items, e.mul(c.threads, itemsPerThread)));
  splits = e.both(splits, e.both(e.lt(e.cst(1), c.threads),
                                 e.le(items, e.cst(GPTC_KV_COUNTERS))));
  splits = e.both(
      splits,
      e.le(needed, field(e.i64(), offsetof(gptc_kv_view, partial_bytes))));
  e.ifThen(
      splits, [&] { cached.shareUnits(c, units); },
      [&] { cached.shareTiles(c); });
}
