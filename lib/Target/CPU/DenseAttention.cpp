//===- DenseAttention.cpp - attention of tensors --------------------------===//
//
// q [H, Sq, D], k and v [H / groups, Sk, D]; batch dimensions are heads.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

namespace {
struct Dense {
  Emitter &e;
  const AttentionPlan &p;
  Attention &a;
  Value q, k, v, out, sq, sk;
  Values shape; // of the scores

  void tile(Value head, Value token0, Value most);
  void pages(Value head, Value keyBase, Value visible);
};
} // namespace

// Keys are copied as the cache has them, values where their rows are no whole
// vectors; what lies past the last key stays what it was and is hidden.
void Dense::pages(Value head, Value keyBase, Value visible) {
  Value keys = e.min(e.cst(p.chunk), e.sub(visible, keyBase));
  e.loop(e.cst(0), keys, p.page, [&](Value key) {
    Value index = e.div(key, p.page),
          count = e.min(e.cst(p.page), e.sub(keys, key));
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

void Dense::tile(Value head, Value token0, Value most) {
  const bool causal = a.op.getCausal();
  Value tokens = e.min(most, e.sub(sq, token0));
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
                      e.add(position0, t), queryHead(g), address(out, t, g),
                      e.elem(address(q, t, g), e.mul(most, p.d)), maskRows});
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

void gptc::cpu::emitDenseAttention(Emitter &e, KernelContext &c,
                                   gpt::FlashAttentionOp op,
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
  Value heads = c.rows(e, 1, 2);
  Value most =
      tileTokens(e, p, e.mul(e.mul(heads, p.groups), dense.sq), c.threads);
  Value tiles =
      arith::DivUIOp::create(e.b, e.loc, e.sub(e.add(dense.sq, most), 1), most);
  auto [from, to] = c.share(e, e.mul(heads, tiles));
  e.loop(from, to, 1, [&](Value item) {
    auto [head, tile] = headAndTile(e, item, tiles);
    dense.tile(head, e.mul(tile, most), most);
  });
}
