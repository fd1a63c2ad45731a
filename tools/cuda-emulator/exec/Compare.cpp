// setp, set, and logic of predicates.
#include "Environment.h"
#include "Lanes.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

enum Comparison : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan,
};
struct ComparisonName {
  std::string_view name;
  Comparison which;
};
constexpr ComparisonName comparisons[] = {
    {"eq", Eq},   {"ne", Ne},   {"lt", Lt},   {"le", Le},   {"gt", Gt},
    {"ge", Ge},   {"lo", Lt},   {"ls", Le},   {"hi", Gt},   {"hs", Ge},
    {"equ", Equ}, {"neu", Neu}, {"ltu", Ltu}, {"leu", Leu}, {"gtu", Gtu},
    {"geu", Geu}, {"num", Num}, {"nan", Nan},
};

enum Combine : uint8_t { NoCombine, And, Or, Xor };

// Whether a and b compare so. Ordered comparisons are false where one is NaN,
// unordered ones true.
template <class T> uint32_t compare(uint8_t which, const T *a, const T *b) {
  switch (which) {
  case Eq:
    return bitsWhere([=](int i) { return a[i] == b[i]; });
  case Ne:
    // Of numbers: also ordered.
    return bitsWhere([=](int i) { return a[i] < b[i] || a[i] > b[i]; });
  case Lt:
    return bitsWhere([=](int i) { return a[i] < b[i]; });
  case Le:
    return bitsWhere([=](int i) { return a[i] <= b[i]; });
  case Gt:
    return bitsWhere([=](int i) { return a[i] > b[i]; });
  case Ge:
    return bitsWhere([=](int i) { return a[i] >= b[i]; });
  case Equ:
    return bitsWhere([=](int i) { return !(a[i] < b[i] || a[i] > b[i]); });
  case Neu:
    return bitsWhere([=](int i) { return !(a[i] == b[i]); });
  case Ltu:
    return bitsWhere([=](int i) { return !(a[i] >= b[i]); });
  case Leu:
    return bitsWhere([=](int i) { return !(a[i] > b[i]); });
  case Gtu:
    return bitsWhere([=](int i) { return !(a[i] <= b[i]); });
  case Geu:
    return bitsWhere([=](int i) { return !(a[i] < b[i]); });
  case Num:
    return bitsWhere([=](int i) { return a[i] == a[i] && b[i] == b[i]; });
  default:
    return bitsWhere([=](int i) { return a[i] != a[i] || b[i] != b[i]; });
  }
}

uint32_t combine(Warp &w, const Op &op, uint32_t p) {
  if (op.shape == NoCombine)
    return p;
  uint32_t c = w.pred(op.c) ^ (op.negate ? allLanes : 0);
  return op.shape == And ? p & c : op.shape == Or ? p | c : p ^ c;
}

void finish(Warp &w, const Op &op, uint32_t mask, uint32_t p) {
  // d|q: q is of the opposite comparison.
  uint32_t first = combine(w, op, p), second = combine(w, op, ~p);
  setPred(w, op.d, mask, first);
  if (op.count == 2)
    setPred(w, op.regs[0], mask, second);
}

template <class T> Flow setp(Warp &w, const Op &op, uint32_t mask) {
  finish(w, op, mask, compare(op.mode, w.in<T>(op.a), w.in<T>(op.b)));
  return Flow::Next;
}

template <float (*widen)(uint16_t)>
uint32_t compareHalf(Warp &w, const Op &op, int part, int stride) {
  const uint16_t *a = w.in<uint16_t>(op.a), *b = w.in<uint16_t>(op.b);
  float x[32], y[32];
  for (int i = 0; i < 32; ++i) {
    x[i] = widen(a[i * stride + part]);
    y[i] = widen(b[i * stride + part]);
  }
  return compare(op.mode, x, y);
}
template <float (*widen)(uint16_t)>
Flow setpHalf(Warp &w, const Op &op, uint32_t mask) {
  finish(w, op, mask, compareHalf<widen>(w, op, 0, 1));
  return Flow::Next;
}
template <float (*widen)(uint16_t)>
Flow setpPair(Warp &w, const Op &op, uint32_t mask) {
  // d|q: of the low and of the high halves.
  uint32_t low = combine(w, op, compareHalf<widen>(w, op, 0, 2));
  uint32_t high = combine(w, op, compareHalf<widen>(w, op, 1, 2));
  setPred(w, op.d, mask, low);
  if (op.count == 2)
    setPred(w, op.regs[0], mask, high);
  return Flow::Next;
}

// set: all ones or 1.0 where setp would say true; `imm` is that value.
template <class T> Flow set(Warp &w, const Op &op, uint32_t mask) {
  uint32_t p = combine(w, op, compare(op.mode, w.in<T>(op.a), w.in<T>(op.b)));
  uint32_t one = op.imm;
  if (op.bytes == 2)
    each(w.out<uint16_t>(op.d), mask,
         [=](int i) -> uint16_t { return p >> i & 1 ? one : 0; });
  else
    each(w.out<uint32_t>(op.d), mask,
         [=](int i) -> uint32_t { return p >> i & 1 ? one : 0; });
  return Flow::Next;
}
template <float (*widen)(uint16_t)>
Flow setHalf(Warp &w, const Op &op, uint32_t mask) {
  uint32_t p = combine(w, op, compareHalf<widen>(w, op, 0, 1));
  uint32_t one = op.imm;
  if (op.bytes == 2)
    each(w.out<uint16_t>(op.d), mask,
         [=](int i) -> uint16_t { return p >> i & 1 ? one : 0; });
  else
    each(w.out<uint32_t>(op.d), mask,
         [=](int i) -> uint32_t { return p >> i & 1 ? one : 0; });
  return Flow::Next;
}
template <float (*widen)(uint16_t)>
Flow setPair(Warp &w, const Op &op, uint32_t mask) {
  uint32_t low = combine(w, op, compareHalf<widen>(w, op, 0, 2));
  uint32_t high = combine(w, op, compareHalf<widen>(w, op, 1, 2));
  uint32_t one = op.imm;
  each(w.out<uint32_t>(op.d), mask, [=](int i) -> uint32_t {
    return (low >> i & 1 ? one : 0) | (high >> i & 1 ? one << 16 : 0);
  });
  return Flow::Next;
}

template <template <class> class Pick> Handler byType(Ty type) {
  switch (type) {
  case Ty::U16:
  case Ty::B16:
    return Pick<uint16_t>::run;
  case Ty::S16:
    return Pick<int16_t>::run;
  case Ty::U32:
  case Ty::B32:
    return Pick<uint32_t>::run;
  case Ty::S32:
    return Pick<int32_t>::run;
  case Ty::U64:
  case Ty::B64:
    return Pick<uint64_t>::run;
  case Ty::S64:
    return Pick<int64_t>::run;
  case Ty::F32:
    return Pick<float>::run;
  case Ty::F64:
    return Pick<double>::run;
  default:
    return nullptr;
  }
}
template <class T> struct Setp {
  static Flow run(Warp &w, const Op &op, uint32_t m) {
    return setp<T>(w, op, m);
  }
};
template <class T> struct Set {
  static Flow run(Warp &w, const Op &op, uint32_t m) {
    return set<T>(w, op, m);
  }
};

// --- logic of predicates: mode is a table of four bits, by b and a ---

Flow logic(Warp &w, const Op &op, uint32_t mask) {
  uint32_t a = w.pred(op.a) ^ (op.negate ? allLanes : 0);
  uint32_t b = w.pred(op.b) ^ (op.hasBase ? 0 : allLanes);
  uint32_t r = op.mode == And ? a & b : op.mode == Or ? a | b : a ^ b;
  setPred(w, op.d, mask, r);
  return Flow::Next;
}
Flow notPred(Warp &w, const Op &op, uint32_t mask) {
  setPred(w, op.d, mask, ~w.pred(op.a));
  return Flow::Next;
}

Combine combineOf(std::string_view name) {
  return name == "and"   ? And
         : name == "or"  ? Or
         : name == "xor" ? Xor
                         : NoCombine;
}

} // namespace

bool buildCompare(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  Combine simple = combineOf(name);
  if (s.parts.back() == "pred" && (simple || name == "not")) {
    op.d = b.outPred(b.operand(0));
    op.a = b.inPred(b.operand(1));
    op.negate = b.operand(1).negated;
    op.run = notPred;
    if (simple) {
      b.expectCount(3);
      op.b = b.inPred(b.operand(2));
      op.hasBase = !b.operand(2).negated;
      op.mode = simple;
      op.run = logic;
    }
    return true;
  }
  if ((name != "setp" && name != "set") || s.parts.size() < 3)
    return false;
  bool found = false;
  for (const ComparisonName &entry : comparisons)
    if (entry.name == s.parts[1]) {
      op.mode = entry.which;
      found = true;
    }
  if (!found)
    return false;
  op.shape = combineOf(s.parts[2]);
  if (op.shape) {
    const Operand &c = b.operand(3);
    op.c = b.inPred(c);
    op.negate = c.negated;
  }
  b.expectCount(op.shape ? 4 : 3);
  Ty type = b.lastType();
  op.a = b.in(1, type);
  op.b = b.in(2, type);
  bool isHalf = type == Ty::F16, isBf = type == Ty::BF16,
       isPair = type == Ty::F16x2, isBfPair = type == Ty::BF16x2;
  if (name == "setp") {
    const Operand &d = b.operand(0);
    if (d.kind == Operand::Pair) {
      op.count = 2;
      op.d = b.outPred(d.elems[0]);
      op.regs = {b.outPred(d.elems[1])};
    } else {
      op.d = b.outPred(d);
    }
    op.run = isHalf     ? setpHalf<halfToFloat>
             : isBf     ? setpHalf<bfloatToFloat>
             : isPair   ? setpPair<halfToFloat>
             : isBfPair ? setpPair<bfloatToFloat>
                        : byType<Setp>(type);
  } else {
    Ty to = b.type(s.parts[s.parts.size() - 2]);
    op.d = b.out(0, to);
    op.bytes = bitsOf(to) / 8;
    op.imm = to == Ty::F32                         ? 0x3f800000
             : to == Ty::F16 || to == Ty::F16x2    ? 0x3c00
             : to == Ty::BF16 || to == Ty::BF16x2  ? 0x3f80
             : isPair || isBfPair || op.bytes == 2 ? 0xffff
                                                   : 0xffffffff;
    op.run = isHalf     ? setHalf<halfToFloat>
             : isBf     ? setHalf<bfloatToFloat>
             : isPair   ? setPair<halfToFloat>
             : isBfPair ? setPair<bfloatToFloat>
                        : byType<Set>(type);
  }
  if (!op.run)
    return false;
  if (type == Ty::F32 && s.has("ftz")) {
    op.inner = op.run;
    op.flush = true;
    op.run = inMode;
  }
  return true;
}

} // namespace emu::EMU_LEVEL
