// Logic, shifts, bit fields, permutations and dot products of bytes.
#include "Lanes.h"

namespace emu::EMU_LEVEL {

namespace {

struct And {
  template <class T> static T run(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T run(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T run(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T run(T a) { return ~a; }
};
struct CNot {
  template <class T> static T run(T a) { return a == 0; }
};
// Shifts by more than the width give what shifting on would.
struct Shl {
  template <class T> static T run(T a, uint32_t n) {
    return n >= sizeof(T) * 8 ? T(0) : T(uint64_t(a) << (n & 63));
  }
};
struct Shr {
  template <class T> static T run(T a, uint32_t n) {
    uint32_t most = sizeof(T) * 8 - 1;
    if (T(-1) < T(0))
      return a >> (n > most ? most : n);
    return n > most ? T(0) : T(a >> n);
  }
};
template <bool left, bool wrap> struct Shf {
  static uint32_t run(uint32_t low, uint32_t high, uint32_t n) {
    n = wrap ? n & 31 : std::min(n, 32u);
    uint64_t both = uint64_t(high) << 32 | low;
    return left ? uint32_t(both << n >> 32) : uint32_t(both >> n);
  }
};
struct Popc {
  template <class T> static uint32_t run(T a) {
    return __builtin_popcountll(uint64_t(a));
  }
};
struct Clz {
  static uint32_t run(uint32_t a) { return a ? __builtin_clz(a) : 32; }
  static uint32_t run(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
};
struct Brev {
  static uint32_t run(uint32_t a) { return __builtin_bitreverse32(a); }
  static uint64_t run(uint64_t a) { return __builtin_bitreverse64(a); }
};
template <bool shift> struct Bfind {
  template <class T> static uint32_t run(T a) {
    constexpr int width = sizeof(T) * 8;
    using U = std::make_unsigned_t<T>;
    U bits = a < 0 ? U(~a) : U(a);
    if (!bits)
      return ~0u;
    uint32_t at = 63 - __builtin_clzll(bits);
    return shift ? width - 1 - at : at;
  }
};
struct Bfe {
  template <class T> static T run(T a, uint32_t from, uint32_t count) {
    constexpr uint32_t width = sizeof(T) * 8;
    using U = std::make_unsigned_t<T>;
    from &= 255;
    count &= 255;
    bool isSigned = T(-1) < T(0);
    // Past the end comes the sign of what the field ends with.
    bool sign =
        isSigned && count && (a >> std::min(from + count - 1, width - 1) & 1);
    U field = from >= width ? 0 : U(a) >> from;
    if (count >= width || from + count > width) {
      uint32_t have = from >= width ? 0 : width - from;
      if (sign && have < std::min(count, width))
        field |= have >= width ? 0 : U(~U(0)) << have;
      count = std::min(count, width);
    }
    if (count == 0)
      return 0;
    U keep = count >= width ? ~U(0) : (U(1) << count) - 1;
    return T((field & keep) | (sign ? U(~keep) : 0));
  }
};
template <class T> Flow bfi(Warp &w, const Op &op, uint32_t mask) {
  const T *a = w.in<T>(op.a), *b = w.in<T>(op.b);
  const uint32_t *c = w.in<uint32_t>(op.c), *e = w.in<uint32_t>(op.regs[0]);
  each(w.out<T>(op.d), mask, [=](int i) {
    constexpr uint32_t width = sizeof(T) * 8;
    uint32_t from = c[i] & 255, count = e[i] & 255;
    if (from >= width || count == 0)
      return b[i];
    T keep = count >= width ? ~T(0) : (T(1) << count) - 1;
    keep <<= from;
    return T((b[i] & ~keep) | (a[i] << from & keep));
  });
  return Flow::Next;
}
struct Bmsk {
  static uint32_t run(uint32_t from, uint32_t count) {
    from = std::min(from & 255, 32u);
    count = std::min(count & 255, 32u);
    uint64_t ones = (1ull << count) - 1;
    return uint32_t(ones << from);
  }
};
struct Prmt {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t both = uint64_t(b) << 32 | a;
    uint32_t r = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t pick = c >> (4 * i);
      uint32_t byte = both >> (pick & 7) * 8 & 255;
      if (pick & 8)
        byte = byte & 128 ? 255 : 0;
      r |= byte << (8 * i);
    }
    return r;
  }
};

Flow lop3(Warp &w, const Op &op, uint32_t mask) {
  const uint32_t *a = w.in<uint32_t>(op.a), *b = w.in<uint32_t>(op.b),
                 *c = w.in<uint32_t>(op.c);
  uint32_t on[8];
  for (int i = 0; i < 8; ++i)
    on[i] = op.imm >> i & 1 ? ~0u : 0;
  each(w.out<uint32_t>(op.d), mask, [=](int i) {
    uint32_t x = a[i], y = b[i], z = c[i];
    return (on[0] & ~x & ~y & ~z) | (on[1] & ~x & ~y & z) |
           (on[2] & ~x & y & ~z) | (on[3] & ~x & y & z) |
           (on[4] & x & ~y & ~z) | (on[5] & x & ~y & z) | (on[6] & x & y & ~z) |
           (on[7] & x & y & z);
  });
  return Flow::Next;
}

template <class A, class B> struct Dp4a {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 32; i += 8)
      c += uint32_t(int32_t(A(a >> i)) * int32_t(B(b >> i)));
    return c;
  }
};
template <class A, class A16, class B, bool high> struct Dp2a {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 2; ++i)
      c += uint32_t(int32_t(A16(a >> (16 * i))) *
                    int32_t(B(b >> (8 * i + (high ? 16 : 0)))));
    return c;
  }
};
template <class F> Handler logical(int bits) {
  return bits == 16   ? binary<F, uint16_t>
         : bits == 32 ? binary<F, uint32_t>
                      : binary<F, uint64_t>;
}
template <class F> Handler logicalOne(int bits) {
  return bits == 16   ? unary<F, uint16_t>
         : bits == 32 ? unary<F, uint32_t>
                      : unary<F, uint64_t>;
}
template <class F, class T> Handler shift() {
  return binary<F, T, T, uint32_t>;
}
template <class F, class T> Handler toWord() { return unary<F, uint32_t, T>; }

template <template <class, class> class F>
Handler dot(bool a, bool b) { // signed?
  using S = int8_t;
  using U = uint8_t;
  using W = uint32_t;
  return a ? (b ? ternary<F<S, S>, W> : ternary<F<S, U>, W>)
           : (b ? ternary<F<U, S>, W> : ternary<F<U, U>, W>);
}
template <class A, class B>
using Dp2aLow =
    Dp2a<A, std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>, B,
         false>;
template <class A, class B>
using Dp2aHigh =
    Dp2a<A, std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>, B,
         true>;

} // namespace

bool buildBits(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  Ty type = typeOf(s.parts.back());
  if (type == Ty::None || type == Ty::Pred || bitsOf(type) > 64)
    return false;
  int bits = bitsOf(type);
  bool isSigned = type == Ty::S16 || type == Ty::S32 || type == Ty::S64;
  auto plain = [&](Handler run, size_t operands) {
    b.expectCount(operands);
    op.run = run;
    op.a = b.in(1, type);
    if (operands > 2)
      op.b = b.in(2, type);
    op.d = b.out(0, type);
    return true;
  };
  if (name == "and")
    return plain(logical<And>(bits), 3);
  if (name == "or")
    return plain(logical<Or>(bits), 3);
  if (name == "xor")
    return plain(logical<Xor>(bits), 3);
  if (name == "not")
    return plain(logicalOne<Not>(bits), 2);
  if (name == "cnot")
    return plain(logicalOne<CNot>(bits), 2);
  if (name == "brev" && bits >= 32)
    return plain(bits == 32 ? unary<Brev, uint32_t> : unary<Brev, uint64_t>, 2);
  if (name == "shl" || name == "shr") {
    b.expectCount(3);
    op.run = name == "shl" ? (bits == 16   ? shift<Shl, uint16_t>()
                              : bits == 32 ? shift<Shl, uint32_t>()
                                           : shift<Shl, uint64_t>())
             : isSigned    ? (bits == 16   ? shift<Shr, int16_t>()
                              : bits == 32 ? shift<Shr, int32_t>()
                                           : shift<Shr, int64_t>())
                           : (bits == 16   ? shift<Shr, uint16_t>()
                              : bits == 32 ? shift<Shr, uint32_t>()
                                           : shift<Shr, uint64_t>());
    op.a = b.in(1, type);
    op.b = b.in(2, Ty::U32);
    op.d = b.out(0, type);
    return true;
  }
  if (name == "shf" && bits == 32) {
    b.expectCount(4);
    bool left = s.has("l"), wrap = s.has("wrap");
    using W = uint32_t;
    op.run = left ? (wrap ? ternary<Shf<true, true>, W>
                          : ternary<Shf<true, false>, W>)
                  : (wrap ? ternary<Shf<false, true>, W>
                          : ternary<Shf<false, false>, W>);
  } else if (name == "prmt" && s.parts.size() == 2) {
    b.expectCount(4);
    op.run = ternary<Prmt, uint32_t>;
  } else if (name == "lop3") {
    if (s.parts.size() != 2)
      return false; // with a predicate
    b.expectCount(5);
    op.imm = b.immediate(4);
    op.run = lop3;
  } else if (name == "dp4a") {
    b.expectCount(4);
    op.run = dot<Dp4a>(s.parts[1] == "s32", type == Ty::S32);
  } else if (name == "dp2a") {
    b.expectCount(4);
    bool first = s.parts[2] == "s32";
    op.run = s.has("hi") ? dot<Dp2aHigh>(first, type == Ty::S32)
                         : dot<Dp2aLow>(first, type == Ty::S32);
  }
  if (op.run) {
    op.a = b.in(1, type);
    op.b = b.in(2, type);
    op.c = b.in(3, Ty::U32);
    op.d = b.out(0, type);
    return true;
  }
  if (name == "popc" || name == "clz") {
    b.expectCount(2);
    op.a = b.in(1, type);
    op.d = b.out(0, Ty::U32);
    bool wide = bits == 64;
    op.run = name == "popc"
                 ? (wide ? toWord<Popc, uint64_t>() : toWord<Popc, uint32_t>())
                 : (wide ? toWord<Clz, uint64_t>() : toWord<Clz, uint32_t>());
    return bits >= 32;
  }
  if (name == "bfind") {
    b.expectCount(2);
    op.a = b.in(1, type);
    op.d = b.out(0, Ty::U32);
    bool shift = s.has("shiftamt");
    op.run = type == Ty::U32   ? (shift ? toWord<Bfind<true>, uint32_t>()
                                        : toWord<Bfind<false>, uint32_t>())
             : type == Ty::S32 ? (shift ? toWord<Bfind<true>, int32_t>()
                                        : toWord<Bfind<false>, int32_t>())
             : type == Ty::U64 ? (shift ? toWord<Bfind<true>, uint64_t>()
                                        : toWord<Bfind<false>, uint64_t>())
             : type == Ty::S64 ? (shift ? toWord<Bfind<true>, int64_t>()
                                        : toWord<Bfind<false>, int64_t>())
                               : nullptr;
    return op.run;
  }
  if (name == "bfe") {
    b.expectCount(4);
    op.a = b.in(1, type);
    op.b = b.in(2, Ty::U32);
    op.c = b.in(3, Ty::U32);
    op.d = b.out(0, type);
    using W = uint32_t;
    op.run = type == Ty::U32   ? ternary<Bfe, uint32_t, uint32_t, W, W>
             : type == Ty::S32 ? ternary<Bfe, int32_t, int32_t, W, W>
             : type == Ty::U64 ? ternary<Bfe, uint64_t, uint64_t, W, W>
             : type == Ty::S64 ? ternary<Bfe, int64_t, int64_t, W, W>
                               : nullptr;
    return op.run;
  }
  if (name == "bfi") {
    b.expectCount(5);
    op.a = b.in(1, type);
    op.b = b.in(2, type);
    op.c = b.in(3, Ty::U32);
    op.regs = {b.in(4, Ty::U32)};
    op.d = b.out(0, type);
    op.run = bits == 32 ? bfi<uint32_t> : bits == 64 ? bfi<uint64_t> : nullptr;
    return op.run;
  }
  if (name == "bmsk" && s.has("clamp")) {
    b.expectCount(3);
    op.a = b.in(1, Ty::U32);
    op.b = b.in(2, Ty::U32);
    op.d = b.out(0, Ty::U32);
    op.run = binary<Bmsk, uint32_t>;
    return true;
  }
  return false;
}

} // namespace emu::EMU_LEVEL
