//===- GemmKernel.cpp - the loops around the micro-kernels ----------------===//
//
// Threads share the panels of all sections; K is never split. Few rows (< MR):
// weights stream once, straight from their storage format. Many rows: MC rows
// of A are packed, each unit of panels is unpacked to f32 once for them, and
// full register tiles run over it (Goto and van de Geijn, ACM TOMS 34(3),
// 2008). Each thread normalises all rows for itself where the op has a norm.
//
//===----------------------------------------------------------------------===//
#include "GemmPlan.h"
#include "Kernels.h"
#include "MicroKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

namespace {

struct Gemm {
  Emitter &e;
  KernelContext &c;
  const GemmPlan &p;
  Value m, x, unpacked, tile;

  /// Row counts of the tiles that cover fewer than MR rows.
  SmallVector<int64_t> tailRows() {
    SmallVector<int64_t> sizes;
    for (int64_t r = 1; r < p.mr; r *= 2)
      sizes.insert(sizes.begin(), r);
    return sizes;
  }
  /// body(r0, R) for tiles of falling size that cover [0, rows).
  void coverRows(Value rows, function_ref<void(Value, int64_t)> body) {
    Value from = e.cst(0);
    for (int64_t r : tailRows()) {
      Value to = e.mul(e.div(rows, r), r);
      e.loop(from, to, r, [&](Value r0) { body(r0, r); });
      from = to;
    }
  }
  int64_t stride(const GemmSection &s, unsigned lane) {
    return panelBytes(s.storage[lane], p.nr, p.k);
  }
  Value panelAt(const GemmSection &s, unsigned lane, Value panel) {
    return e.at(c.arg(e, s.weights[lane]), e.mul(panel, stride(s, lane)));
  }
  MicroOperands operands(Value a, Value b, int64_t panelStride, Value cAt) {
    return {
        a,   e.cst(p.k),           b,         e.cst(panelStride), e.cst(p.nr),
        cAt, e.cst(p.tilePitch()), e.cst(p.k)};
  }
  Value tileAt(unsigned lane, Value row, Value panel) {
    Value columns = e.add(e.mul(panel, p.nr), e.mul(row, p.tilePitch()));
    return e.elem(tile, e.add(columns, lane * p.lanePitch()));
  }

  /// `rowsAt`: the rows as they are multiplied, [m, K].
  void fewRows(unsigned section, Value lo, Value hi, Value rowsAt);
  void manyRows(unsigned section, Value lo, Value hi, Value packed, Value row0,
                Value rows);
  void pack(Value packed, Value row0, Value rows);
  /// Row r of x normalised, at `to`.
  void normalize(Value r, Value to);
  std::pair<Value, Value> panelsOf(unsigned section, int64_t base, Value from,
                                   Value to);
};

} // namespace

// The part of [from, to) of all panels that lies in this section, in whole
// units.
std::pair<Value, Value> Gemm::panelsOf(unsigned section, int64_t base,
                                       Value from, Value to) {
  int64_t panels = (p.sections[section].n + p.nr - 1) / p.nr;
  auto clip = [&](Value v) {
    Value in = e.min(e.max(e.sub(v, base), e.cst(0)), e.cst(panels));
    return e.select(e.eq(in, e.cst(panels)), in,
                    e.mul(e.div(in, p.unit), p.unit));
  };
  return {clip(from), clip(to)};
}

void Gemm::fewRows(unsigned section, Value lo, Value hi, Value rowsAt) {
  const GemmSection &s = p.sections[section];
  e.loop(lo, hi, p.group, [&](Value panel0) {
    Value panels = e.min(e.cst(p.group), e.sub(hi, panel0));
    coverRows(m, [&](Value r0, int64_t rows) {
      Value a = e.elem(rowsAt, e.mul(r0, p.k));
      for (unsigned lane = 0; lane < s.weights.size(); ++lane) {
        Value from = e.cst(0);
        for (int64_t n = panelsFor(e.target, rows, s.storage[lane]); n >= 1;
             n /= 2) {
          MicroKernel mk{rows, n};
          mk.storage = s.storage[lane];
          mk.stream = true;
          Value to = e.mul(e.div(panels, n), n);
          e.loop(from, to, n, [&](Value q) {
            callMicroKernel(e, mk,
                            operands(a, panelAt(s, lane, e.add(panel0, q)),
                                     stride(s, lane),
                                     tileAt(lane, e.cst(0), q)));
          });
          from = to;
        }
      }
      emitEpilogue(e, c, p, section, r0, e.cst(rows), panel0, panels, tile);
    });
  });
}

void Gemm::normalize(Value r, Value to) {
  const bool shifts = p.beta >= 0;
  Values args{e.elem(x, e.mul(r, p.k)), to, c.arg(e, p.gamma)};
  if (shifts)
    args.push_back(c.arg(e, p.beta));
  e.call(fmt::format("norm_{}{}_k{}_eps{:x}", stringifyNormKind(*p.norm).str(),
                     shifts ? "_beta" : "", p.k,
                     llvm::bit_cast<uint64_t>(p.eps)),
         args, [&](Emitter &inner, ValueRange v) {
           NormRow norm{*p.norm, p.k, p.eps, v[2], shifts ? v[3] : Value()};
           emitNormRow(inner, norm, v[0], v[1]);
         });
}

// Packed A: tiles of MR rows, each [K][MR].
void Gemm::pack(Value packed, Value row0, Value rows) {
  e.loop(e.cst(0), rows, 1, [&](Value r) {
    Value from = e.elem(x, e.mul(e.add(row0, r), p.k));
    if (p.norm) {
      from = e.at(c.scratch, p.rowOffset());
      normalize(e.add(row0, r), from);
    }
    Value to = e.elem(packed,
                      e.add(e.mul(e.div(r, p.mr), p.mr * p.k), e.rem(r, p.mr)));
    e.loop(e.cst(0), e.cst(p.k), 1, [&](Value k) {
      e.store(e.load(e.f32(), e.elem(from, k)), e.elem(to, e.mul(k, p.mr)));
    });
  });
}

void Gemm::manyRows(unsigned section, Value lo, Value hi, Value packed,
                    Value row0, Value rows) {
  const GemmSection &s = p.sections[section];
  const int64_t f32Panel = p.k * p.nr * 4;
  e.loop(lo, hi, p.unit, [&](Value panel0) {
    Value panels = e.min(e.cst(p.unit), e.sub(hi, panel0));
    auto source = [&](unsigned lane, Value q) {
      if (s.storage[lane] == gpt::Storage::F32)
        return panelAt(s, lane, e.add(panel0, q));
      return e.at(unpacked,
                  e.add(e.mul(q, f32Panel), lane * p.unit * f32Panel));
    };
    for (unsigned lane = 0; lane < s.weights.size(); ++lane)
      if (s.storage[lane] != gpt::Storage::F32)
        e.loop(e.cst(0), panels, 1, [&](Value q) {
          callUnpackPanel(e, s.storage[lane],
                          panelAt(s, lane, e.add(panel0, q)), source(lane, q),
                          e.cst(p.k));
        });
    e.loop(e.cst(0), rows, p.mr, [&](Value t) {
      Value a = e.elem(packed, e.mul(t, p.k));
      Value count = e.min(e.cst(p.mr), e.sub(rows, t));
      auto run = [&](Value r0, int64_t size) {
        MicroKernel mk{size};
        mk.packedRows = p.mr;
        for (unsigned lane = 0; lane < s.weights.size(); ++lane)
          e.loop(e.cst(0), panels, 1, [&](Value q) {
            callMicroKernel(e, mk,
                            operands(e.elem(a, r0), source(lane, q), f32Panel,
                                     tileAt(lane, r0, q)));
          });
      };
      e.ifThen(
          e.eq(count, e.cst(p.mr)), [&] { run(e.cst(0), p.mr); },
          [&] { coverRows(count, run); });
      emitEpilogue(e, c, p, section, e.add(row0, t), count, panel0, panels,
                   tile);
    });
  });
}

LogicalResult gptc::cpu::emitGemm(Emitter &e, KernelContext &c, Operation *op) {
  GemmPlan plan = planGemm(c);
  for (const GemmSection &s : plan.sections)
    for (unsigned w : s.weights)
      if (!c.storage(w))
        return op->emitOpError(
            "expected a stored weight (an ml_program.global with gpt.stored), "
            "got an activation; use gpt.matmul "
            "for products of two activations");
  Gemm g{e,
         c,
         plan,
         c.rows(e, 0),
         c.arg(e, plan.x),
         e.at(c.scratch, plan.unpackedOffset()),
         e.at(c.scratch, plan.tileOffset())};
  int64_t total = 0;
  for (const GemmSection &s : plan.sections)
    total += (s.n + plan.nr - 1) / plan.nr;
  auto [from, to] = c.share(e, e.cst(total));
  auto sections = [&](function_ref<void(unsigned, Value, Value)> body) {
    int64_t base = 0;
    for (unsigned i = 0; i < plan.sections.size(); ++i) {
      auto [lo, hi] = g.panelsOf(i, base, from, to);
      body(i, lo, hi);
      base += (plan.sections[i].n + plan.nr - 1) / plan.nr;
    }
  };
  e.ifThen(
      e.lt(g.m, e.cst(plan.mr)),
      [&] {
        if (plan.norm)
          e.loop(e.cst(0), g.m, 1, [&](Value r) {
            g.normalize(r, e.elem(c.scratch, e.mul(r, plan.k)));
          });
        sections([&](unsigned i, Value lo, Value hi) {
          g.fewRows(i, lo, hi, plan.norm ? c.scratch : g.x);
        });
      },
      [&] {
        e.loop(e.cst(0), g.m, plan.mc, [&](Value row0) {
          Value rows = e.min(e.cst(plan.mc), e.sub(g.m, row0));
          g.pack(c.scratch, row0, rows);
          sections([&](unsigned i, Value lo, Value hi) {
            g.manyRows(i, lo, hi, c.scratch, row0, rows);
          });
        });
      });
  return success();
}

int64_t gptc::cpu::gemmScratch(gpt::KernelOp kernel) {
  KernelContext c{kernel, {}, {}, {}, {}, {}};
  return planGemm(c).scratchBytes();
}
