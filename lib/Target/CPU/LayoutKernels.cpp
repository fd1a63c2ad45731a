//===- LayoutKernels.cpp - tables, heads, rotary, KV cache, matmul --------===//
//
// Mostly of the unfused path: plain loops, vectors along the last dimension.
//
//===----------------------------------------------------------------------===//
#include "MicroKernel.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static void copyRow(Emitter &e, Value from, Value to, Value n) {
  forColumns(e, n, [&](Value col, Value mask) {
    storeVector(e, loadVector(e, e.elem(from, col), mask), e.elem(to, col),
                mask);
  });
}

// Step entries have their ids checked by the runtime; elsewhere an id outside
// the table makes its row NaN, never a stray read.
void gptc::cpu::emitEmbedding(Emitter &e, KernelContext &c,
                              gpt::EmbeddingOp op) {
  const int64_t rows = c.shape(0)[0], n = c.shape(0)[1];
  Value table = c.arg(e, 0), ids = c.arg(e, 1), out = c.result(e, 0);
  std::optional<gpt::Storage> storage = c.storage(0);
  forShare(e, c, c.size(e, 1, 0), [&](Value t) {
    Value id = loadIndex(e, ids, t), to = e.elem(out, e.mul(t, n));
    Value inside = e.both(e.le(e.cst(0), id), e.lt(id, e.cst(rows)));
    e.ifThen(
        inside,
        [&] {
          if (!storage)
            return copyRow(e, e.elem(table, e.mul(id, n)), to, e.cst(n));
          e.loop(e.cst(0), e.cst(n), 1, [&](Value k) {
            e.store(loadPacked(e, *storage, table, id, k, n), e.elem(to, k));
          });
        },
        [&] {
          e.loop(e.cst(0), e.cst(n), 1, [&](Value k) {
            e.store(
                e.constFp(e.f32(), std::numeric_limits<double>::quiet_NaN()),
                e.elem(to, k));
          });
        });
  });
}

void gptc::cpu::emitSelectRows(Emitter &e, KernelContext &c) {
  const int64_t n = c.shape(0).back();
  Value x = c.arg(e, 0), rows = c.arg(e, 1), out = c.result(e, 0);
  forShare(e, c, c.size(e, 1, 0), [&](Value r) {
    copyRow(e, e.elem(x, e.mul(loadIndex(e, rows, r), n)),
            e.elem(out, e.mul(r, n)), e.cst(n));
  });
}

void gptc::cpu::emitPositions(Emitter &e, KernelContext &c) {
  Value out = c.result(e, 0);
  forShare(e, c, c.size(e, 0, 0), [&](Value t) {
    e.store(arith::TruncIOp::create(e.b, e.loc, e.i32(), t), e.elem(out, t));
  });
}

// Dimensions of 1 more: the same numbers in the same order.
void gptc::cpu::emitExpandShape(Emitter &e, KernelContext &c) {
  const int64_t chunk = 1024;
  Value from = c.arg(e, 0), to = c.result(e, 0), n = c.rows(e, 0, 0);
  forShare(e, c, e.ceilDiv(n, chunk), [&](Value unit) {
    Value base = e.mul(unit, chunk);
    copyRow(e, e.elem(from, base), e.elem(to, base),
            e.min(e.sub(n, base), e.cst(chunk)));
  });
}

void gptc::cpu::emitSplit(Emitter &e, KernelContext &c, gpt::SplitOp op) {
  const int64_t n = c.shape(0).back();
  Value x = c.arg(e, 0);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    int64_t offset = 0;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      int64_t part = c.shape(1 + i).back();
      copyRow(e, e.elem(x, e.add(e.mul(r, n), offset)),
              e.elem(c.result(e, i), e.mul(r, part)), e.cst(part));
      offset += part;
    }
  });
}

/// Copies rows of D between [B, T, H * D] (merged) and [B, H, T, D] (split).
static void moveHeads(Emitter &e, KernelContext &c, unsigned splitArg,
                      unsigned mergedArg, bool toSplit) {
  const unsigned rank = c.rank(splitArg);
  const int64_t heads = c.shape(splitArg)[rank - 3],
                d = c.shape(splitArg)[rank - 1];
  Value tokens = c.size(e, splitArg, rank - 2), split = c.arg(e, splitArg),
        merged = c.arg(e, mergedArg);
  forShare(e, c, c.rows(e, mergedArg), [&](Value r) { // r = b * T + t
    Value batch = arith::DivUIOp::create(e.b, e.loc, r, tokens),
          t = arith::RemUIOp::create(e.b, e.loc, r, tokens);
    e.loop(e.cst(0), e.cst(heads), 1, [&](Value h) {
      Value s = e.add(e.mul(e.add(e.mul(batch, heads), h), tokens), t);
      Value a = e.elem(split, e.mul(s, d)),
            b = e.elem(merged, e.mul(e.add(e.mul(r, heads), h), d));
      copyRow(e, toSplit ? b : a, toSplit ? a : b, e.cst(d));
    });
  });
}
void gptc::cpu::emitSplitHeads(Emitter &e, KernelContext &c) {
  moveHeads(e, c, 1, 0, true);
}
void gptc::cpu::emitMergeHeads(Emitter &e, KernelContext &c) {
  moveHeads(e, c, 0, 1, false);
}

// a [B.., M, K], b [B.. / groups, K, N] or [.., N, K]: one result row a work
// unit.
void gptc::cpu::emitMatmul(Emitter &e, KernelContext &c, gpt::MatmulOp op) {
  const unsigned rank = c.rank(0);
  Value m = c.size(e, 0, rank - 2), k = c.size(e, 0, rank - 1),
        n = c.size(e, 2, rank - 1);
  Value a = c.arg(e, 0), b = c.arg(e, 1), out = c.result(e, 0);
  Type vt = e.vec(e.f32());
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value head =
        e.div(Value(arith::DivUIOp::create(e.b, e.loc, r, m)), op.getGroups());
    Value x = e.elem(a, e.mul(r, k)), w = e.elem(b, e.mul(head, e.mul(k, n))),
          to = e.elem(out, e.mul(r, n));
    if (op.getTransposeB())
      return e.loop(e.cst(0), n, 1, [&](Value j) {
        Value y = e.elem(w, e.mul(j, k));
        Values sum = forColumns(
            e, k, Values{e.constFp(vt, 0)},
            [&](Value col, Value mask, ValueRange v) -> Values {
              return {e.fma(loadVector(e, e.elem(x, col), mask),
                            loadVector(e, e.elem(y, col), mask), v[0])};
            });
        e.store(e.laneSum(sum[0]), e.elem(to, j));
      });
    forColumns(e, n, [&](Value col, Value mask) {
      Values sum = e.loop(
          e.cst(0), k, 1, Values{e.constFp(vt, 0)},
          [&](Value i, ValueRange v) -> Values {
            Value xi = e.splat(e.load(e.f32(), e.elem(x, i)), e.target.lanes);
            return {e.fma(
                xi, loadVector(e, e.elem(w, e.add(e.mul(i, n), col)), mask),
                v[0])};
          });
      storeVector(e, sum[0], e.elem(to, col), mask);
    });
  });
}

/// A constant array of the module.
static Value constantArray(Emitter &e, StringRef name,
                           ArrayRef<double> values) {
  auto module =
      e.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto type = LLVM::LLVMArrayType::get(e.f64(), values.size());
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto data = DenseElementsAttr::get(
      RankedTensorType::get({int64_t(values.size())}, e.f64()), values);
  LLVM::GlobalOp::create(top, e.loc, type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, name, data);
  return LLVM::AddressOfOp::create(e.b, e.loc, e.ptr(), name);
}

void gptc::cpu::emitRopeTable(Emitter &e, KernelContext &c,
                              gpt::RopeTableOp op) {
  const int64_t d = op.getRope().getDim(), r = op.getRope().getRotary();
  const bool half = op.getRope().getPairs() == gpt::RopePairs::Half;
  SmallVector<double> frequencies = op.getRope().inverseFrequencies();
  Value f = constantArray(e, (c.kernel.getSymName() + "_frequencies").str(),
                          frequencies);
  Value positions = c.arg(e, 0), out = c.result(e, 0);
  forShare(e, c, c.size(e, 0, 0), [&](Value t) {
    Value position = arith::SIToFPOp::create(e.b, e.loc, e.f64(),
                                             loadIndex(e, positions, t));
    Value cosines = e.elem(out, e.mul(t, 2 * d)), sines = e.at(cosines, d * 4);
    e.loop(e.cst(0), e.cst(r / 2), 1, [&](Value i) {
      auto [s, co] =
          emitSinCos(e, e.fmul(position, e.load(e.f64(), e.elem(f, i, 8))));
      Value s32 = arith::TruncFOp::create(e.b, e.loc, e.f32(), s),
            c32 = arith::TruncFOp::create(e.b, e.loc, e.f32(), co);
      Value first = half ? i : e.mul(i, 2),
            second = e.add(first, half ? r / 2 : 1);
      e.store(c32, e.elem(cosines, first));
      e.store(c32, e.elem(cosines, second));
      e.store(e.fneg(s32), e.elem(sines, first));
      e.store(s32, e.elem(sines, second));
    });
    if (r < d)
      e.loop(e.cst(r), e.cst(d), 1, [&](Value i) {
        e.store(e.constFp(e.f32(), 1), e.elem(cosines, i));
        e.store(e.constFp(e.f32(), 0), e.elem(sines, i));
      });
  });
}

void gptc::cpu::emitRotate(Emitter &e, KernelContext &c, gpt::RotateOp op) {
  const unsigned rank = c.rank(0);
  const int64_t d = c.shape(0).back(),
                rotary = op.getRotary() ? int64_t(*op.getRotary()) : d;
  const bool half = op.getPairs() == gpt::RopePairs::Half;
  Value tokens = c.size(e, 0, rank - 2), x = c.arg(e, 0), table = c.arg(e, 1),
        out = c.result(e, 0);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value t = arith::RemUIOp::create(e.b, e.loc, r, tokens);
    Value row = e.elem(x, e.mul(r, d)), to = e.elem(out, e.mul(r, d));
    Value cosines = e.elem(table, e.mul(t, 2 * d)),
          sines = e.at(cosines, d * 4);
    auto at = [&](Value base, Value i) {
      return e.load(e.f32(), e.elem(base, i));
    };
    if (rotary < d)
      e.loop(e.cst(rotary), e.cst(d), 1,
             [&](Value i) { e.store(at(row, i), e.elem(to, i)); });
    e.loop(e.cst(0), e.cst(rotary), 1, [&](Value i) {
      Value partner = half
                          ? e.select(e.lt(i, e.cst(rotary / 2)),
                                     e.add(i, rotary / 2), e.sub(i, rotary / 2))
                          : e.sub(e.add(i, 1), e.mul(e.rem(i, 2), 2));
      e.store(e.fma(at(row, partner), at(sines, i),
                    e.fmul(at(row, i), at(cosines, i))),
              e.elem(to, i));
    });
  });
}

void gptc::cpu::emitKVAppend(Emitter &e, KernelContext &c, gpt::KVAppendOp op) {
  gpt::KVCacheType type = op.getCache().getType();
  const int64_t d = type.getHeadDim(), page = type.getPage();
  Value view = c.arg(e, 0), keys = c.arg(e, 1), values = c.arg(e, 2),
        positions = c.arg(e, 3), sequences = c.arg(e, 4);
  Value tokens = c.size(e, 3, 0);
  forShare(e, c, tokens, [&](Value t) {
    KVPlace place = kvPlace(e, view, type, loadIndex(e, sequences, t),
                            loadIndex(e, positions, t));
    e.loop(e.cst(0), e.cst(type.getHeads()), 1, [&](Value h) {
      Value block =
          e.at(place.block, e.mul(h, gptc_kv_block_bytes(d, page, 4)));
      Value from = e.mul(e.add(e.mul(h, tokens), t), d);
      Value to = e.elem(e.at(block, d * page * 4),
                        e.mul(place.slot, gptc_kv_value_pitch(d)));
      e.loop(e.cst(0), e.cst(d), 1, [&](Value i) {
        e.store(e.load(e.f32(), e.elem(keys, e.add(from, i))),
                e.elem(block, e.add(e.mul(i, page), place.slot)));
        e.store(e.load(e.f32(), e.elem(values, e.add(from, i))), e.elem(to, i));
      });
    });
  });
}

void gptc::cpu::emitKVRead(Emitter &e, KernelContext &c, gpt::KVReadOp op) {
  gpt::KVCacheType type = op.getCache().getType();
  const int64_t d = type.getHeadDim(), page = type.getPage();
  Value view = c.arg(e, 0), keys = c.result(e, 0), values = c.result(e, 1);
  Value count = c.size(e, 1, 1);
  Value runs = e.load(e.ptr(), e.at(view, offsetof(gptc_kv_view, runs)));
  Value sequence =
      loadIndex(e, e.at(runs, offsetof(gptc_run_desc, sequence)), e.cst(0));
  forShare(e, c, count, [&](Value s) {
    KVPlace place = kvPlace(e, view, type, sequence, s);
    e.loop(e.cst(0), e.cst(type.getHeads()), 1, [&](Value h) {
      Value block =
          e.at(place.block, e.mul(h, gptc_kv_block_bytes(d, page, 4)));
      Value to = e.mul(e.add(e.mul(h, count), s), d);
      Value from = e.elem(e.at(block, d * page * 4),
                          e.mul(place.slot, gptc_kv_value_pitch(d)));
      e.loop(e.cst(0), e.cst(d), 1, [&](Value i) {
        e.store(
            e.load(e.f32(), e.elem(block, e.add(e.mul(i, page), place.slot))),
            e.elem(keys, e.add(to, i)));
        e.store(e.load(e.f32(), e.elem(from, i)), e.elem(values, e.add(to, i)));
      });
    });
  });
}
