// Ops in which the lanes of a warp meet: shuffles, votes, matches, reductions.
#include "Gather.h"

namespace emu::EMU_LEVEL {

namespace {

enum Shuffle : uint8_t { Up, Down, Butterfly, Index };

// The lane that each lane reads, and a bit where that is in its segment.
template <Shuffle mode>
uint32_t sources(const uint32_t *b, const uint32_t *c, int32_t *from) {
  uint32_t isInside[32];
  for (int at = 0; at < 32; ++at) {
    int by = b[at] & 31, clamp = c[at] & 31, segment = c[at] >> 8 & 31;
    int low = at & segment, most = low | (clamp & ~segment);
    int lane = mode == Up          ? at - by
               : mode == Down      ? at + by
               : mode == Butterfly ? at ^ by
                                   : low | (by & ~segment);
    bool inside = mode == Up ? lane >= most : lane <= most;
    from[at] = inside ? lane : at;
    isInside[at] = inside;
  }
  return bitsWhere([&](int i) { return isInside[i]; });
}

Flow shfl(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.regs[0], mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  uint32_t a[32], results[32];
  int32_t from[32];
  std::memcpy(a, w.in<uint32_t>(op.a), sizeof(a));
  const uint32_t *b = w.in<uint32_t>(op.b), *c = w.in<uint32_t>(op.c);
  uint32_t p = op.mode == Up          ? sources<Up>(b, c, from)
               : op.mode == Down      ? sources<Down>(b, c, from)
               : op.mode == Butterfly ? sources<Butterfly>(b, c, from)
                                      : sources<Index>(b, c, from);
  uint32_t absent = bitsWhere([&](int i) { return !(mask >> from[i] & 1); });
  if (absent & mask) {
    uint32_t lane = __builtin_ctz(absent & mask);
    w.fault(op, lane, LaunchFailed,
            fmt::format("expected to shuffle from a lane that takes part "
                        "(0x{:08x}), got lane {}",
                        mask, from[lane]));
  }
  for (int i = 0; i < 32; ++i)
    results[i] = a[from[i]];
  each(w.out<uint32_t>(op.d), mask, [&](int i) { return results[i]; });
  if (op.count == 2)
    setPred(w, op.regs[1], mask, p);
  w.block->syncWarp(w.index);
  return Flow::Next;
}

enum Vote : uint8_t { All, Any, Uni, Ballot };

Flow vote(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.b, mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  uint32_t p = (op.hasBase ? w.pred(op.a)
                : op.imm   ? allLanes
                           : 0) ^
               (op.negate ? allLanes : 0);
  p &= mask;
  if (op.mode == Ballot) {
    each(w.out<uint32_t>(op.d), mask, [=](int) { return p; });
  } else {
    bool yes = op.mode == All   ? p == mask
               : op.mode == Any ? p != 0
                                : p == mask || p == 0;
    setPred(w, op.d, mask, yes ? allLanes : 0);
  }
  w.block->syncWarp(w.index);
  return Flow::Next;
}

template <class T> Flow match(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.b, mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  T a[32];
  std::memcpy(a, w.in<T>(op.a), sizeof(a));
  uint32_t *d = w.out<uint32_t>(op.d);
  auto equal = [&](T value) {
    uint32_t same = 0;
    forLanes(mask, [&](uint32_t j) { same |= uint32_t(a[j] == value) << j; });
    return same;
  };
  if (op.mode == All) {
    bool all = equal(a[__builtin_ctz(mask)]) == mask;
    each(d, mask, [=](int) { return all ? mask : 0; });
    if (op.count == 2)
      setPred(w, op.regs[0], mask, all ? allLanes : 0);
  } else {
    forLanes(mask, [&](uint32_t i) { d[i] = equal(a[i]); });
  }
  w.block->syncWarp(w.index);
  return Flow::Next;
}

enum Reduction : uint8_t { Add, Min, Max, And, Or, Xor };

Flow redux(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.b, mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  const uint32_t *a = w.in<uint32_t>(op.a);
  bool isSigned = op.negate;
  uint32_t sum = a[__builtin_ctz(mask)];
  forLanes(mask & (mask - 1), [&](uint32_t i) {
    uint32_t x = a[i];
    bool less = isSigned ? int32_t(x) < int32_t(sum) : x < sum;
    switch (op.mode) {
    case Add:
      sum += x;
      break;
    case Min:
      sum = less ? x : sum;
      break;
    case Max:
      sum = less ? sum : x;
      break;
    case And:
      sum &= x;
      break;
    case Or:
      sum |= x;
      break;
    default:
      sum ^= x;
    }
  });
  each(w.out<uint32_t>(op.d), mask, [=](int) { return sum; });
  w.block->syncWarp(w.index);
  return Flow::Next;
}

Flow activeMask(Warp &w, const Op &op, uint32_t mask) {
  each(w.out<uint32_t>(op.d), mask, [=](int) { return mask; });
  return Flow::Next;
}

Flow barWarp(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.a, mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  w.block->syncWarp(w.index);
  return Flow::Next;
}

Flow elect(Warp &w, const Op &op, uint32_t mask) {
  uint32_t named = memberMask(w, op, op.a, mask);
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, named, flow))
    return flow;
  uint32_t leader = __builtin_ctz(mask);
  each(w.out<uint32_t>(op.d), mask, [=](int) { return leader; });
  setPred(w, op.regs[0], mask, 1u << leader);
  return Flow::Next;
}

} // namespace

bool buildWarp(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  auto pair = [&](bool &has) -> const Operand & {
    const Operand &d = b.operand(0);
    has = d.kind == Operand::Pair;
    return has ? d.elems[0] : d;
  };
  if (name == "shfl") {
    b.expectCount(5);
    if (!s.has("sync") || b.lastType() != Ty::B32)
      return false;
    op.mode = s.has("up")     ? Up
              : s.has("down") ? Down
              : s.has("bfly") ? Butterfly
                              : Index;
    op.a = b.in(1, Ty::B32);
    op.b = b.in(2, Ty::B32);
    op.c = b.in(3, Ty::B32);
    op.regs = {b.in(4, Ty::B32)};
    bool has = false;
    op.d = b.out(pair(has), Ty::B32);
    if (has) {
      op.count = 2;
      op.regs.push_back(b.outPred(b.operand(0).elems[1]));
    }
    op.run = shfl;
    return true;
  }
  if (name == "vote") {
    b.expectCount(3);
    if (!s.has("sync"))
      return false;
    op.mode = s.has("all")   ? All
              : s.has("any") ? Any
              : s.has("uni") ? Uni
                             : Ballot;
    op.d = op.mode == Ballot ? b.out(0, Ty::B32) : b.outPred(b.operand(0));
    const Operand &p = b.operand(1);
    op.negate = p.negated;
    op.hasBase = p.kind != Operand::Int;
    if (op.hasBase)
      op.a = b.inPred(p);
    else
      op.imm = p.bits;
    op.b = b.in(2, Ty::B32);
    op.run = vote;
    return true;
  }
  if (name == "match") {
    b.expectCount(3);
    Ty type = b.lastType();
    op.mode = s.has("all") ? All : Any;
    bool has = false;
    op.d = b.out(pair(has), Ty::B32);
    if (has) {
      op.count = 2;
      op.regs = {b.outPred(b.operand(0).elems[1])};
    }
    op.a = b.in(1, type);
    op.b = b.in(2, Ty::B32);
    op.run = bitsOf(type) == 64 ? match<uint64_t> : match<uint32_t>;
    return bitsOf(type) >= 32;
  }
  if (name == "redux") {
    b.expectCount(3);
    Ty type = b.lastType();
    if (type == Ty::F32)
      return false;
    op.mode = s.has("add")   ? Add
              : s.has("min") ? Min
              : s.has("max") ? Max
              : s.has("and") ? And
              : s.has("or")  ? Or
                             : Xor;
    op.negate = type == Ty::S32;
    op.d = b.out(0, Ty::B32);
    op.a = b.in(1, Ty::B32);
    op.b = b.in(2, Ty::B32);
    op.run = redux;
    return true;
  }
  if (name == "activemask") {
    b.expectCount(1);
    op.d = b.out(0, Ty::B32);
    op.run = activeMask;
    return true;
  }
  if ((name == "bar" || name == "barrier") && s.has("warp")) {
    b.expectCount(1);
    op.a = b.in(0, Ty::B32);
    op.run = barWarp;
    return true;
  }
  if (name == "elect") {
    b.expectCount(2);
    bool has = false;
    op.d = b.out(pair(has), Ty::B32);
    op.regs = {has ? b.outPred(b.operand(0).elems[1]) : b.scratch()};
    op.a = b.in(1, Ty::B32);
    op.run = elect;
    return true;
  }
  return false;
}

} // namespace emu::EMU_LEVEL
