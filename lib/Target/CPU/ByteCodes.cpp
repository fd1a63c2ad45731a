//===- ByteCodes.cpp - codes of stored blocks -----------------------------===//
#include "ByteKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static constexpr int64_t blockK = 32;

Value gptc::cpu::codesAt(Emitter &e, Storage storage, Value block, int64_t g,
                         int64_t column) {
  const int64_t nr = e.target.panelWidth();
  const bool nibbles = isNibbles(storage);
  const int64_t first = nr * (storage == Storage::Q4_1 ? 4 : 2);
  Value v =
      e.load(e.vec(e.i32()),
             e.at(block, first + ((nibbles ? g / 2 : g) * nr + column) * 4));
  Type t = v.getType();
  if (nibbles && g % 2)
    v = arith::ShRUIOp::create(e.b, e.loc, v, e.constInt(t, 4));
  if (nibbles)
    v = arith::AndIOp::create(e.b, e.loc, v, e.constInt(t, 0x0f0f0f0f));
  return v;
}

std::pair<Value, Value> gptc::cpu::scalesAt(Emitter &e, Storage storage,
                                            Value block, int64_t column) {
  const int64_t nr = e.target.panelWidth();
  Type half = e.vec(e.b.getF16Type());
  Value at = e.at(block, column * 2), low;
  Value d = halfToFloat(e, e.load(half, at));
  if (storage == Storage::Q4_1)
    low = halfToFloat(e, e.load(half, e.at(at, nr * 2)));
  return {d, low};
}

/// Codes of four bits times 16.
static Value timesSixteen(Emitter &e, Value codes) {
  return arith::ShLIOp::create(e.b, e.loc, codes,
                               e.constInt(codes.getType(), 4));
}

void gptc::cpu::callUnpackCodes(Emitter &outer, ByteForm form, Value panel,
                                Value out, Value blocks) {
  const int64_t nr = outer.target.panelWidth();
  const Storage storage = form.storage;
  outer.call(
      fmt::format("unpack_codes_{}{}_n{}", gpt::stringifyStorage(storage).str(),
                  isTwelveBits(form) ? "_twice" : "", nr),
      {panel, out, blocks}, [&](Emitter &e, ValueRange v) {
        const int64_t stored = panelBytes(storage, nr, blockK);
        e.loop(e.cst(0), v[2], 1, [&](Value step) {
          Value from = e.elem(v[0], step, stored),
                to = e.elem(v[1], step, unpackedBlockBytes(form, nr)),
                numbers = e.at(to, unpackedBlockBytes(form, nr) - 2 * nr * 4);
          for (int64_t i = 0; i < nr; i += e.target.lanes) {
            for (int64_t g = 0; g < blockK / 4; ++g) {
              Value codes = codesAt(e, storage, from, g, i),
                    at = e.at(to, (g * nr + i) * 4);
              if (isTwelveBits(form)) {
                e.store(timesSixteen(e, codes), at);
                at = e.at(at, blockK * nr);
              }
              e.store(codes, at);
            }
            auto [d, low] = scalesAt(e, storage, from, i);
            e.store(d, e.at(numbers, i * 4));
            if (low)
              e.store(low, e.at(numbers, (nr + i) * 4));
          }
        });
      });
}
