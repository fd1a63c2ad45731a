//===- GemmRows.cpp - rows of A, from activations to packed tiles ---------===//
//
// Rows are normalised, then rounded or cut into bytes as they are copied, then
// packed in tiles; what the scales of bytes leave to do comes after the products.
//
//===----------------------------------------------------------------------===//
#include "ByteKernel.h"
#include "Gemm.h"
#include "Kernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

void Gemm::scaleBytes(const GemmSection &s, unsigned lane, Value panel,
                      Value sums, Value row, Value size, bool packed) {
  const RowForm &form = p.formOf(s.storage[lane]);
  const int64_t meta = (p.k + 15) / 16 * 4, word = packed ? p.mr : 1,
                next = packed ? 1 : form.pitch();
  ByteScales scales;
  scales.rows = size;
  scales.row =
      packed ? e.at(e.elem(e.at(c.scratch, form.packed),
                           e.mul(row, form.words)),
                    meta * p.mr * 4)
             : e.at(e.elem(e.at(copy, form.copied), e.mul(row, form.pitch())),
                    meta * 4);
  scales.rowStep = next * 4;
  scales.sumStep = word * 4;
  scales.panel = e.at(panelAt(s, lane, panel), (p.k + 3) / 4 * p.nr * 4);
  scales.c = sums;
  scales.ldc = p.tilePitch();
  callScaleBytes(e, scales);
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

void Gemm::copyRows(Value row0, Value rows) {
  e.loop(e.cst(0), rows, 1, [&](Value r) {
    Value from = e.elem(x, e.mul(e.add(row0, r), p.k));
    if (p.norm) {
      from = e.at(c.scratch, p.rowOffset());
      normalize(e.add(row0, r), from);
    }
    for (const RowForm &form : p.forms) {
      Value to = e.elem(e.at(copy, form.copied), e.mul(r, form.pitch()));
      form.digits
          ? callQuantizeRow(e, {form.storage, form.digits}, from, to, p.k)
          : callCopyRow(e, form.storage, from, to, p.k);
    }
  });
}

// Tiles of MR rows, each [words][MR]. Whole tiles of whole vectors need no copy.
void Gemm::pack(Value row0, Value rows) {
  const bool direct = !p.copies() && p.forms.front().words == p.k;
  e.loop(e.cst(0), rows, p.mr, [&](Value r) {
    auto to = [&](const RowForm &form, Value from, int64_t pitch) {
      Value tile = e.elem(e.at(c.scratch, form.packed),
                          e.mul(r, form.words * form.repeat));
      callPackRows(e, p.mr * form.repeat, form.repeat, from, pitch, tile,
                   form.words);
    };
    Value first = e.add(row0, r), size = e.min(e.cst(p.mr), e.sub(rows, r));
    auto copied = [&] {
      copyRows(first, size);
      for (const RowForm &form : p.forms)
        to(form, e.at(copy, form.copied), form.pitch());
    };
    if (!direct)
      return copied();
    e.ifThen(
        e.eq(size, e.cst(p.mr)),
        [&] { to(p.forms.front(), e.elem(x, e.mul(first, p.k)), p.k); },
        copied);
  });
}
