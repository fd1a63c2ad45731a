//===- AttentionKernel.cpp - flash attention over chunks of keys ----------===//
#include "Attention.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

AttentionPlan::AttentionPlan(gpt::KernelOp kernel, const TargetDesc &t)
    : lanes(t.lanes), registers(t.registers) {
  auto op = cast<gpt::FlashAttentionOp>(kernel.kernelOp());
  AttentionSchedule schedule = readAttentionSchedule(kernel);
  dense = !op.getCache();
  alibi = op.getAlibi().has_value();
  maskCount = op.getMasks().size();
  plain = !alibi && !maskCount && !op.getSoftcap();
  groups = op.getGroups();
  d = dense ? op.getQ().getType().getShape().back()
            : op.getCache().getType().getHeadDim();
  dv = gptc_kv_value_pitch(d);
  copiesValues = dense && d != dv;
  page = schedule.keyBlock;
  chunk = schedule.chunk;
  tokens = schedule.tokens;
  block = schedule.rowBlock;
  rows = (tokens * groups + block - 1) / block * block;
  // A cache line more shifts rows of a power of two against each other.
  qPitch = d + 16;
  sPitch = chunk + 16;

  bytes = 0;
  auto place = [&](int64_t size) {
    int64_t at = bytes;
    bytes += (size + 63) / 64 * 64;
    return at;
  };
  q = place(rows * qPitch * 4);
  output = place(rows * dv * 4);
  maximum = place(rows * 4);
  sum = place(rows * 4);
  limit = place(rows * 8);
  position = place(alibi * rows * 8);
  slope = place(alibi * rows * 4);
  maskRows = place(maskCount * rows * 8);
  ahead = place(rows * 16);
  scores = place(block * sPitch * 4);
  part = place(partBytes(block));
  lanewise = place(block * lanes * 4);
  reference = place(block * 4);
  oldFactor = place(block * 4);
  newFactor = place(block * 4);
  keyPages = place(pages() * 8);
  valuePages = place(pages() * 8);
  keys = place(dense * chunk * d * 4);
  values = place(copiesValues * chunk * dv * 4);
}

int64_t AttentionPlan::partBytes(int64_t rows) const {
  return (2 * ((rows + 15) / 16 * 16) + rows * dv) * 4;
}

ChunkPart::ChunkPart(Emitter &e, const AttentionPlan &p, Value at, int64_t rows)
    : maximum(at), sum(e.at(at, (rows + 15) / 16 * 16 * 4)),
      output(e.at(at, p.partBytes(rows) - rows * p.dv * 4)) {}

Attention::Attention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                     const AttentionPlan &p)
    : e(e), p(p), op(op), window(windowOf(op.getWindow())), scratch(c.scratch),
      scale(op.getScale().convertToDouble()) {
  if (op.getAlibi())
    slopes = constantSlopes(e, c, *op.getAlibi());
  for (Value mask : op.getMasks())
    masks.emplace_back(e, c, mask);
  if (!masks.empty())
    keyCount = c.size(e, 1, c.rank(1) - 2);
  if (p.plain)
    scale *= 1.44269504088896341; // powers of 2
}

void Attention::begin() {
  e.loop(e.cst(0), e.cst(p.rows), p.lanes, [&](Value row) {
    Type vt = e.vec(e.f32());
    e.store(e.infinity(vt, true), elem(p.maximum, row));
    e.store(e.constFp(vt, 0), elem(p.sum, row));
  });
}

// One row: q scaled once, a zero output.
void Attention::loadQuery(Value row, const Query &query) {
  Type vt = e.vec(e.f32());
  Value to = elem(p.q, e.mul(row, p.qPitch));
  forColumns(e, e.cst(p.d), [&](Value i, Value mask) {
    Value x = loadVector(e, e.elem(query.q, i), mask);
    e.store(e.fmul(x, e.constFp(vt, scale)), e.elem(to, i));
  });
  e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
    e.store(e.constFp(vt, 0), elem(p.output, e.add(e.mul(row, p.dv), i)));
  });
  e.store(query.limit, elem(p.limit, row, 8));
  Value ahead = elem(p.ahead, row, 16);
  e.store(query.out, ahead);
  e.store(query.next, e.at(ahead, 8));
  if (p.alibi) {
    Value head = e.rem(query.head, op.getAlibi()->size());
    e.store(query.position, elem(p.position, row, 8));
    e.store(e.load(e.f32(), e.elem(slopes, head)), elem(p.slope, row));
  }
  for (auto [i, maskRow] : llvm::enumerate(query.maskRows))
    e.store(maskRow, elem(p.maskRows + int64_t(i) * p.rows * 8, row, 8));
}

Value Attention::firstChunk(Value limit) {
  if (!window)
    return e.cst(0);
  return e.div(e.max(e.sub(limit, *window), e.cst(0)), p.chunk);
}

Value Attention::seen(Value row, Value keyBase) {
  Value keys = e.sub(word(p.limit, row), keyBase);
  return e.min(e.max(keys, e.cst(0)), e.cst(p.chunk));
}

/// body(row, R) for tiles of at most `most` rows that cover rows [from, to),
/// some of them twice.
static void coverRows(Emitter &e, Value from, Value to, int64_t most,
                      function_ref<void(Value, int64_t)> body) {
  Value rows = e.sub(to, from);
  e.ifThen(
      e.le(e.cst(most), rows),
      [&] {
        e.loop(e.cst(0), rows, most, [&](Value row) {
          // The last tile ends with the rows.
          body(e.add(from, e.min(row, e.sub(rows, most))), most);
        });
      },
      [&] { // 12 6 3 1, or 4 2 1
        Value row = from;
        for (int64_t r = most / 2; r >= 1; r /= 2) {
          Value next = e.add(row, e.mul(e.div(e.sub(to, row), r), r));
          e.loop(row, next, r, [&](Value at) { body(at, r); });
          row = next;
        }
      });
}

// Scores, page by page, so that it stays in L1 while the rows pass it; of the
// keys that a tile sees, whole vectors.
void Attention::scoresOf(const BlockRange &b) {
  Value to = e.add(b.row0, b.rows);
  AttentionTile main = attentionTiles(p, p.page)[0];
  const int64_t width = main.vectors * p.lanes;
  Value last = seen(e.sub(to, 1), b.keyBase);
  e.loop(b.from, last, p.page, [&](Value key) {
    Value page = e.load(e.ptr(), elem(p.keyPages, e.div(key, p.page), 8));
    coverRows(e, b.row0, to, main.rows, [&](Value row, int64_t rows) {
      Value end = e.sub(seen(e.add(row, rows - 1), b.keyBase), key);
      end = e.min(e.max(end, e.cst(0)), e.cst(p.page));
      Value q = elem(p.q, e.mul(row, p.qPitch));
      Value s = elem(p.scores, e.add(e.mul(e.sub(row, b.row0), p.sPitch), key));
      auto run = [&](int64_t vectors, Value column) {
        callScores(e, p, {rows, vectors}, q, e.elem(page, column),
                   e.elem(s, column), /*stream=*/rows < main.rows);
      };
      Value vectors = e.ceilDiv(end, p.lanes);
      Value whole = e.mul(e.div(vectors, main.vectors), width);
      e.loop(e.cst(0), whole, width,
             [&](Value column) { run(main.vectors, column); });
      Value rest = e.rem(vectors, main.vectors), column = whole;
      for (int64_t v : {2, 1}) { // of at most three
        if (v >= main.vectors)
          continue;
        Value many = e.lt(e.cst(v - 1), rest);
        e.ifThen(many, [&] { run(v, column); });
        Value done = e.select(many, e.cst(v), e.cst(0));
        rest = e.sub(rest, done);
        column = e.add(column, e.mul(done, p.lanes));
      }
    });
  });
}

void Attention::valuesOf(const BlockRange &b) {
  int64_t column = 0;
  for (AttentionTile tile : attentionTiles(p, p.dv)) {
    Value pages = elem(p.valuePages, e.div(b.from, p.page), 8);
    coverRows(
        e, b.row0, e.add(b.row0, b.rows), tile.rows,
        [&](Value row, int64_t rows) {
          Value inBlock = e.sub(row, b.row0);
          Value keys = e.sub(seen(e.add(row, rows - 1), b.keyBase), b.from);
          Value s = elem(p.scores, e.add(e.mul(inBlock, p.sPitch), b.from));
          Value out =
              e.at(e.elem(b.part.output, e.mul(inBlock, p.dv)), column * 4);
          callValues(e, p, {rows, tile.vectors}, s, pages, column, keys, out,
                     /*stream=*/rows < tile.rows);
        });
    column += tile.vectors * p.lanes;
  }
}

// L' = L a + l b, O' = O a + o b
void Attention::merge(Value row0, Value rows, const ChunkPart &part) {
  e.loop(e.cst(0), rows, p.lanes,
         [&](Value row) { takeSums(row0, row, part); });
  e.loop(e.cst(0), rows, 1, [&](Value row) {
    auto factor = [&](int64_t at) {
      return e.splat(e.load(e.f32(), elem(at, row)), p.lanes);
    };
    Value before = factor(p.oldFactor), now = factor(p.newFactor);
    Value from = e.elem(part.output, e.mul(row, p.dv)),
          to = elem(p.output, e.mul(e.add(row0, row), p.dv));
    e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
      Type vt = e.vec(e.f32());
      Value o = e.load(vt, e.elem(from, i)), at = e.elem(to, i);
      e.store(e.fma(o, now, e.fmul(e.load(vt, at), before)), at);
    });
  });
}

void Attention::ifSeen(BlockRange b,
                       function_ref<void(const BlockRange &, Value)> body) {
  Value last = e.sub(e.add(b.row0, b.rows), 1);
  Value first = e.sub(word(p.limit, b.row0), b.keyBase),
        end = seen(last, b.keyBase);
  Value some = e.lt(e.cst(0), end), whole = e.le(e.cst(p.chunk), first);
  if (window) {
    auto hidden = [&](Value row) {
      Value seenFrom = e.sub(word(p.limit, row), e.add(b.keyBase, *window));
      return e.max(seenFrom, e.cst(0));
    };
    Value before = hidden(b.row0);
    some = e.both(some, e.lt(before, end));
    whole = e.both(whole, e.eq(hidden(last), e.cst(0)));
    b.from = e.mul(e.div(before, p.page), p.page);
  }
  e.ifThen(some, [&] { body(b, whole); });
}

void Attention::compute(const BlockRange &b, Value whole) {
  scoresOf(b);
  softmax(b, whole);
  valuesOf(b);
}

void Attention::chunk(Value rows, Value keyBase) {
  ChunkPart part(e, p, place(p.part), p.block);
  e.loop(e.cst(0), rows, p.block, [&](Value row0) {
    Value count = e.min(e.cst(p.block), e.sub(rows, row0));
    ifSeen({row0, count, keyBase, e.cst(0), part},
           [&](const BlockRange &b, Value whole) {
             compute(b, whole);
             merge(b.row0, b.rows, part);
           });
  });
}

void Attention::computePart(Value rows, Value keyBase, const ChunkPart &part) {
  ifSeen({e.cst(0), rows, keyBase, e.cst(0), part},
         [&](const BlockRange &b, Value whole) { compute(b, whole); });
}

void Attention::takePart(Value rows, const ChunkPart &part) {
  merge(e.cst(0), rows, part);
}

void Attention::finish(Value row, Value out) {
  Value l = e.load(e.f32(), elem(p.sum, row)), zero = e.constFp(e.f32(), 0);
  Value empty =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, l, zero);
  Value inverse = e.select(empty, zero, e.fdiv(e.constFp(e.f32(), 1), l));
  inverse = e.splat(inverse, p.lanes);
  Value from = elem(p.output, e.mul(row, p.dv));
  forColumns(e, e.cst(p.d), [&](Value i, Value mask) {
    Value o = e.load(e.vec(e.f32()), e.elem(from, i));
    storeVector(e, e.fmul(o, inverse), e.elem(out, i), mask);
  });
}

void gptc::cpu::eachRow(Emitter &e, const AttentionPlan &p, Value tokens,
                        function_ref<void(Value, Value, Value)> body) {
  e.loop(e.cst(0), tokens, 1, [&](Value t) {
    e.loop(e.cst(0), e.cst(p.groups), 1,
           [&](Value g) { body(e.add(e.mul(t, p.groups), g), t, g); });
  });
}

Value gptc::cpu::tileTokens(Emitter &e, const AttentionPlan &p, Value rows,
                            Value threads) {
  const int64_t blockTokens = std::max<int64_t>(1, p.block / p.groups);
  // Six tiles a thread, in whole blocks.
  Value most = arith::DivUIOp::create(
      e.b, e.loc, rows, e.mul(threads, 6 * p.groups * blockTokens));
  most = e.mul(e.add(most, 1), blockTokens);
  return e.min(most, e.cst(p.tokens));
}

std::pair<Value, Value> gptc::cpu::headAndTile(Emitter &e, Value item,
                                               Value tiles) {
  Value head = arith::DivUIOp::create(e.b, e.loc, item, tiles);
  Value tile = e.sub(item, e.mul(head, tiles));
  Value back = e.sub(e.sub(tiles, 1), tile);
  return {head, e.select(e.eq(e.rem(head, 2), e.cst(0)), back, tile)};
}

LogicalResult gptc::cpu::emitAttention(Emitter &e, KernelContext &c,
                                       gpt::FlashAttentionOp op) {
  AttentionPlan p(c.kernel, e.target);
  if (op.getCache())
    emitCachedAttention(e, c, op, p);
  else
    emitDenseAttention(e, c, op, p);
  return success();
}

int64_t gptc::cpu::attentionScratch(gpt::KernelOp kernel, const TargetDesc &t) {
  return AttentionPlan(kernel, t).bytes;
}

int64_t gptc::cpu::attentionPartBytes(gpt::KernelOp kernel,
                                      const TargetDesc &t) {
  AttentionPlan p(kernel, t);
  auto op = cast<gpt::FlashAttentionOp>(kernel.kernelOp());
  return p.dense ? 0
                 : op.getCache().getType().getHeads() * p.partBytes(p.groups);
}
