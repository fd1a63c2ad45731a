//===- GemmKernel.cpp - the loops around the micro-kernels ----------------===//
//
// Threads share the panels of all sections, of many rows first the rows; K is
// never split between them. Few rows (GemmPlan::few): weights stream once,
// straight from their storage format. Many rows: MC rows of A are packed, and
// slices of KC input features of a panel, unpacked where they are stored
// otherwise, stay in L1 while the tiles of rows pass them (Goto and van de
// Geijn, ACM TOMS 34(3), 2008). Sums go through memory between slices, so an
// element is one chain over k however it is cut; a tile's epilogue follows its
// last products. Each thread prepares the rows it multiplies for itself:
// rounded to bf16, or written in bytes (ByteKernel.h), few rows too. Where
// pairs of bf16 are multiplied, weights that lie otherwise are unpacked for any
// number of rows.
//
//===----------------------------------------------------------------------===//
#include "ByteKernel.h"
#include "Gemm.h"
#include "Kernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

// The part of [from, to) of all panels that lies in this section, in whole
// units.
std::pair<Value, Value> Gemm::panelsOf(unsigned section, int64_t base,
                                       Value from, Value to) {
  int64_t panels = panelCount(p.sections[section]);
  auto clip = [&](Value v) {
    Value in = e.min(e.max(e.sub(v, base), e.cst(0)), e.cst(panels));
    return e.select(e.eq(in, e.cst(panels)), in,
                    e.mul(e.div(in, p.unit), p.unit));
  };
  return {clip(from), clip(to)};
}

void Gemm::begin(unsigned section, Value lo, Value hi) {
  const GemmSection &s = p.sections[section];
  e.ifThen(e.lt(lo, hi), [&] {
    for (int64_t i = 0; i < 4; ++i)
      prefetch(e, panelAt(s, 0, e.add(lo, i)), 2048, /*cacheLevel=*/2);
  });
}

void Gemm::fewRows(unsigned section, Value lo, Value hi) {
  const GemmSection &s = p.sections[section];
  e.loop(lo, hi, p.group, [&](Value panel0) {
    Value panels = e.min(e.cst(p.group), e.sub(hi, panel0));
    // Four rows of digits fill the registers.
    coverRows(m, p.cutsRows() ? 4 : p.mr, [&](Value r0, int64_t rows) {
      for (unsigned lane = 0; lane < s.weights.size(); ++lane) {
        const gpt::Storage storage = s.storage[lane];
        const RowForm &form = p.formOf(storage);
        const int64_t lda = p.copies() ? form.pitch() : p.k;
        Value a = p.copies() ? e.at(copy, form.copied) : x;
        Value from = e.cst(0);
        const bool last = lane + 1 == s.weights.size();
        Value after = panelAt(s, last ? 0 : lane + 1,
                              last ? e.add(panel0, p.group) : panel0);
        for (int64_t n = panelsFor(e.target, rows, {storage, form.digits});
             n >= 1; n /= 2) {
          MicroKernel mk{rows, n};
          mk.storage = storage;
          mk.stream = true;
          mk.digits = form.digits;
          Value to = e.mul(e.div(panels, n), n);
          e.loop(from, to, n, [&](Value q) {
            Value panel = e.add(panel0, q);
            Value next = e.select(e.lt(e.add(q, n), panels),
                                  panelAt(s, lane, e.add(panel, n)), after);
            callMicroKernel(e, mk,
                            operands(e.elem(a, e.mul(r0, lda)), lda,
                                     panelAt(s, lane, panel), stride(s, lane),
                                     tileAt(lane, e.cst(0), q),
                                     steps(storage, e.cst(p.k)), next));
          });
          from = to;
        }
        if (storage == gpt::Storage::I8x4)
          e.loop(e.cst(0), panels, 1, [&](Value q) {
            scaleBytes(s, lane, e.add(panel0, q), tileAt(lane, e.cst(0), q), r0,
                       e.cst(rows), /*packed=*/false);
          });
      }
      emitEpilogue(e, c, p, section, r0, e.cst(rows), panel0, panels, tile);
    });
  });
}

void Gemm::clear(const PanelRows &at, Value tileRow, Value size) {
  e.loop(e.cst(0), size, 1, [&](Value r) {
    Value row = tileAt(at.lane, e.add(tileRow, r), at.panel);
    for (int64_t i = 0; i < p.nr; i += e.target.lanes)
      e.store(e.constFp(e.vec(e.f32()), 0), e.at(row, i * 4));
  });
}

void Gemm::finish(const PanelRows &at, Value tileRow, Value size) {
  const GemmSection &s = p.sections[at.section];
  if (s.storage[at.lane] == gpt::Storage::I8x4)
    scaleBytes(s, at.lane, e.add(at.panel0, at.panel),
               tileAt(at.lane, tileRow, at.panel), tileRow, size,
               /*packed=*/true);
  if (at.lane + 1 < s.weights.size())
    return;
  Value first = e.mul(e.div(at.panel, p.unit), p.unit),
        done = e.add(at.panel, 1);
  Value ends = e.select(e.le(at.panels, done), e.constInt(e.i1(), 1),
                        e.eq(e.rem(done, p.unit), e.cst(0)));
  e.ifThen(ends, [&] {
    emitEpilogue(e, c, p, at.section, e.add(at.row0, tileRow), size,
                 e.add(at.panel0, first), e.sub(done, first),
                 tileAt(0, tileRow, first));
  });
}

// Adds the products of input features k0 to k0 + KC of one panel for all rows.
// A tile is finished behind the last slice's products, while its sums are in L1
// and the next tile's products hide how long its results take to memory.
void Gemm::slice(const PanelRows &at, Value k0) {
  const GemmSection &s = p.sections[at.section];
  const unsigned lane = at.lane;
  Value panel = e.add(at.panel0, at.panel);
  const gpt::Storage storage = s.storage[lane],
                     multiplied = p.multiplied(storage);
  const RowForm &form = p.formOf(storage);
  const bool blocks = form.digits && isBlock(storage);
  // i8x4 has its scales at the end of a panel.
  const int64_t blockBytes =
      storage == gpt::Storage::I8x4 ? 32 * p.nr : panelBytes(storage, p.nr, 32);
  Value depth = e.min(e.cst(p.kc), e.sub(e.cst(p.k), k0));
  Value begins = e.eq(k0, e.cst(0)), ends = e.le(e.cst(p.k), e.add(k0, p.kc));
  // KC is whole blocks of any format.
  auto sliceAt = [&](Value of, Value k) {
    return e.at(panelAt(s, lane, of), e.mul(e.div(k, 32), blockBytes));
  };
  Value stored = sliceAt(panel, k0), b = stored;
  if (storage != multiplied) {
    callUnpackPanel(e, storage, stored, unpacked, depth, multiplied);
    b = unpacked;
  } else if (blocks) {
    callUnpackCodes(e, {storage, form.digits}, stored, unpacked,
                    e.div(depth, 32));
    b = unpacked;
  }
  bool pairs = multiplied == gpt::Storage::BF16x2 && e.target.bf16Dot;
  Value words = form.digits ? byteRowWord(e, {storage, form.digits}, k0)
                            : e.div(k0, pairs ? 2 : 1);
  // While tiles pass this slice, the next one comes to L2, of the next panel or
  // of the next inputs: as much in each step of a tile as keeps it out of the
  // way of the products.
  MicroKernel mk{p.mr};
  mk.storage = multiplied;
  mk.accumulate = true;
  mk.packedRows = p.mr * form.repeat;
  mk.repeat = form.repeat;
  mk.digits = form.digits;
  mk.ahead = 64;
  const int64_t stepInputs = blocks                               ? 32
                             : form.digits                        ? 4
                             : multiplied == gpt::Storage::BF16x2 ? 2
                                                                  : 1,
                part = p.kc / stepInputs * 64;
  Value next = e.select(e.lt(e.add(at.panel, 1), at.panels),
                        sliceAt(e.add(panel, 1), k0),
                        sliceAt(e.select(ends, e.add(panel, 1), at.panel0),
                                e.select(ends, e.cst(0), e.add(k0, p.kc))));
  auto run = [&](Value tileRow, Value r0, int64_t size, Value ahead) {
    mk.rows = size;
    Value a = e.add(e.mul(tileRow, form.words), e.mul(words, p.mr));
    callMicroKernel(e, mk,
                    operands(e.elem(e.at(c.scratch, form.packed),
                                    e.mul(e.add(a, r0), form.repeat)),
                             mk.packedRows, b, 0,
                             tileAt(lane, e.add(tileRow, r0), at.panel),
                             steps(multiplied, depth), ahead));
  };
  Value parts = e.cst((p.kc / 32 * blockBytes + part - 1) / part);
  e.loop(e.cst(0), at.rows, p.mr, [&](Value t) {
    Value size = e.min(e.cst(p.mr), e.sub(at.rows, t)), index = e.div(t, p.mr);
    Value ahead =
        e.select(e.lt(index, parts), e.at(next, e.mul(index, part)), b);
    e.ifThen(begins, [&] { clear(at, t, size); });
    e.ifThen(
        e.eq(size, e.cst(p.mr)), [&] { run(t, e.cst(0), p.mr, ahead); },
        [&] {
          coverRows(size, p.mr,
                    [&](Value r0, int64_t some) { run(t, r0, some, b); });
        });
    e.ifThen(ends, [&] { finish(at, t, size); });
  });
}

void Gemm::manyRows(unsigned section, Value lo, Value hi, Value row0,
                    Value rows) {
  e.loop(lo, hi, p.group, [&](Value panel0) {
    Value panels = e.min(e.cst(p.group), e.sub(hi, panel0));
    for (unsigned lane = 0; lane < p.sections[section].weights.size(); ++lane)
      e.loop(e.cst(0), e.cst(p.k), p.kc, [&](Value k0) {
        e.loop(e.cst(0), panels, 1, [&](Value panel) {
          slice({section, lane, panel0, panels, panel, row0, rows}, k0);
        });
      });
  });
}

/// Into how many parts threads cut the rows; what is left of them cuts the
/// panels. Rows are prepared once for each cut of the panels, weights read once
/// for each cut of the rows: a power of two that leaves enough rows.
static Value rowParts(Emitter &e, KernelContext &c, Value rows) {
  constexpr int64_t leastRows = 96;
  Value parts = e.cst(1);
  for (int64_t n = 2; n <= 64; n *= 2) {
    Value fits = e.le(e.cst(n * leastRows), rows);
    Value even =
        e.eq(arith::RemUIOp::create(e.b, e.loc, c.threads, e.cst(n)), e.cst(0));
    parts = e.select(arith::AndIOp::create(e.b, e.loc, fits, even), e.cst(n),
                     parts);
  }
  return parts;
}

void Gemm::eachSection(Value part, Value parts,
                       function_ref<void(unsigned, Value, Value)> body) {
  int64_t total = 0, base = 0;
  for (const GemmSection &s : p.sections)
    total += panelCount(s);
  Value from = cutOf(e, e.cst(total), part, parts),
        to = cutOf(e, e.cst(total), e.add(part, 1), parts);
  for (unsigned i = 0; i < p.sections.size(); ++i) {
    auto [lo, hi] = panelsOf(i, base, from, to);
    body(i, lo, hi);
    base += panelCount(p.sections[i]);
  }
}

void Gemm::allFewRows() {
  // Memory begins to stream while rows are copied.
  eachSection(c.thread, c.threads,
              [&](unsigned i, Value lo, Value hi) { begin(i, lo, hi); });
  if (p.copies())
    copyRows(e.cst(0), m);
  eachSection(c.thread, c.threads,
              [&](unsigned i, Value lo, Value hi) { fewRows(i, lo, hi); });
}

void Gemm::allManyRows() {
  Value parts = rowParts(e, c, m);
  auto of = [&](Value x) {
    return Value(arith::DivUIOp::create(e.b, e.loc, x, parts));
  };
  Value part = arith::RemUIOp::create(e.b, e.loc, c.thread, parts);
  // Four rows more or less of a part cost less than a whole tile would.
  auto cut = [&](Value i) {
    return e.min(e.mul(cutOf(e, e.ceilDiv(m, 4), i, parts), 4), m);
  };
  Value from = cut(part), to = cut(e.add(part, 1));
  Value tiles = e.ceilDiv(e.sub(to, from), p.mr);
  // As few blocks of rows as there can be, of about the same size.
  Value blocks = e.ceilDiv(e.mul(tiles, p.mr), p.mc);
  auto border = [&](Value i) {
    return e.min(e.add(from, e.mul(cutOf(e, tiles, i, blocks), p.mr)), to);
  };
  e.loop(e.cst(0), blocks, 1, [&](Value block) {
    Value row0 = border(block);
    Value rows = e.sub(border(e.add(block, 1)), row0);
    pack(row0, rows);
    eachSection(of(c.thread), of(c.threads),
                [&](unsigned i, Value lo, Value hi) {
                  manyRows(i, lo, hi, row0, rows);
                });
  });
}

LogicalResult gptc::cpu::emitGemm(Emitter &e, KernelContext &c, Operation *op) {
  GemmPlan plan = planGemm(c, e.target);
  for (const GemmSection &s : plan.sections)
    for (unsigned w : s.weights)
      if (!c.storage(w))
        return op->emitOpError(
            "expected a stored weight (an ml_program.global with gpt.stored), "
            "got an activation; use gpt.matmul "
            "for products of two activations");
  for (const GemmSection &s : plan.sections)
    for (gpt::Storage stored : s.storage)
      if (plan.inputs == InputPrecision::INT8 && !isOfBytes(stored))
        return op->emitOpError("expected weights of i8x4, q8_0x4, q4_0 or "
                               "q4_1 with inputs of int8, got ")
               << stringifyStorage(stored);
  // Sums of bytes, |q| <= 127 and codes <= 255, fit 31 bits.
  constexpr int64_t mostInputs = INT32_MAX / (127 * 255);
  if (plan.inputs == InputPrecision::INT8 && plan.k > mostInputs)
    return op->emitOpError("expected at most ")
           << mostInputs << " input features with --precision=int8, got "
           << plan.k;
  Gemm g{e,
         c,
         plan,
         c.rows(e, 0),
         c.arg(e, plan.x),
         e.at(c.scratch, plan.copyOffset()),
         e.at(c.scratch, plan.unpackedOffset()),
         e.at(c.scratch, plan.tileOffset())};
  Value few = e.lt(g.m, e.cst(plan.few()));
  if (plan.unpacksFew)
    few = e.constInt(e.i1(), 0);
  e.ifThen(
      few, [&] { g.allFewRows(); }, [&] { g.allManyRows(); });
  return success();
}

int64_t gptc::cpu::gemmScratch(gpt::KernelOp kernel, const TargetDesc &t) {
  KernelContext c{kernel, {}, {}, {}, {}, {}};
  return planGemm(c, t).scratchBytes();
}
