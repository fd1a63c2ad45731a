// atom and red, lane after lane.
#include "Memory.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

enum Kind : uint8_t { Add, Min, Max, And, Or, Xor, Exch, Cas, Inc, Dec };

template <class T> T apply(uint8_t kind, T old, T b, T c) {
  switch (kind) {
  case Add:
    return T(old + b);
  case Min:
    return old < b ? old : b;
  case Max:
    return old > b ? old : b;
  case Exch:
    return b;
  case Cas:
    return old == b ? c : old;
  default:
    break;
  }
  if constexpr (std::is_integral_v<T>)
    switch (kind) {
    case And:
      return old & b;
    case Or:
      return old | b;
    case Xor:
      return old ^ b;
    case Inc:
      return old >= b ? 0 : old + 1;
    case Dec:
      return old == 0 || old > b ? b : old - 1;
    }
  return old;
}

struct Plain {
  template <class T> static T run(uint8_t kind, T old, T b, T c) {
    return apply(kind, old, b, c);
  }
};
template <class F> struct Floating { // of type F, kept as bits
  template <class T> static T run(uint8_t kind, T old, T b, T c) {
    if (kind == Exch || kind == Cas)
      return apply(kind, old, b, c);
    return std::bit_cast<T>(
        canonical(std::bit_cast<F>(old) + std::bit_cast<F>(b)));
  }
};
template <float (*widen)(uint16_t), uint16_t (*narrow)(float)> struct Halves {
  template <class T> static T run(uint8_t kind, T old, T b, T) {
    T r = 0;
    for (unsigned at = 0; at < sizeof(T) * 8; at += 16) {
      float x = widen(old >> at), y = widen(b >> at);
      float z = kind == Min   ? leastOf(x, y)
                : kind == Max ? mostOf(x, y)
                              : x + y;
      r |= T(narrow(z)) << at;
    }
    return r;
  }
};

template <class F, class T> Flow atomic(Warp &w, const Op &op, uint32_t mask) {
  uint64_t at[32];
  addresses(w, op, op.a, mask, at);
  Block &block = *w.block;
  const T *b = w.in<T>(op.b), *c = op.mode == Cas ? w.in<T>(op.c) : b;
  T *d = op.count ? w.out<T>(op.d) : nullptr;
  bool acquires = op.shape || block.fenced;
  bySpace(op, mask, at, [&](Space space, uint32_t lanes) {
    forLanes(lanes, [&](uint32_t i) {
      uint8_t *where;
      if (space == Space::Global) {
        where = checkGlobal(w, op, i, at[i], sizeof(T), Access::Atomic, true);
        markGlobal(w, at[i], sizeof(T));
      } else if (space == Space::Shared) {
        SharedMemory &shared = block.shared;
        if (at[i] % sizeof(T))
          faultAlignment(w, op, i, at[i], sizeof(T));
        Conflict found = at[i] + sizeof(T) > shared.size() ? Conflict::Outside
                         : !shared.isWritten(at[i], sizeof(T))
                             ? Conflict::Uninitialised
                             : shared.store(at[i], sizeof(T), w.index * 32 + i,
                                            nullptr, true);
        if (found != Conflict::None)
          faultShared(w, op, i, at[i], sizeof(T), found, Access::Atomic);
        where = shared.data() + at[i];
      } else {
        w.fault(op, i, InvalidAddressSpace,
                "expected an atomic of global or shared memory");
      }
      T old;
      std::memcpy(&old, where, sizeof(T));
      T made = F::run(op.mode, old, b[i], c[i]);
      std::memcpy(where, &made, sizeof(T));
      if (d)
        d[i] = old;
    });
    if (space == Space::Global && acquires && d)
      block.acquired = true;
  });
  return Flow::Next;
}

Handler pick(Ty type) {
  switch (type) {
  case Ty::B16:
    return atomic<Plain, uint16_t>;
  case Ty::U32:
  case Ty::B32:
    return atomic<Plain, uint32_t>;
  case Ty::S32:
    return atomic<Plain, int32_t>;
  case Ty::U64:
  case Ty::B64:
    return atomic<Plain, uint64_t>;
  case Ty::S64:
    return atomic<Plain, int64_t>;
  case Ty::F32:
    return atomic<Floating<float>, uint32_t>;
  case Ty::F64:
    return atomic<Floating<double>, uint64_t>;
  case Ty::F16:
    return atomic<Halves<halfToFloat, floatToHalf>, uint16_t>;
  case Ty::F16x2:
    return atomic<Halves<halfToFloat, floatToHalf>, uint32_t>;
  case Ty::BF16:
    return atomic<Halves<bfloatToFloat, floatToBfloat>, uint16_t>;
  case Ty::BF16x2:
    return atomic<Halves<bfloatToFloat, floatToBfloat>, uint32_t>;
  default:
    return nullptr;
  }
}

struct KindName {
  std::string_view name;
  Kind kind;
};
constexpr KindName kinds[] = {
    {"add", Add}, {"min", Min},   {"max", Max}, {"and", And}, {"or", Or},
    {"xor", Xor}, {"exch", Exch}, {"cas", Cas}, {"inc", Inc}, {"dec", Dec}};

} // namespace

bool buildAtomic(Builder &b, const Statement &s, Op &op) {
  bool returns = s.name() == "atom";
  if ((!returns && s.name() != "red") || s.has("v2") || s.has("v4") ||
      s.has("v8") || s.has("shared::cluster") || s.has("async"))
    return false;
  const KindName *found = nullptr;
  for (const KindName &entry : kinds)
    if (s.has(entry.name))
      found = &entry;
  if (!found)
    return false;
  op.mode = found->kind;
  Ty type = b.lastType();
  bool isFloat = type == Ty::F32 || type == Ty::F64;
  if (isFloat && op.mode != Add && op.mode != Exch)
    return false;
  size_t first = returns ? 1 : 0;
  b.expectCount(first + (op.mode == Cas ? 3 : 2), first + 4);
  b.address(b.operand(first), op, spaceIn(s));
  op.b = b.in(first + 1, type);
  if (op.mode == Cas)
    op.c = b.in(first + 2, type);
  op.count = returns && b.operand(0).kind != Operand::Sink;
  if (op.count)
    op.d = b.out(0, type);
  op.shape = s.has("acquire") || s.has("acq_rel");
  if (op.space != Space::Shared)
    b.code.hasAtomics = true;
  op.run = pick(type);
  return op.run;
}

} // namespace emu::EMU_LEVEL
