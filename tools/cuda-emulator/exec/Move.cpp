// mov in all its forms, cvta, isspacep, selp and slct.
#include "Memory.h"

#include <chrono>

namespace emu::EMU_LEVEL {

namespace {

struct Copy {
  template <class T> static T run(T a) { return a; }
};

Handler copyOf(int bits) {
  return bits == 16   ? unary<Copy, uint16_t>
         : bits == 32 ? unary<Copy, uint32_t>
                      : unary<Copy, uint64_t>;
}

Flow copyPred(Warp &w, const Op &op, uint32_t mask) {
  setPred(w, op.d, mask, w.pred(op.a) ^ (op.negate ? allLanes : 0));
  return Flow::Next;
}
Flow constantPred(Warp &w, const Op &op, uint32_t mask) {
  setPred(w, op.d, mask, op.imm ? allLanes : 0);
  return Flow::Next;
}

// The address of something in the frame's part of local memory.
template <class T> Flow localAddress(Warp &w, const Op &op, uint32_t mask) {
  T value = op.imm + w.local;
  each(w.out<T>(op.d), mask, [=](int) { return value; });
  return Flow::Next;
}

// --- special registers ---

enum SpecialRegister : uint8_t {
  Tid,
  Ntid,
  Ctaid,
  Nctaid,
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  Clock,
  ClockHi,
  Timer,
  TimerLo,
  TimerHi,
  DynamicShared,
  TotalShared,
};
struct SpecialName {
  std::string_view name;
  SpecialRegister which;
};
constexpr SpecialName specials[] = {
    {"%tid", Tid},
    {"%ntid", Ntid},
    {"%ctaid", Ctaid},
    {"%nctaid", Nctaid},
    {"%laneid", Laneid},
    {"%warpid", Warpid},
    {"%nwarpid", Nwarpid},
    {"%smid", Smid},
    {"%nsmid", Nsmid},
    {"%gridid", Gridid},
    {"%lanemask_eq", MaskEq},
    {"%lanemask_lt", MaskLt},
    {"%lanemask_le", MaskLe},
    {"%lanemask_gt", MaskGt},
    {"%lanemask_ge", MaskGe},
    {"%clock", Clock},
    {"%clock_hi", ClockHi},
    {"%clock64", Clock},
    {"%globaltimer", Timer},
    {"%globaltimer_lo", TimerLo},
    {"%globaltimer_hi", TimerHi},
    {"%dynamic_smem_size", DynamicShared},
    {"%total_smem_size", TotalShared},
};

uint64_t timer() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

uint64_t uniform(const Warp &w, uint8_t which, uint8_t axis) {
  const Block &block = *w.block;
  const Launch &launch = *block.launch;
  switch (which) {
  case Ntid:
    return launch.block[axis];
  case Ctaid:
    return block.id[axis];
  case Nctaid:
    return launch.grid[axis];
  case Warpid:
    return w.index;
  case Nwarpid:
    return block.warps.size();
  case Nsmid:
    return 1;
  case Clock:
    return w.executed;
  case ClockHi:
    return w.executed >> 32;
  case Timer:
    return timer();
  case TimerLo:
    return uint32_t(timer());
  case TimerHi:
    return timer() >> 32;
  case DynamicShared:
    return launch.dynamicShared;
  case TotalShared:
    return launch.sharedBytes;
  default:
    return 0;
  }
}

template <class T> Flow special(Warp &w, const Op &op, uint32_t mask) {
  T *d = w.out<T>(op.d);
  auto lanes = [&](auto f) { each(d, mask, [&](int i) -> T { return f(i); }); };
  uint8_t axis = op.shape;
  switch (op.mode) {
  case Tid: {
    const uint32_t *tid = w.tid[axis];
    each(d, mask, [=](int i) -> T { return tid[i]; });
    break;
  }
  case Laneid:
    lanes([](int i) { return i; });
    break;
  case MaskEq:
    lanes([](int i) { return 1u << i; });
    break;
  case MaskLt:
    lanes([](int i) { return (1u << i) - 1; });
    break;
  case MaskLe:
    lanes([](int i) { return (2u << i) - 1; });
    break;
  case MaskGt:
    lanes([](int i) { return ~((2u << i) - 1); });
    break;
  case MaskGe:
    lanes([](int i) { return ~((1u << i) - 1); });
    break;
  default: {
    T value = uniform(w, op.mode, axis);
    each(d, mask, [=](int) { return value; });
  }
  }
  return Flow::Next;
}

bool buildSpecial(Builder &b, const Operand &from, Ty type, Op &op) {
  std::string_view name = from.text;
  if (size_t dot = name.find('.'); dot != std::string_view::npos) {
    std::string_view axis = name.substr(dot + 1);
    if (axis != "x" && axis != "y" && axis != "z")
      return false;
    op.shape = axis[0] - 'x';
    name = name.substr(0, dot);
  }
  for (const SpecialName &entry : specials)
    if (entry.name == name) {
      op.mode = entry.which;
      op.d = b.out(0, type);
      op.run = bitsOf(type) == 16   ? special<uint16_t>
               : bitsOf(type) == 32 ? special<uint32_t>
                                    : special<uint64_t>;
      return true;
    }
  return false;
}

// --- {a, b} ---

template <class Part, class Whole>
Flow pack(Warp &w, const Op &op, uint32_t mask) {
  constexpr int count = sizeof(Whole) / sizeof(Part);
  const Part *parts[count];
  for (int k = 0; k < count; ++k)
    parts[k] = w.in<Part>(op.regs[k]);
  each(w.out<Whole>(op.d), mask, [&](int i) {
    Whole whole = 0;
    for (int k = 0; k < count; ++k)
      whole |= Whole(parts[k][i]) << (k * 8 * sizeof(Part));
    return whole;
  });
  return Flow::Next;
}
template <class Part, class Whole>
Flow unpack(Warp &w, const Op &op, uint32_t mask) {
  constexpr int count = sizeof(Whole) / sizeof(Part);
  Whole from[32];
  std::memcpy(from, w.in<Whole>(op.a), sizeof(from));
  for (int k = 0; k < count; ++k)
    each(w.out<Part>(op.regs[k]), mask,
         [&](int i) { return Part(from[i] >> (k * 8 * sizeof(Part))); });
  return Flow::Next;
}

bool buildPack(Builder &b, Ty type, Op &op) {
  bool packs = b.operand(1).kind == Operand::Vector;
  const Operand &vector = b.operand(packs ? 1 : 0);
  size_t count = vector.elems.size();
  int whole = bitsOf(type), part = count ? whole / count : 0;
  if (!((whole == 32 && part == 16 && count == 2) ||
        (whole == 64 && part == 32 && count == 2) ||
        (whole == 64 && part == 16 && count == 4)))
    return false;
  Ty partType = part == 16 ? Ty::B16 : Ty::B32;
  for (const Operand &elem : vector.elems)
    op.regs.push_back(packs ? b.in(elem, partType) : b.out(elem, partType));
  if (packs)
    op.d = b.out(0, type);
  else
    op.a = b.in(1, type);
  if (whole == 32)
    op.run = packs ? pack<uint16_t, uint32_t> : unpack<uint16_t, uint32_t>;
  else if (part == 32)
    op.run = packs ? pack<uint32_t, uint64_t> : unpack<uint32_t, uint64_t>;
  else
    op.run = packs ? pack<uint16_t, uint64_t> : unpack<uint16_t, uint64_t>;
  return true;
}

bool buildAddress(Builder &b, const Operand &from, Ty type, Op &op) {
  if (!from.var)
    b.fail("expected the address of a variable");
  const Variable &variable = *from.var;
  int bits = bitsOf(type);
  if (bits < 32)
    b.fail("expected an address of 32 or 64 bits");
  op.d = b.out(0, type);
  op.imm = variable.address + from.offset;
  bool ofFrame = variable.space == Space::Local ||
                 (variable.space == Space::Param && !b.isKernelParam(variable));
  if (ofFrame) {
    op.run = bits == 32 ? localAddress<uint32_t> : localAddress<uint64_t>;
  } else {
    Operand number;
    number.kind = Operand::Int;
    number.bits = op.imm;
    op.a = b.in(number, type);
    op.run = copyOf(bits);
  }
  return true;
}

bool buildMov(Builder &b, Op &op) {
  b.expectCount(2);
  Ty type = b.lastType();
  const Operand &from = b.operand(1);
  if (type == Ty::Pred) {
    op.d = b.outPred(b.operand(0));
    if (from.kind == Operand::Int) {
      op.imm = from.bits;
      op.run = constantPred;
    } else {
      op.a = b.inPred(from);
      op.negate = from.negated;
      op.run = copyPred;
    }
    return true;
  }
  if (bitsOf(type) < 16 || bitsOf(type) > 64)
    return false;
  if (from.kind == Operand::Vector || b.operand(0).kind == Operand::Vector)
    return buildPack(b, type, op);
  if (from.kind == Operand::Special)
    return buildSpecial(b, from, type, op);
  if (from.kind == Operand::Symbol)
    return buildAddress(b, from, type, op);
  op.a = b.in(from, type);
  op.d = b.out(0, type);
  op.run = copyOf(bitsOf(type));
  return true;
}

// --- addresses of spaces ---

Flow addConstant(Warp &w, const Op &op, uint32_t mask) {
  const uint64_t *a = w.in<uint64_t>(op.a);
  uint64_t add = op.imm;
  each(w.out<uint64_t>(op.d), mask, [=](int i) { return a[i] + add; });
  return Flow::Next;
}

Flow inSpace(Warp &w, const Op &op, uint32_t mask) {
  const uint64_t *a = w.in<uint64_t>(op.a);
  setPred(w, op.d, mask, bitsWhere([&](int i) {
            uint64_t address = a[i];
            return spaceOf(address) == op.space;
          }));
  return Flow::Next;
}

// --- selp, slct ---

template <class T> Flow select(Warp &w, const Op &op, uint32_t mask) {
  const T *a = w.in<T>(op.a), *b = w.in<T>(op.b);
  uint32_t p = w.pred(op.c) ^ (op.negate ? allLanes : 0);
  each(w.out<T>(op.d), mask, [=](int i) { return (p >> i & 1) ? a[i] : b[i]; });
  return Flow::Next;
}

template <class C> struct Slct {
  template <class T> static T run(T a, T b, C c) { return c >= 0 ? a : b; }
};
template <class C> Handler slctOf(int bits) {
  return bits == 16   ? ternary<Slct<C>, uint16_t, uint16_t, uint16_t, C>
         : bits == 32 ? ternary<Slct<C>, uint32_t, uint32_t, uint32_t, C>
                      : ternary<Slct<C>, uint64_t, uint64_t, uint64_t, C>;
}

} // namespace

bool buildMove(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  if (name == "mov")
    return buildMov(b, op);
  if (name == "cvta") {
    b.expectCount(2);
    if (b.lastType() != Ty::U64)
      return false;
    Space space = spaceIn(s);
    uint64_t base = space == Space::Shared  ? sharedBase
                    : space == Space::Local ? localBase
                    : space == Space::Param ? paramBase
                                            : 0;
    op.imm = s.has("to") ? -base : base;
    op.a = b.in(1, Ty::U64);
    op.d = b.out(0, Ty::U64);
    op.run = base ? addConstant : copyOf(64);
    return true;
  }
  if (name == "isspacep") {
    b.expectCount(2);
    op.space = spaceIn(s);
    op.d = b.outPred(b.operand(0));
    op.a = b.in(1, Ty::U64);
    op.run = inSpace;
    return true;
  }
  if (name == "selp") {
    b.expectCount(4);
    Ty type = b.lastType();
    int bits = bitsOf(type);
    op.a = b.in(1, type);
    op.b = b.in(2, type);
    op.c = b.inPred(b.operand(3));
    op.negate = b.operand(3).negated;
    op.d = b.out(0, type);
    op.run = bits == 16   ? select<uint16_t>
             : bits == 32 ? select<uint32_t>
             : bits == 64 ? select<uint64_t>
                          : nullptr;
    return op.run;
  }
  if (name == "slct") {
    b.expectCount(4);
    Ty by = b.lastType();
    Ty type = b.type(s.parts[s.parts.size() - 2]);
    op.a = b.in(1, type);
    op.b = b.in(2, type);
    op.c = b.in(3, by);
    op.d = b.out(0, type);
    op.run = by == Ty::S32   ? slctOf<int32_t>(bitsOf(type))
             : by == Ty::F32 ? slctOf<float>(bitsOf(type))
                             : nullptr;
    return op.run;
  }
  return false;
}

} // namespace emu::EMU_LEVEL
