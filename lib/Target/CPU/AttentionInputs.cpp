//===- AttentionInputs.cpp - attention of tensors and over the KV cache ---===//
//
// Which work items there are, and where their queries, keys and values lie.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

/// body(row, t, g) of a tile of `tokens` tokens.
static void eachRow(Emitter &e, const AttentionPlan &p, Value tokens,
                    function_ref<void(Value row, Value t, Value g)> body) {
  e.loop(e.cst(0), tokens, 1, [&](Value t) {
    e.loop(e.cst(0), e.cst(p.groups), 1,
           [&](Value g) { body(e.add(e.mul(t, p.groups), g), t, g); });
  });
}

/// Tile number `item` of `heads` times `tiles`, head by head. Later tiles see
/// more keys: in turns from the first to the last and back, so that threads
/// that take every threads-th item, or a range, have about the same to do.
static std::pair<Value, Value> headAndTile(Emitter &e, Value item,
                                           Value tiles) {
  Value head = arith::DivUIOp::create(e.b, e.loc, item, tiles);
  Value tile = e.sub(item, e.mul(head, tiles));
  Value back = e.sub(e.sub(tiles, 1), tile);
  return {head, e.select(e.eq(e.rem(head, 2), e.cst(0)), back, tile)};
}

//===----------------------------------------------------------------------===//
// Over the KV cache: q and result [T, H * D]
//===----------------------------------------------------------------------===//

namespace {
/// A run of consecutive tokens of a sequence.
struct Run {
  Value first, count, sequence, position;

  Run(Emitter &e, Value runs, Value index) {
    auto field = [&](size_t offset) {
      Value at = e.at(e.elem(runs, index, sizeof(gptc_run_desc)), offset);
      return Value(arith::ExtSIOp::create(e.b, e.loc, e.i64(),
                                          e.load(e.i32(), at)));
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
  Value q, view, out;

  void tile(const Run &run, Value head, Value token0);
  void pages(const Run &run, Value head, Value keyBase, Value visible);
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

void Cached::tile(const Run &run, Value head, Value token0) {
  const int64_t width = type.getHeads() * p.groups * p.d;
  Value tokens = e.min(e.cst(p.tokens), e.sub(run.count, token0));
  auto queryHead = [&](Value g) { return e.add(e.mul(head, p.groups), g); };
  auto address = [&](Value base, Value t, Value g) {
    Value row = e.mul(e.add(e.add(run.first, token0), t), width);
    return e.elem(base, e.add(row, e.mul(queryHead(g), p.d)));
  };
  // Keys that the tile's first token sees, and its last.
  Value visible0 = e.add(e.add(run.position, token0), 1),
        visible = e.sub(e.add(visible0, tokens), 1);
  a.begin();
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    Value limit = e.add(visible0, t);
    a.loadQuery(row,
                {address(q, t, g), limit, e.sub(limit, 1), queryHead(g), {}});
  });
  e.loop(a.firstChunk(visible0), e.ceilDiv(visible, p.chunk), 1,
         [&](Value index) {
           Value keyBase = e.mul(index, p.chunk);
           pages(run, head, keyBase, visible);
           a.chunk(e.mul(tokens, p.groups), keyBase);
         });
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    a.finish(row, address(out, t, g));
  });
}

static void emitCached(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                       const AttentionPlan &p) {
  Value view = c.arg(e, 1);
  Value runs = e.load(e.ptr(), e.at(view, offsetof(gptc_kv_view, runs)));
  Value runCount =
      e.load(e.i64(), e.at(view, offsetof(gptc_kv_view, run_count)));
  Attention a(e, c, op, p);
  Cached cached{e,           p,    op.getCache().getType(), a,
                c.arg(e, 0), view, c.result(e, 0)};
  // Items are numbered through all runs; a thread takes every threads-th one.
  e.loop(e.cst(0), runCount, 1, Values{e.cst(0)},
         [&](Value index, ValueRange carried) -> Values {
           Run run(e, runs, index);
           Value tiles = e.ceilDiv(run.count, p.tokens);
           Value items = e.mul(tiles, cached.type.getHeads());
           e.loop(e.cst(0), items, 1, [&](Value item) {
             Value turn = arith::RemUIOp::create(
                 e.b, e.loc, e.add(carried[0], item), c.threads);
             e.ifThen(e.eq(turn, c.thread), [&] {
               auto [head, tile] = headAndTile(e, item, tiles);
               cached.tile(run, head, e.mul(tile, p.tokens));
             });
           });
           return {e.add(carried[0], items)};
         });
}

//===----------------------------------------------------------------------===//
// Dense: q [H, Sq, D], k and v [H / groups, Sk, D]; batch dimensions are heads
//===----------------------------------------------------------------------===//

namespace {
struct Dense {
  Emitter &e;
  const AttentionPlan &p;
  Attention &a;
  Value q, k, v, out, sq, sk;
  Values shape; // of the scores

  void tile(Value head, Value token0);
  void pages(Value head, Value keyBase, Value visible);
};
} // namespace

// Keys are copied as the cache has them, values where their rows are no whole
// vectors; what lies past the last key stays what it was and is hidden.
void Dense::pages(Value head, Value keyBase, Value visible) {
  Value keys = e.min(e.cst(p.chunk), e.sub(visible, keyBase));
  e.loop(e.cst(0), keys, p.page, [&](Value key) {
    Value index = e.div(key, p.page), count = e.min(e.cst(p.page), e.sub(keys, key));
    Value from = e.mul(e.add(e.mul(head, sk), e.add(keyBase, key)), p.d);
    Value packed = a.elem(p.keys, e.mul(key, p.d));
    callPackKeys(e, p, e.elem(k, from), count, packed);
    e.store(packed, a.elem(p.keyPages, index, 8));
    Value values = e.elem(v, from);
    if (p.copiesValues) {
      Value copy = a.elem(p.values, e.mul(key, p.dv));
      e.loop(e.cst(0), count, 1, [&](Value row) {
        Value at = e.elem(values, e.mul(row, p.d)),
              to = e.elem(copy, e.mul(row, p.dv));
        forColumns(e, e.cst(p.d), [&](Value i, Value mask) {
          e.store(loadVector(e, e.elem(at, i), mask), e.elem(to, i));
        });
      });
      values = copy;
    }
    e.store(values, a.elem(p.valuePages, index, 8));
  });
}

void Dense::tile(Value head, Value token0) {
  const bool causal = a.op.getCausal();
  Value tokens = e.min(e.cst(p.tokens), e.sub(sq, token0));
  auto queryHead = [&](Value g) { return e.add(e.mul(head, p.groups), g); };
  auto address = [&](Value base, Value t, Value g) {
    Value row = e.add(e.mul(queryHead(g), sq), e.add(token0, t));
    return e.elem(base, e.mul(row, p.d));
  };
  Value position0 = e.add(e.sub(sk, sq), token0),
        visible0 = causal ? e.add(position0, 1) : sk;
  Value visible =
      causal ? e.max(e.sub(e.add(visible0, tokens), 1), e.cst(0)) : sk;
  a.begin();
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    Values maskRows;
    Value scoreRow = e.add(e.mul(queryHead(g), sq), e.add(token0, t));
    for (const Repeated &mask : a.masks)
      maskRows.push_back(mask.row(e, scoreRow, shape));
    a.loadQuery(row, {address(q, t, g), causal ? e.add(visible0, t) : visible0,
                      e.add(position0, t), queryHead(g), maskRows});
  });
  e.loop(a.firstChunk(visible0), e.ceilDiv(visible, p.chunk), 1,
         [&](Value index) {
           Value keyBase = e.mul(index, p.chunk);
           pages(head, keyBase, visible);
           a.chunk(e.mul(tokens, p.groups), keyBase);
         });
  eachRow(e, p, tokens, [&](Value row, Value t, Value g) {
    a.finish(row, address(out, t, g));
  });
}

static void emitDense(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                      const AttentionPlan &p) {
  Attention a(e, c, op, p);
  Dense dense{e,
              p,
              a,
              c.arg(e, 0),
              c.arg(e, 1),
              c.arg(e, 2),
              c.result(e, 0),
              c.size(e, 0, c.rank(0) - 2),
              c.size(e, 1, c.rank(1) - 2),
              {}};
  for (unsigned i = 0; i + 1 < c.rank(0); ++i)
    dense.shape.push_back(c.size(e, 0, i));
  dense.shape.push_back(dense.sk);
  Value tiles = e.ceilDiv(dense.sq, p.tokens);
  auto [from, to] = c.share(e, e.mul(c.rows(e, 1, 2), tiles));
  e.loop(from, to, 1, [&](Value item) {
    auto [head, tile] = headAndTile(e, item, tiles);
    dense.tile(head, e.mul(tile, p.tokens));
  });
}

LogicalResult gptc::cpu::emitAttention(Emitter &e, KernelContext &c,
                                       gpt::FlashAttentionOp op) {
  AttentionPlan p(c.kernel, e.target);
  if (op.getCache())
    emitCached(e, c, op, p);
  else
    emitDense(e, c, op, p);
  return success();
}
