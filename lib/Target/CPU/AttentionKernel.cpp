//===- AttentionKernel.cpp - flash attention over key blocks --------------===//
//
// One work item: a tile of query rows against one KV head, key block by key
// block with the online softmax of Milakov and Gimelshein (arXiv:1805.02867) as
// in flash attention (arXiv:2205.14135). Blocks are pages of the KV cache,
// counted from position 0, and every row sees its blocks in that order: a row's
// bits depend on its own keys only, not on the batch, the split or the threads.
// Rows of a tile: `tokens` consecutive tokens x the query heads of the KV head.
// The masked triangle, and what lies before a window, is skipped block-wise; a
// block that a row sees nothing of leaves its bits alone. Scores, sums and
// outputs are f32.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "MicroKernel.h"
#include "gptc/Schedule/Schedule.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

namespace {

/// Sizes of a tile and its places in scratch. D head size, P keys of a block,
/// Dv value pitch, G query heads per KV head.
struct Plan {
  int64_t d, page, groups, dv, tokens, rows, lanes, masks;
  bool dense, alibi;

  Plan(gpt::KernelOp kernel, const TargetDesc &t) : lanes(t.lanes) {
    auto op = cast<gpt::FlashAttentionOp>(kernel.kernelOp());
    AttentionSchedule schedule = readAttentionSchedule(kernel);
    dense = !op.getCache();
    alibi = op.getAlibi().has_value();
    masks = op.getMasks().size();
    groups = op.getGroups();
    d = dense ? op.getQ().getType().getShape().back()
              : op.getCache().getType().getHeadDim();
    page = schedule.keyBlock;
    dv = gptc_kv_value_pitch(d);
    tokens = schedule.tokens;
    rows = tokens * groups;
  }
  int64_t q() const { return 0; }                       // [rows][D], scaled
  int64_t scores() const { return q() + rows * d * 4; } // [rows][P]
  int64_t output() const { return scores() + rows * page * 4; } // [rows][Dv]
  int64_t maximum() const { return output() + rows * dv * 4; }  // [rows]
  int64_t sum() const { return maximum() + rows * 4; }
  int64_t limit() const {
    return sum() + rows * 4;
  } // [rows] i64: keys that the row sees
  int64_t position() const {
    return limit() + rows * 8;
  } // alibi: [rows] i64, of the row among the keys
  int64_t slope() const { return position() + alibi * rows * 8; } // [rows]
  int64_t maskRow(int64_t mask) const {
    return slope() + (alibi * 4 + mask * 8) * rows;
  } // of each mask: [rows] i64, offset of the row in it
  int64_t keys() const {
    return maskRow(masks);
  } // dense: [D][P], then values [P][Dv]
  int64_t values() const { return keys() + d * page * 4; }
  int64_t bytes() const { return dense ? values() + page * dv * 4 : keys(); }
};

/// One row of queries as the online softmax begins.
struct Query {
  Value q;         // its D numbers
  Value limit;     // keys before this one are seen
  Value position;  // of the row among the keys
  Value head;      // query head
  Values maskRows; // offset of the row in each mask
};

struct Attention {
  Attention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
            const Plan &p)
      : e(e), p(p), op(op), scratch(c.scratch),
        scale(op.getScale().convertToDouble()),
        window(windowOf(op.getWindow())) {
    if (op.getAlibi())
      slopes = constantSlopes(e, c, *op.getAlibi());
    for (Value mask : op.getMasks())
      masks.emplace_back(e, c, mask);
    if (!masks.empty())
      keyCount = c.size(e, 1, c.rank(1) - 2);
  }

  Emitter &e;
  const Plan &p;
  gpt::FlashAttentionOp op;
  Value scratch;
  double scale;
  std::optional<int64_t> window;
  Value slopes;
  SmallVector<Repeated> masks;
  Value keyCount; // of the masks' columns

  Value place(int64_t offset) { return e.at(scratch, offset); }
  Value elem(int64_t offset, Value index) {
    return e.elem(place(offset), index);
  }
  Value word(int64_t offset, Value index) {
    return e.load(e.i64(), e.elem(place(offset), index, 8));
  }

  void loadQuery(Value row, const Query &query);
  Value firstBlock(Value limit);
  void block(Value rows, Value keyBase, Value keyCount, Value keys,
             Value values);
  void product(Value rows, int64_t a, int64_t lda, Value b, int64_t ldb,
               int64_t c, int64_t columns, Value k, bool accumulate);
  Value score(Value s, Value row, Value key);
  void softmaxRow(Value row, Value keyBase);
  void finish(Value row, Value out);
};

} // namespace

// One row: q scaled once, an empty softmax, a zero output.
void Attention::loadQuery(Value row, const Query &query) {
  e.loop(e.cst(0), e.cst(p.d), 1, [&](Value i) {
    Value v =
        e.fmul(e.load(e.f32(), e.elem(query.q, i)), e.constFp(e.f32(), scale));
    e.store(v, elem(p.q(), e.add(e.mul(row, p.d), i)));
  });
  e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
    e.store(e.constFp(e.vec(e.f32()), 0),
            elem(p.output(), e.add(e.mul(row, p.dv), i)));
  });
  e.store(e.infinity(e.f32(), true), elem(p.maximum(), row));
  e.store(e.constFp(e.f32(), 0), elem(p.sum(), row));
  e.store(query.limit, e.elem(place(p.limit()), row, 8));
  if (p.alibi) {
    Value head = e.rem(query.head, op.getAlibi()->size());
    e.store(query.position, e.elem(place(p.position()), row, 8));
    e.store(e.load(e.f32(), e.elem(slopes, head)), elem(p.slope(), row));
  }
  for (auto [i, maskRow] : llvm::enumerate(query.maskRows))
    e.store(maskRow, e.elem(place(p.maskRow(i)), row, 8));
}

// The first block that a row sees anything of, when it sees keys before limit.
Value Attention::firstBlock(Value limit) {
  if (!window)
    return e.cst(0);
  return e.div(e.max(e.sub(limit, *window), e.cst(0)), p.page);
}

// c[rows][columns] (+)= a[rows][k] b[k][columns], all f32, by micro-kernels of
// at most four vectors.
void Attention::product(Value rows, int64_t a, int64_t lda, Value b,
                        int64_t ldb, int64_t c, int64_t columns, Value k,
                        bool accumulate) {
  int64_t vectors = columns / p.lanes;
  for (int64_t v0 = 0; v0 < vectors;) {
    int64_t v = std::min<int64_t>(4, vectors - v0);
    Value from = e.cst(0);
    // 6 x 4 accumulators, 4 weights and a broadcast fill 32 registers; 2 x 4
    // fill 16.
    for (int64_t r = e.target.registers >= 32 ? 6 : 2; r >= 1;
         r = r == 6 ? 3 : r / 2) {
      MicroKernel mk{r, 1, v};
      mk.accumulate = accumulate;
      Value to = e.mul(e.div(rows, r), r);
      e.loop(from, to, r, [&](Value r0) {
        callMicroKernel(e, mk,
                        {elem(a, e.mul(r0, lda)), e.cst(lda),
                         e.at(b, v0 * p.lanes * 4), e.cst(0), e.cst(ldb),
                         e.at(elem(c, e.mul(r0, columns)), v0 * p.lanes * 4),
                         e.cst(columns), k});
      });
      from = to;
    }
    v0 += v;
  }
}

// A vector of products as scores; `key` is that of the first lane.
Value Attention::score(Value s, Value row, Value key) {
  if (op.getSoftcap())
    s = emitSoftcap(e, s, op.getSoftcap()->convertToDouble());
  if (p.alibi)
    s = emitAlibiBias(e, s, e.load(e.f32(), elem(p.slope(), row)),
                      e.sub(key, word(p.position(), row)));
  if (masks.empty())
    return s;
  // A mask ends with the keys, a block does not.
  Value lanes = e.firstLanes(e.sub(keyCount, key), p.lanes);
  for (auto [i, mask] : llvm::enumerate(masks)) {
    Type element = getElementTypeOrSelf(op.getMasks()[i].getType());
    Value m = mask.load(e, element, word(p.maskRow(i), row), key, lanes);
    s = emitMasked(e, s, m, asDouble(op.getFill()));
  }
  return s;
}

// m' = max(m, max s); p = exp(s - m'); l' = l exp(m - m') + sum p; the output
// is rescaled by exp(m - m').
void Attention::softmaxRow(Value row, Value keyBase) {
  const int64_t n = p.page / p.lanes;
  Type vt = e.vec(e.f32());
  Value visible = e.sub(word(p.limit(), row), keyBase);
  Value base = elem(p.scores(), e.mul(row, p.page));
  Values s, mask;
  Value best;
  for (int64_t i = 0; i < n; ++i) {
    mask.push_back(visibleLanes(e, e.sub(visible, i * p.lanes), window));
    Value x = score(e.load(vt, e.at(base, i * p.lanes * 4)), row,
                    e.add(keyBase, i * p.lanes));
    s.push_back(e.select(mask[i], x, e.infinity(vt, true)));
    best = best ? e.fmax(best, s[i]) : s[i];
  }
  Value old = e.load(e.f32(), elem(p.maximum(), row));
  Value m = e.fmax(old, e.laneMax(best));
  // A row that has seen no key yet: any finite reference will do, its
  // exponentials are all 0.
  Value zero = e.constFp(e.f32(), 0);
  Value none = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, m,
                                     e.infinity(e.f32(), true));
  Value reference = e.select(none, zero, m);
  Value factor = emitExp(e, e.fsub(old, reference));
  Value wide = e.splat(reference, p.lanes), total;
  for (int64_t i = 0; i < n; ++i) {
    Value x =
        e.select(mask[i], emitExp(e, e.fsub(s[i], wide)), e.constFp(vt, 0));
    e.store(x, e.at(base, i * p.lanes * 4));
    total = total ? e.fadd(total, x) : x;
  }
  Value l = e.load(e.f32(), elem(p.sum(), row));
  e.store(e.fma(l, factor, e.laneSum(total)), elem(p.sum(), row));
  e.store(m, elem(p.maximum(), row));
  Value f = e.splat(factor, p.lanes);
  e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
    Value at = elem(p.output(), e.add(e.mul(row, p.dv), i));
    e.store(e.fmul(e.load(vt, at), f), at);
  });
}

void Attention::block(Value rows, Value keyBase, Value keyCount, Value keys,
                      Value values) {
  product(rows, p.q(), p.d, keys, p.page, p.scores(), p.page, e.cst(p.d),
          false);
  e.loop(e.cst(0), rows, 1, [&](Value r) { softmaxRow(r, keyBase); });
  product(rows, p.scores(), p.page, values, p.dv, p.output(), p.dv, keyCount,
          true);
}

void Attention::finish(Value row, Value out) {
  Value l = e.load(e.f32(), elem(p.sum(), row)), zero = e.constFp(e.f32(), 0);
  Value empty =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, l, zero);
  Value inverse = e.select(empty, zero, e.fdiv(e.constFp(e.f32(), 1), l));
  e.loop(e.cst(0), e.cst(p.d), 1, [&](Value i) {
    Value o = e.load(e.f32(), elem(p.output(), e.add(e.mul(row, p.dv), i)));
    e.store(e.fmul(o, inverse), e.elem(out, i));
  });
}

//===----------------------------------------------------------------------===//
// Over the KV cache: q and result [T, H * D]
//===----------------------------------------------------------------------===//

static void emitCached(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                       const Plan &p) {
  gpt::KVCacheType type = op.getCache().getType();
  const int64_t heads = type.getHeads(), width = heads * p.groups * p.d;
  Value q = c.arg(e, 0), view = c.arg(e, 1), out = c.result(e, 0);
  Value runs = e.load(e.ptr(), e.at(view, offsetof(gptc_kv_view, runs)));
  Value runCount =
      e.load(e.i64(), e.at(view, offsetof(gptc_kv_view, run_count)));
  Attention a(e, c, op, p);
  // Items are numbered through all runs; a thread takes every threads-th one,
  // since later tiles see more keys.
  e.loop(
      e.cst(0), runCount, 1, Values{e.cst(0)},
      [&](Value run, ValueRange carried) -> Values {
        auto field = [&](size_t offset) {
          Value v = e.load(
              e.i32(), e.at(e.elem(runs, run, sizeof(gptc_run_desc)), offset));
          return Value(arith::ExtSIOp::create(e.b, e.loc, e.i64(), v));
        };
        Value first = field(offsetof(gptc_run_desc, first)),
              count = field(offsetof(gptc_run_desc, count));
        Value sequence = field(offsetof(gptc_run_desc, sequence)),
              position = field(offsetof(gptc_run_desc, position));
        Value items = e.mul(e.ceilDiv(count, p.tokens), heads);
        e.loop(e.cst(0), items, 1, [&](Value item) {
          Value turn = arith::RemUIOp::create(
              e.b, e.loc, e.add(carried[0], item), c.threads);
          e.ifThen(e.eq(turn, c.thread), [&] {
            Value head = e.rem(item, heads),
                  token0 = e.mul(e.div(item, heads), p.tokens);
            Value tokens = e.min(e.cst(p.tokens), e.sub(count, token0));
            auto address = [&](Value base, Value token,
                               Value g) { // of one query row
              Value row = e.mul(e.add(e.add(first, token0), token), width);
              return e.elem(
                  base,
                  e.add(row, e.mul(e.add(e.mul(head, p.groups), g), p.d)));
            };
            auto eachRow = [&](function_ref<void(Value, Value, Value)> body) {
              e.loop(e.cst(0), tokens, 1, [&](Value t) {
                e.loop(e.cst(0), e.cst(p.groups), 1, [&](Value g) {
                  body(e.add(e.mul(t, p.groups), g), t, g);
                });
              });
            };
            Value visible0 = e.add(e.add(position, token0),
                                   1); // keys that the tile's first token sees
            eachRow([&](Value row, Value t, Value g) {
              Value limit = e.add(visible0, t);
              a.loadQuery(row, {address(q, t, g),
                                limit,
                                e.sub(limit, 1),
                                e.add(e.mul(head, p.groups), g),
                                {}});
            });
            Value visible = e.sub(e.add(visible0, tokens), 1); // and its last
            Value rows = e.mul(tokens, p.groups);
            e.loop(a.firstBlock(visible0), e.ceilDiv(visible, p.page), 1,
                   [&](Value index) {
                     Value block = kvBlock(e, view, type, sequence, index);
                     block =
                         e.at(block,
                              e.mul(head, gptc_kv_block_bytes(p.d, p.page, 4)));
                     Value keyBase = e.mul(index, p.page);
                     Value keyCount =
                         e.min(e.cst(p.page), e.sub(visible, keyBase));
                     a.block(rows, keyBase, keyCount, block,
                             e.at(block, p.d * p.page * 4));
                   });
            eachRow([&](Value row, Value t, Value g) {
              a.finish(row, address(out, t, g));
            });
          });
        });
        return {e.add(carried[0], items)};
      });
}

//===----------------------------------------------------------------------===//
// Dense: q [H, Sq, D], k and v [H / groups, Sk, D]; batch dimensions are heads
//===----------------------------------------------------------------------===//

static void emitDense(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                      const Plan &p) {
  Value heads = c.rows(e, 1, 2);
  Value sq = c.size(e, 0, c.rank(0) - 2), sk = c.size(e, 1, c.rank(1) - 2);
  Value q = c.arg(e, 0), k = c.arg(e, 1), v = c.arg(e, 2), out = c.result(e, 0);
  Attention a(e, c, op, p);
  Values shape; // of the scores
  for (unsigned i = 0; i + 1 < c.rank(0); ++i)
    shape.push_back(c.size(e, 0, i));
  shape.push_back(sk);
  Value tiles = e.ceilDiv(sq, p.tokens);
  auto [from, to] = c.share(e, e.mul(heads, tiles));
  e.loop(from, to, 1, [&](Value item) {
    Value head = arith::DivUIOp::create(e.b, e.loc, item, tiles);
    Value token0 = e.mul(e.sub(item, e.mul(head, tiles)), p.tokens);
    Value tokens = e.min(e.cst(p.tokens), e.sub(sq, token0));
    auto address = [&](Value base, Value t, Value g) {
      Value h = e.add(e.mul(head, p.groups), g);
      return e.elem(base, e.mul(e.add(e.mul(h, sq), e.add(token0, t)), p.d));
    };
    auto eachRow = [&](function_ref<void(Value, Value, Value)> body) {
      e.loop(e.cst(0), tokens, 1, [&](Value t) {
        e.loop(e.cst(0), e.cst(p.groups), 1,
               [&](Value g) { body(e.add(e.mul(t, p.groups), g), t, g); });
      });
    };
    Value visible0 =
        op.getCausal() ? e.add(e.add(e.sub(sk, sq), token0), 1) : sk;
    eachRow([&](Value row, Value t, Value g) {
      Value h = e.add(e.mul(head, p.groups), g), i = e.add(token0, t);
      Values maskRows;
      for (const Repeated &mask : a.masks)
        maskRows.push_back(mask.row(e, e.add(e.mul(h, sq), i), shape));
      a.loadQuery(row, {address(q, t, g),
                        op.getCausal() ? e.add(visible0, t) : visible0,
                        e.add(e.sub(sk, sq), i), h, maskRows});
    });
    Value visible = op.getCausal()
                        ? e.max(e.sub(e.add(visible0, tokens), 1), e.cst(0))
                        : sk;
    e.loop(a.firstBlock(visible0), e.ceilDiv(visible, p.page), 1,
           [&](Value index) {
             Value keyBase = e.mul(index, p.page);
             Value keyCount = e.min(e.cst(p.page), e.sub(visible, keyBase));
             // The block is copied in the cache's layout; keys past the end
             // stay what they were and are masked.
             e.loop(e.cst(0), keyCount, 1, [&](Value j) {
               Value at = e.mul(e.add(e.mul(head, sk), e.add(keyBase, j)), p.d);
               e.loop(e.cst(0), e.cst(p.d), 1, [&](Value i) {
                 Value from = e.add(at, i);
                 e.store(e.load(e.f32(), e.elem(k, from)),
                         a.elem(p.keys(), e.add(e.mul(i, p.page), j)));
                 e.store(e.load(e.f32(), e.elem(v, from)),
                         a.elem(p.values(), e.add(e.mul(j, p.dv), i)));
               });
             });
             a.block(e.mul(tokens, p.groups), keyBase, keyCount,
                     a.place(p.keys()), a.place(p.values()));
           });
    eachRow([&](Value row, Value t, Value g) {
      a.finish(row, address(out, t, g));
    });
  });
}

LogicalResult gptc::cpu::emitAttention(Emitter &e, KernelContext &c,
                                       gpt::FlashAttentionOp op) {
  Plan p(c.kernel, e.target);
  if (op.getCache())
    emitCached(e, c, op, p);
  else
    emitDense(e, c, op, p);
  return success();
}

int64_t gptc::cpu::attentionScratch(gpt::KernelOp kernel, const TargetDesc &t) {
  return Plan(kernel, t).bytes();
}
