// mma.sync. By the PTX ISA's tables of fragments, a register of A or of B (or
// its transpose) is a matrix of 8 rows, 16 bytes each: lane 4 g + t has bytes
// 4 t to 4 t + 3 of row g. So a fragment in lane order is that matrix in row
// order.
//
// Sums: the k products of an element are exact; they are added up in double
// from the first to the last, then to the accumulator, and rounded once to f32
// (an f16 accumulator: from that f32). The device's order differs and is not
// documented; its sums are less exact.
#include "Gather.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

typedef double Row __attribute__((vector_size(64)));

inline Row multiplyAdd(double a, Row b, Row c) {
  Row wide = {a, a, a, a, a, a, a, a};
#ifdef __FMA__
  return __builtin_elementwise_fma(wide, b, c);
#else
  return wide * b + c; // the same: the product is exact
#endif
}

// Fragments in lane order: 8 rows of 8 halves, or of 4 words.
typedef uint16_t Halves __attribute__((vector_size(128), aligned(64)));
typedef uint32_t Words __attribute__((vector_size(128), aligned(64)));

inline Halves turnHalves(Halves v) {
  return __builtin_shufflevector(
      v, v, 0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57, 2, 10,
      18, 26, 34, 42, 50, 58, 3, 11, 19, 27, 35, 43, 51, 59, 4, 12, 20, 28, 36,
      44, 52, 60, 5, 13, 21, 29, 37, 45, 53, 61, 6, 14, 22, 30, 38, 46, 54, 62,
      7, 15, 23, 31, 39, 47, 55, 63);
}
inline Words turnWords(Words v) {
  return __builtin_shufflevector(v, v, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13,
                                 17, 21, 25, 29, 2, 6, 10, 14, 18, 22, 26, 30,
                                 3, 7, 11, 15, 19, 23, 27, 31);
}

struct F16 {
  using Word = uint16_t;
  using Panel = Halves;
  static Panel turn(Panel v) { return turnHalves(v); }
  static float widen(Word x) { return halfToFloat(x); }
};
struct BF16 {
  using Word = uint16_t;
  using Panel = Halves;
  static Panel turn(Panel v) { return turnHalves(v); }
  static float widen(Word x) { return bfloatToFloat(x); }
};
struct TF32 {
  using Word = uint32_t;
  using Panel = Words;
  static Panel turn(Panel v) { return turnWords(v); }
  static float widen(Word x) { return std::bit_cast<float>(x & 0xffffe000); }
};

// k columns of A: registers alternate between rows 0-7 and 8-15.
template <class T, int k>
void multiply(const Warp &w, const int32_t *a, const int32_t *b, Row *sums) {
  constexpr int perRow = 16 / sizeof(typename T::Word);
  constexpr int panels = k / perRow > 0 ? k / perRow : 1;
  double left[16][k];
  Row right[k];
  for (int panel = 0; panel < panels; ++panel) {
    for (int half = 0; half < 2; ++half) {
      const auto *from = w.in<typename T::Word>(a[panel * 2 + half]);
      float wide[8 * perRow];
      for (int i = 0; i < 8 * perRow; ++i)
        wide[i] = T::widen(from[i]);
      for (int row = 0; row < 8; ++row)
        for (int col = 0; col < perRow; ++col)
          left[half * 8 + row][panel * perRow + col] = wide[row * perRow + col];
    }
    // B is transposed while its elements are narrow.
    typename T::Panel turned = T::turn(
        *reinterpret_cast<const typename T::Panel *>(w.in<uint8_t>(b[panel])));
    for (int row = 0; row < perRow; ++row)
      for (int col = 0; col < 8; ++col)
        right[panel * perRow + row][col] = T::widen(turned[row * 8 + col]);
  }
  Row sum[16] = {};
  for (int i = 0; i < k; ++i)
#pragma clang loop unroll(full)
    for (int row = 0; row < 16; ++row)
      sum[row] = multiplyAdd(left[row][i], right[i], sum[row]);
  for (int row = 0; row < 16; ++row)
    sums[row] = sum[row];
}

// C and D: registers in pairs, rows 0-7 and 8-15; lane 4 g + t has columns 2 t
// and 2 t + 1 of row g.
void addSingle(Warp &w, const Op &op, const Row *sums) {
  float made[4][32]; // a register of D may be one of C
  for (int half = 0; half < 2; ++half) {
    // In row order, lane i has elements 2 i and 2 i + 1.
    const double *sum = reinterpret_cast<const double *>(sums + half * 8);
    for (int part = 0; part < 2; ++part) {
      const float *c = w.in<float>(op.regs[4 + half * 2 + part]);
      for (int i = 0; i < 32; ++i)
        made[half * 2 + part][i] =
            canonical(float(sum[2 * i + part] + double(c[i])));
    }
  }
  for (int part = 0; part < 4; ++part)
    std::memcpy(w.out<float>(op.regs[part]), made[part], 128);
}
void addHalf(Warp &w, const Op &op, const Row *sums) {
  uint16_t made[2][64];
  for (int part = 0; part < 2; ++part) {
    const uint16_t *c = w.in<uint16_t>(op.regs[2 + part]);
    for (int i = 0; i < 64; ++i)
      made[part][i] = floatToHalf(
          float(sums[i / 8 + part * 8][i % 8] + double(halfToFloat(c[i]))));
  }
  for (int part = 0; part < 2; ++part)
    std::memcpy(w.out<uint16_t>(op.regs[part]), made[part], 128);
}

template <class T, int k, bool half>
Flow mma(Warp &w, const Op &op, uint32_t mask) {
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, w.started, flow))
    return flow;
  if (mask != allLanes)
    w.fault(op, __builtin_ctz(mask), LaunchFailed,
            "expected all 32 lanes at an mma");
  Row sums[16];
  const int32_t *a = op.regs.data() + (half ? 4 : 8);
  const int32_t *b = a + op.count;
  multiply<T, k>(w, a, b, sums);
  if (half)
    addHalf(w, op, sums);
  else
    addSingle(w, op, sums);
  return Flow::Next;
}

// --- s8 and u8 ---

template <class A, class B, int rows, int k>
Flow mmaInteger(Warp &w, const Op &op, uint32_t mask) {
  Flow flow = Flow::Next;
  if (!gathered(w, op, mask, w.started, flow))
    return flow;
  if (mask != allLanes)
    w.fault(op, __builtin_ctz(mask), LaunchFailed,
            "expected all 32 lanes at an mma");
  constexpr int halves = rows / 8, results = halves * 2, panels = k / 16;
  const int32_t *a = op.regs.data() + 2 * results, *b = a + halves * panels;
  int32_t right[k][8], sums[rows][8] = {};
  for (int panel = 0; panel < panels; ++panel) {
    const B *from = w.in<B>(b[panel]);
    for (int row = 0; row < 16; ++row)
      for (int col = 0; col < 8; ++col)
        right[panel * 16 + row][col] = from[col * 16 + row];
  }
  for (int panel = 0; panel < panels; ++panel)
    for (int half = 0; half < halves; ++half) {
      const A *from = w.in<A>(a[panel * halves + half]);
      for (int row = 0; row < 8; ++row)
        for (int i = 0; i < 16; ++i) {
          int32_t x = from[row * 16 + i];
          for (int col = 0; col < 8; ++col)
            sums[half * 8 + row][col] += x * right[panel * 16 + i][col];
        }
    }
  int32_t made[results][32];
  for (int part = 0; part < results; ++part) {
    const int32_t *c = w.in<int32_t>(op.regs[results + part]);
    for (int i = 0; i < 32; ++i) {
      int64_t sum =
          int64_t(sums[i / 4 + part / 2 * 8][i % 4 * 2 + part % 2]) + c[i];
      made[part][i] = op.mode ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX)
                              : int32_t(sum);
    }
  }
  for (int part = 0; part < results; ++part)
    std::memcpy(w.out<int32_t>(op.regs[part]), made[part], 128);
  return Flow::Next;
}

template <class A, class B> Handler pickInteger(int rows, int k) {
  if (rows == 8)
    return k == 16 ? mmaInteger<A, B, 8, 16> : nullptr;
  return k == 16   ? mmaInteger<A, B, 16, 16>
         : k == 32 ? mmaInteger<A, B, 16, 32>
                   : nullptr;
}

template <class T, bool half> Handler pickHalf(int k) {
  return k == 8 ? mma<T, 8, half> : k == 16 ? mma<T, 16, half> : nullptr;
}

} // namespace

bool buildMatrix(Builder &b, const Statement &s, Op &op) {
  if (s.name() != "mma" || s.parts.size() < 10 || s.parts[1] != "sync")
    return false;
  b.expectCount(4);
  size_t last = s.parts.size() - 1;
  Ty d = b.type(s.parts[last - 3]), a = b.type(s.parts[last - 2]),
     right = b.type(s.parts[last - 1]), c = b.type(s.parts[last]);
  if (!s.has("row") || !s.has("col") || d != c || s.has("sp") ||
      s.has("block_scale"))
    return false;
  int rows = s.has("m16n8k4") || s.has("m16n8k8") || s.has("m16n8k16") ||
                     s.has("m16n8k32")
                 ? 16
             : s.has("m8n8k16") ? 8
                                : 0;
  int k = s.has("m16n8k4")    ? 4
          : s.has("m16n8k8")  ? 8
          : s.has("m16n8k32") ? 32
                              : 16;
  bool isInteger = d == Ty::S32;
  if (rows == 0 || (rows == 8 && !isInteger))
    return false;
  if (isInteger) {
    op.mode = s.has("satfinite");
    bool sa = a == Ty::S8, sb = right == Ty::S8;
    if ((!sa && a != Ty::U8) || (!sb && right != Ty::U8))
      return false;
    op.run = sa ? (sb ? pickInteger<int8_t, int8_t>(rows, k)
                      : pickInteger<int8_t, uint8_t>(rows, k))
                : (sb ? pickInteger<uint8_t, int8_t>(rows, k)
                      : pickInteger<uint8_t, uint8_t>(rows, k));
  } else if (d == Ty::F32 && a == right) {
    op.run = a == Ty::F16    ? pickHalf<F16, false>(k)
             : a == Ty::BF16 ? pickHalf<BF16, false>(k)
             : a == Ty::TF32 ? (k == 4   ? mma<TF32, 4, false>
                                : k == 8 ? mma<TF32, 8, false>
                                         : nullptr)
                             : nullptr;
  } else if (d == Ty::F16 && a == Ty::F16 && right == Ty::F16) {
    op.run = pickHalf<F16, true>(k);
  }
  if (!op.run)
    return false;
  // Registers: D, C, A, B.
  auto take = [&](size_t i, size_t count, bool out) {
    const Operand &from = b.operand(i);
    std::vector<Operand> elems =
        from.kind == Operand::Vector ? from.elems : std::vector<Operand>{from};
    if (elems.size() != count)
      b.fail(fmt::format("expected {} registers, got {}", count, elems.size()));
    for (const Operand &elem : elems)
      op.regs.push_back(out ? b.out(elem, Ty::B32) : b.in(elem, Ty::B32));
  };
  size_t perPanel = rows / 8;
  size_t bytesOfA = isInteger ? 1 : a == Ty::TF32 ? 4 : 2;
  size_t panels = k * bytesOfA / 16;
  size_t results = isInteger ? perPanel * 2 : d == Ty::F32 ? 4 : 2;
  take(0, results, true);
  take(3, results, false);
  take(1, panels * perPanel, false);
  take(2, panels, false);
  op.count = panels * perPanel;
  return true;
}

} // namespace emu::EMU_LEVEL
