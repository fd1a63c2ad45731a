//===- GemmEpilogue.cpp - from accumulators to results --------------------===//
//
// Reads the accumulator tile row by row in vectors of columns, runs the
// section's region on them and stores the result or appends it to the KV cache.
// Where vectors would cross a head or a rotary half, columns go one at a time.
// Of an argmax, the best of each block of columns stays in registers until the
// block ends; a tile holds whole blocks (the schedule's unit).
//
//===----------------------------------------------------------------------===//
#include "Argmax.h"
#include "GemmPlan.h"
#include "Kernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

namespace {

struct Epilogue {
  Emitter &e;
  KernelContext &c;
  const GemmPlan &plan;
  const GemmSection &s;
  Value tile, panel0;
  Value table, cacheView, positions, sequences;
  Values biases, residuals, outs;
  int64_t lanes; // 0: scalars

  Type type() { return lanes ? Type(e.vec(lanes, e.f32())) : e.f32(); }
  bool tails() { return lanes && s.n % lanes != 0; }

  Value tileAt(unsigned lane, Value row, Value column) {
    return e.elem(tile, e.add(e.add(e.mul(row, plan.tilePitch()), column),
                              lane * plan.lanePitch()));
  }
  Value maybeMasked(Value p, Value mask) {
    return mask ? e.loadMasked(cast<VectorType>(type()), p, mask)
                : e.load(type(), p);
  }
  void addBias(Value rows, Value columns);
  void row(Value row, Value globalRow, Value columns);
  /// What the region makes of a vector of columns; `mask` of those that exist,
  /// or null.
  Values valuesAt(Value row, Value globalRow, Value column, Value mask);
  Value maskAt(Value column) {
    return tails() ? e.firstLanes(e.sub(e.cst(s.n), global(column)), lanes)
                   : Value();
  }
  Value global(Value column) { return e.add(e.mul(panel0, plan.nr), column); }
  void column(Value row, Value globalRow, Value column, const KVPlace &place);
  void blocks(Value row, Value globalRow, Value columns);
  Value partner(Value row, Value column, Value inHead, Value acc);
  Values region(ValueRange args);
  void append(Value v, Value column, const KVPlace &place);
};

} // namespace

/// Vectors of columns must not cross heads, rotary halves, nor the end of the
/// channels that rotate.
static int64_t columnLanes(const GemmPlan &p, const GemmSection &s,
                           const TargetDesc &t) {
  if (!s.rope && s.append == gpt::Append::None)
    return t.lanes;
  int64_t run = !s.rope                           ? p.headDim
                : *s.rope == gpt::RopePairs::Half ? p.rotary / 2
                                                  : p.rotary;
  return run % t.lanes || p.headDim % t.lanes ? 0 : t.lanes;
}

/// A rotary partner needs its own bias, so the tile gets them first.
void Epilogue::addBias(Value rows, Value columns) {
  if (!s.rope || !biases[0])
    return;
  e.loop(e.cst(0), rows, 1, [&](Value r) {
    e.loop(e.cst(0), columns, e.target.lanes, [&](Value col) {
      Value p = tileAt(0, r, col), global = e.add(e.mul(panel0, plan.nr), col);
      Type vt = e.vec(e.f32());
      e.store(e.fadd(e.load(vt, p), e.load(vt, e.elem(biases[0], global))), p);
    });
  });
}

Value Epilogue::partner(Value row, Value column, Value inHead, Value acc) {
  const int64_t half = plan.rotary / 2;
  Value other;
  if (*s.rope == gpt::RopePairs::Half) {
    Value offset =
        e.select(e.lt(inHead, e.cst(half)), e.cst(half), e.cst(-half));
    other = e.load(type(), tileAt(0, row, e.add(column, offset)));
  } else if (!lanes) {
    Value odd = e.rem(inHead, 2);
    other =
        e.load(type(), tileAt(0, row, e.sub(e.add(column, 1), e.mul(odd, 2))));
  } else {
    SmallVector<int64_t> swap;
    for (int64_t i = 0; i < lanes; ++i)
      swap.push_back(i ^ 1);
    other = e.shuffle(acc, acc, swap);
  }
  // Channels that do not rotate: its factor is 0.
  if (plan.rotary == plan.headDim)
    return other;
  return e.select(e.lt(inHead, e.cst(plan.rotary)), other,
                  e.constFp(type(), 0));
}

Values Epilogue::region(ValueRange args) {
  if (!s.epilogue)
    return {args[0]};
  Block &block = s.epilogue->front();
  IRMapping map;
  map.map(block.getArguments(), args);
  for (Operation &op : block.without_terminator()) {
    Values in;
    for (Value v : op.getOperands())
      in.push_back(map.lookup(v));
    Value r = emitElementwise(e, &op, in);
    if (!r)
      return {};
    map.map(op.getResult(0),
            isa<arith::ConstantOp>(op) ? e.splat(r, lanes) : r);
  }
  Values yields;
  for (Value v : block.getTerminator()->getOperands())
    yields.push_back(map.lookup(v));
  return yields;
}

void Epilogue::append(Value v, Value column, const KVPlace &place) {
  const int64_t d = plan.cacheType.getHeadDim(),
                page = plan.cacheType.getPage();
  Value head = e.div(column, d), inHead = e.rem(column, d);
  Value block = e.at(place.block, e.mul(head, gptc_kv_block_bytes(d, page, 4)));
  if (s.append == gpt::Append::Values) {
    Value at = e.add(e.mul(place.slot, gptc_kv_value_pitch(d)), inHead);
    e.store(v, e.elem(e.at(block, d * page * 4), at));
    return;
  }
  Value first = e.elem(block, e.add(e.mul(inHead, page), place.slot));
  for (int64_t i = 0; i < std::max<int64_t>(lanes, 1); ++i)
    e.store(e.lane(v, i), e.at(first, i * page * 4));
}

Values Epilogue::valuesAt(Value row, Value globalRow, Value column,
                          Value mask) {
  Value global = this->global(column);
  Values args;
  for (unsigned lane = 0; lane < s.weights.size(); ++lane) {
    Value acc = e.load(type(), tileAt(lane, row, column));
    if (biases[lane] && !s.rope)
      acc = e.fadd(acc, e.load(type(), e.elem(biases[lane], global)));
    args.push_back(acc);
  }
  if (s.rope) {
    Value inHead = e.rem(global, plan.headDim);
    args.push_back(partner(row, column, inHead, args[0]));
    Value at = e.add(e.mul(globalRow, 2 * plan.headDim), inHead);
    args.push_back(e.load(type(), e.elem(table, at)));
    args.push_back(e.load(type(), e.elem(table, e.add(at, plan.headDim))));
  }
  Value flat = e.add(e.mul(globalRow, s.n), global);
  for (auto [r, residual] : llvm::zip(residuals, plan.residuals))
    args.push_back(maybeMasked(e.elem(r, residual.row ? global : flat), mask));
  return region(args);
}

void Epilogue::column(Value row, Value globalRow, Value column,
                      const KVPlace &place) {
  Value mask = maskAt(column), global = this->global(column);
  Values yields = valuesAt(row, globalRow, column, mask);
  if (yields.empty())
    return;
  Value flat = e.add(e.mul(globalRow, s.n), global);
  bool appends = s.append != gpt::Append::None;
  if (appends)
    append(yields[0], global, place);
  for (auto [out, y] : llvm::zip(outs, ArrayRef(yields).drop_front(appends)))
    if (mask)
      e.storeMasked(y, e.elem(out, flat), mask);
    else
      e.store(y, e.elem(out, flat));
}

void Epilogue::blocks(Value row, Value globalRow, Value columns) {
  const int64_t count = llvm::divideCeil(s.n, plan.argmax);
  e.loop(e.cst(0), columns, plan.argmax, [&](Value first) {
    LaneBest none = LaneBest::none(e);
    Value end = e.min(e.add(first, plan.argmax), columns);
    Values best = e.loop(first, end, lanes, {none.value, none.column},
                         [&](Value col, ValueRange v) -> Values {
                           Value mask = maskAt(col);
                           Values yields = valuesAt(row, globalRow, col, mask);
                           if (yields.empty()) // an error, said at the op
                             return {v[0], v[1]};
                           LaneBest next = LaneBest{v[0], v[1]}.with(
                               e, yields[0], global(col), mask);
                           return {next.value, next.column};
                         });
    LaneBest found = LaneBest{best[0], best[1]}.ofLanes(e);
    Value at =
        e.add(e.mul(globalRow, count), e.div(global(first), plan.argmax));
    e.store(found.value, e.elem(outs[0], at));
    e.store(found.column, e.elem(outs[1], at));
  });
}

void Epilogue::row(Value row, Value globalRow, Value columns) {
  if (plan.argmax)
    return blocks(row, globalRow, columns);
  KVPlace place;
  if (s.append != gpt::Append::None) {
    auto index = [&](Value ids) {
      return Value(arith::ExtSIOp::create(
          e.b, e.loc, e.i64(), e.load(e.i32(), e.elem(ids, globalRow))));
    };
    place = kvPlace(e, cacheView, plan.cacheType, index(sequences),
                    index(positions));
  }
  e.loop(e.cst(0), columns, std::max<int64_t>(lanes, 1),
         [&](Value col) { column(row, globalRow, col, place); });
}

void gptc::cpu::emitEpilogue(Emitter &outer, KernelContext &kc,
                             const GemmPlan &plan, unsigned section, Value row0,
                             Value rows, Value panel0, Value panels,
                             Value tile) {
  std::string fn =
      fmt::format("{}_epilogue{}", kc.kernel.getSymName().str(), section);
  outer.call(
      fn, {kc.args, kc.dims, row0, rows, panel0, panels, tile},
      [&](Emitter &e, ValueRange v) {
        KernelContext c = kc;
        c.args = v[0];
        c.dims = v[1];
        const GemmSection &s = plan.sections[section];
        Epilogue ep{
            e,  c,  plan, s,  v[6], v[4], {},
            {}, {}, {},   {}, {},   {},   columnLanes(plan, s, e.target)};
        for (int b : s.biases)
          ep.biases.push_back(b >= 0 ? c.arg(e, b) : Value());
        for (const GemmPlan::Residual &r : plan.residuals)
          ep.residuals.push_back(c.arg(e, r.argument));
        if (s.rope)
          ep.table = c.arg(e, plan.ropeTable);
        if (s.append != gpt::Append::None) {
          ep.cacheView = c.arg(e, plan.cache);
          ep.positions = c.arg(e, plan.positions);
          ep.sequences = c.arg(e, plan.sequences);
        }
        for (unsigned i = 0; i < s.results; ++i)
          ep.outs.push_back(c.result(e, s.result + i));
        Value columns = e.min(e.mul(v[5], plan.nr),
                              e.sub(e.cst(s.n), e.mul(v[4], plan.nr)));
        ep.addBias(v[3], columns);
        e.loop(e.cst(0), v[3], 1,
               [&](Value r) { ep.row(r, e.add(v[2], r), columns); });
      });
}

Value gptc::cpu::kvBlock(Emitter &e, Value view, gpt::KVCacheType type,
                         Value sequence, Value index) {
  Value pool = e.load(e.ptr(), view);
  Value pages = e.load(e.ptr(), e.at(view, offsetof(gptc_kv_view, pages)));
  Value maxPages =
      e.load(e.i64(), e.at(view, offsetof(gptc_kv_view, max_pages)));
  Value number =
      e.load(e.i32(), e.elem(pages, e.add(e.mul(sequence, maxPages), index)));
  number = arith::ExtSIOp::create(e.b, e.loc, e.i64(), number);
  int64_t stride = type.getLayers() * type.getHeads() *
                   gptc_kv_block_bytes(type.getHeadDim(), type.getPage(), 4);
  return e.at(pool, e.mul(number, stride));
}

KVPlace gptc::cpu::kvPlace(Emitter &e, Value view, gpt::KVCacheType type,
                           Value sequence, Value position) {
  return {kvBlock(e, view, type, sequence, e.div(position, type.getPage())),
          e.rem(position, type.getPage())};
}
