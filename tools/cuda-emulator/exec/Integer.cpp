// Integer arithmetic.
#include "Lanes.h"

#include <type_traits>

namespace emu::EMU_LEVEL {

namespace {

template <class T> using Un = std::make_unsigned_t<T>;
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<
        sizeof(T) == 4,
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

struct Add {
  template <class T> static T run(T a, T b) { return T(Un<T>(a) + Un<T>(b)); }
};
struct Sub {
  template <class T> static T run(T a, T b) { return T(Un<T>(a) - Un<T>(b)); }
};
struct AddSat {
  static int32_t run(int32_t a, int32_t b) {
    int64_t sum = int64_t(a) + b;
    return std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  }
};
struct SubSat {
  static int32_t run(int32_t a, int32_t b) {
    int64_t sum = int64_t(a) - b;
    return std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  }
};
struct MulLo {
  template <class T> static T run(T a, T b) {
    return T(uint64_t(a) * uint64_t(b));
  }
};
struct MulHi {
  template <class T> static T run(T a, T b) {
    return T((Wide<T>(a) * Wide<T>(b)) >> (sizeof(T) * 8));
  }
};
template <class T> struct MulWide {
  static Wide<T> run(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
struct MadLo {
  template <class T> static T run(T a, T b, T c) {
    return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
  }
};
struct MadHi {
  template <class T> static T run(T a, T b, T c) {
    return T(Un<T>(MulHi::run(a, b)) + Un<T>(c));
  }
};
template <class T> struct MadWide {
  static Wide<T> run(T a, T b, Wide<T> c) {
    return Wide<T>(Un<Wide<T>>(Wide<T>(a) * Wide<T>(b)) + Un<Wide<T>>(c));
  }
};
template <class T> struct Mul24Lo {
  static T cut(T a) {
    return std::is_signed_v<T> ? T(int32_t(uint32_t(a) << 8) >> 8)
                               : T(uint32_t(a) & 0xffffff);
  }
  static T run(T a, T b) { return T(int64_t(cut(a)) * int64_t(cut(b))); }
};
template <class T> struct Mad24Lo {
  static T run(T a, T b, T c) {
    return T(Un<T>(Mul24Lo<T>::run(a, b)) + Un<T>(c));
  }
};
// Division by zero gives all ones, and the remainder is the dividend.
struct Div {
  template <class T> static T run(T a, T b) {
    if (b == 0)
      return T(-1);
    if (std::is_signed_v<T> && b == T(-1))
      return T(Un<T>(0) - Un<T>(a));
    return a / b;
  }
};
struct Rem {
  template <class T> static T run(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == T(-1))
      return 0;
    return a % b;
  }
};
struct Min {
  template <class T> static T run(T a, T b) { return a < b ? a : b; }
};
struct Max {
  template <class T> static T run(T a, T b) { return a > b ? a : b; }
};
struct Abs {
  template <class T> static T run(T a) {
    return a < 0 ? T(Un<T>(0) - Un<T>(a)) : a;
  }
};
struct Neg {
  template <class T> static T run(T a) { return T(Un<T>(0) - Un<T>(a)); }
};
struct Sad {
  template <class T> static T run(T a, T b, T c) {
    return T(Un<T>(c) + (a > b ? Un<T>(a) - Un<T>(b) : Un<T>(b) - Un<T>(a)));
  }
};

// With the carry of each lane in w.carry.
template <class T, bool sub, bool use, bool set>
Flow carried(Warp &w, const Op &op, uint32_t mask) {
  const T *a = w.in<T>(op.a), *b = w.in<T>(op.b);
  T *d = w.out<T>(op.d);
  forLanes(mask, [&](uint32_t i) {
    T x = a[i], y = sub ? T(~b[i]) : b[i];
    // Subtraction keeps a borrow, the opposite of a carry.
    bool in = use ? (w.carry >> i & 1) : false;
    if (sub)
      in = !in;
    unsigned __int128 sum = (unsigned __int128)x + y + in;
    bool over = sum >> (sizeof(T) * 8) & 1;
    if (sub)
      over = !over;
    d[i] = T(sum);
    if (set)
      w.carry = (w.carry & ~(1u << i)) | uint32_t(over) << i;
  });
  return Flow::Next;
}

template <class T, bool high, bool use, bool set>
Flow carriedMad(Warp &w, const Op &op, uint32_t mask) {
  const T *a = w.in<T>(op.a), *b = w.in<T>(op.b), *c = w.in<T>(op.c);
  T *d = w.out<T>(op.d);
  forLanes(mask, [&](uint32_t i) {
    T product = high ? MulHi::run(a[i], b[i]) : MulLo::run(a[i], b[i]);
    unsigned __int128 sum = (unsigned __int128)Un<T>(product) + Un<T>(c[i]) +
                            (use ? (w.carry >> i & 1) : 0);
    d[i] = T(sum);
    if (set)
      w.carry = (w.carry & ~(1u << i)) | uint32_t(sum >> (sizeof(T) * 8) & 1)
                                             << i;
  });
  return Flow::Next;
}

template <class T> Handler pickCarried(std::string_view name, bool set) {
  bool sub = name.substr(0, 3) == "sub";
  bool use = name.back() == 'c';
  if (sub)
    return use ? (set ? carried<T, true, true, true>
                      : carried<T, true, true, false>)
               : carried<T, true, false, true>;
  return use ? (set ? carried<T, false, true, true>
                    : carried<T, false, true, false>)
             : carried<T, false, false, true>;
}

template <class T> Handler pickCarriedMad(bool high, bool use, bool set) {
  if (high)
    return use ? (set ? carriedMad<T, true, true, true>
                      : carriedMad<T, true, true, false>)
               : carriedMad<T, true, false, true>;
  return use ? (set ? carriedMad<T, false, true, true>
                    : carriedMad<T, false, true, false>)
             : carriedMad<T, false, false, true>;
}

template <class F> Handler pickBinary(Ty type) {
  switch (type) {
  case Ty::U16:
    return binary<F, uint16_t>;
  case Ty::S16:
    return binary<F, int16_t>;
  case Ty::U32:
    return binary<F, uint32_t>;
  case Ty::S32:
    return binary<F, int32_t>;
  case Ty::U64:
    return binary<F, uint64_t>;
  case Ty::S64:
    return binary<F, int64_t>;
  case Ty::U16x2:
    return binary<F, uint16_t, uint16_t, uint16_t, 2>;
  case Ty::S16x2:
    return binary<F, int16_t, int16_t, int16_t, 2>;
  default:
    return nullptr;
  }
}
template <class F> Handler pickTernary(Ty type) {
  switch (type) {
  case Ty::U16:
    return ternary<F, uint16_t>;
  case Ty::S16:
    return ternary<F, int16_t>;
  case Ty::U32:
    return ternary<F, uint32_t>;
  case Ty::S32:
    return ternary<F, int32_t>;
  case Ty::U64:
    return ternary<F, uint64_t>;
  case Ty::S64:
    return ternary<F, int64_t>;
  default:
    return nullptr;
  }
}
template <class F> Handler pickSigned(Ty type) {
  switch (type) {
  case Ty::S16:
    return unary<F, int16_t>;
  case Ty::S32:
    return unary<F, int32_t>;
  case Ty::S64:
    return unary<F, int64_t>;
  default:
    return nullptr;
  }
}

template <class T> Handler wideMul() { return binary<MulWide<T>, Wide<T>, T>; }
template <class T> Handler wideMad() {
  return ternary<MadWide<T>, Wide<T>, T, T, Wide<T>>;
}

Ty doubled(Ty type) {
  switch (type) {
  case Ty::U16:
    return Ty::U32;
  case Ty::S16:
    return Ty::S32;
  case Ty::U32:
    return Ty::U64;
  case Ty::S32:
    return Ty::S64;
  default:
    return Ty::None;
  }
}

} // namespace

bool buildInteger(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  Ty type = Ty::None;
  for (std::string_view part : s.parts)
    if (Ty found = typeOf(part); found != Ty::None)
      type = found;
  bool isPair = type == Ty::U16x2 || type == Ty::S16x2;
  bool isInteger = (type >= Ty::U8 && type <= Ty::B64) || isPair;
  if (!isInteger)
    return false;
  bool wide = s.has("wide"), high = s.has("hi");
  Handler run = nullptr;
  int operands = 3;
  bool setsCarry = s.has("cc");
  if (name == "addc" || name == "subc" ||
      ((name == "add" || name == "sub") && setsCarry)) {
    run = bitsOf(type) == 64   ? pickCarried<uint64_t>(name, setsCarry)
          : bitsOf(type) == 32 ? pickCarried<uint32_t>(name, setsCarry)
                               : nullptr;
  } else if (name == "add") {
    run = s.has("sat") ? (type == Ty::S32 ? binary<AddSat, int32_t> : nullptr)
                       : pickBinary<Add>(type);
  } else if (name == "sub") {
    run = s.has("sat") ? (type == Ty::S32 ? binary<SubSat, int32_t> : nullptr)
                       : pickBinary<Sub>(type);
  } else if (name == "mul") {
    if (wide)
      run = type == Ty::U32   ? wideMul<uint32_t>()
            : type == Ty::S32 ? wideMul<int32_t>()
            : type == Ty::U16 ? wideMul<uint16_t>()
            : type == Ty::S16 ? wideMul<int16_t>()
                              : nullptr;
    else
      run = high ? pickBinary<MulHi>(type) : pickBinary<MulLo>(type);
  } else if (name == "madc" || (name == "mad" && setsCarry)) {
    operands = 4;
    bool use = name == "madc";
    run = type == Ty::U32   ? pickCarriedMad<uint32_t>(high, use, setsCarry)
          : type == Ty::S32 ? pickCarriedMad<int32_t>(high, use, setsCarry)
          : type == Ty::U64 ? pickCarriedMad<uint64_t>(high, use, setsCarry)
          : type == Ty::S64 ? pickCarriedMad<int64_t>(high, use, setsCarry)
                            : nullptr;
  } else if (name == "mad") {
    operands = 4;
    if (s.has("sat"))
      return false;
    if (wide)
      run = type == Ty::U32   ? wideMad<uint32_t>()
            : type == Ty::S32 ? wideMad<int32_t>()
            : type == Ty::U16 ? wideMad<uint16_t>()
            : type == Ty::S16 ? wideMad<int16_t>()
                              : nullptr;
    else
      run = high ? pickTernary<MadHi>(type) : pickTernary<MadLo>(type);
  } else if (name == "mul24" && !high) {
    run = type == Ty::U32   ? binary<Mul24Lo<uint32_t>, uint32_t>
          : type == Ty::S32 ? binary<Mul24Lo<int32_t>, int32_t>
                            : nullptr;
  } else if (name == "mad24" && !high && !s.has("sat")) {
    operands = 4;
    run = type == Ty::U32   ? ternary<Mad24Lo<uint32_t>, uint32_t>
          : type == Ty::S32 ? ternary<Mad24Lo<int32_t>, int32_t>
                            : nullptr;
  } else if (name == "div") {
    run = pickBinary<Div>(type);
  } else if (name == "rem") {
    run = pickBinary<Rem>(type);
  } else if (name == "min" && s.parts.size() == 2) {
    run = pickBinary<Min>(type);
  } else if (name == "max" && s.parts.size() == 2) {
    run = pickBinary<Max>(type);
  } else if (name == "sad") {
    operands = 4;
    run = pickTernary<Sad>(type);
  } else if (name == "abs") {
    operands = 2;
    run = pickSigned<Abs>(type);
  } else if (name == "neg") {
    operands = 2;
    run = pickSigned<Neg>(type);
  }
  if (!run || (isPair && name != "add" && name != "min" && name != "max"))
    return false;
  b.expectCount(operands);
  bool widens = wide && (name == "mul" || name == "mad");
  Ty result = widens ? doubled(type) : type;
  op.run = run;
  op.a = b.in(1, type);
  if (operands > 2)
    op.b = b.in(2, type);
  if (operands > 3)
    op.c = b.in(3, result);
  op.d = b.out(0, result);
  return true;
}

} // namespace emu::EMU_LEVEL
