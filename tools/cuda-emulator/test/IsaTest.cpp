// Instructions one by one. Expected numbers come from the PTX ISA's
// definitions worked out by hand, or from C++ arithmetic that is exact.
#include "Harness.h"

#include <bit>
#include <cmath>

namespace {

uint32_t f(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t d(double x) { return std::bit_cast<uint64_t>(x); }

struct Case {
  const char *body; // from %r1.. %rs1.. %f1.. %rd11.. %fd1.. to register 0
  std::vector<uint64_t> in;
  uint64_t out;
};

class Isa : public Device {
protected:
  // The result register is the one of number 0 that the body names.
  uint64_t run(const std::string &body, std::vector<uint64_t> in) {
    in.resize(3);
    std::string text;
    for (int i = 1; i <= 3; ++i) {
      std::string n = std::to_string(i);
      text += "ld.global.u64 %rd1" + n + ", [%rd0+" +
              std::to_string(8 * (i - 1)) + "];\n" + "cvt.u32.u64 %r" + n +
              ", %rd1" + n + ";\ncvt.u16.u64 %rs" + n + ", %rd1" + n +
              ";\nmov.b32 %f" + n + ", %r" + n + ";\nmov.b64 %fd" + n +
              ", %rd1" + n + ";\n";
    }
    text += body + "\n";
    auto names = [&](const char *reg) {
      size_t at = body.find(reg);
      for (; at != std::string::npos; at = body.find(reg, at + 1))
        if (!isdigit(body[at + std::strlen(reg)]))
          return true;
      return false;
    };
    if (names("%p0"))
      text += "selp.u32 %r50, 1, 0, %p0; st.global.u32 [%rd1], %r50;";
    else if (names("%rs0"))
      text += "st.global.u16 [%rd1], %rs0;";
    else if (names("%rd20"))
      text += "st.global.u64 [%rd1], %rd20;";
    else if (names("%fd0"))
      text += "st.global.f64 [%rd1], %fd0;";
    else if (names("%f0"))
      text += "st.global.f32 [%rd1], %f0;";
    else
      text += "st.global.u32 [%rd1], %r0;";
    uint64_t from = upload(in), to = upload(std::vector<uint64_t>{0});
    void *module = load(ptxKernel(text, 2));
    if (!module)
      return ~0ull;
    EXPECT_EQ(launch(function(module, "k"), 1, 1, 0, from, to), 0)
        << reported();
    uint64_t result = download<uint64_t>(to, 1)[0];
    driver("cuModuleUnload", module);
    return result;
  }
  void check(const std::vector<Case> &cases) {
    for (const Case &at : cases)
      EXPECT_EQ(run(at.body, at.in), at.out)
          << at.body << std::hex << " got 0x" << run(at.body, at.in)
          << " expected 0x" << at.out;
  }
};

TEST_F(Isa, Integers) {
  check({
      {"add.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x80000000},
      {"add.sat.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x7fffffff},
      {"sub.sat.s32 %r0, %r1, %r2;", {0x80000000, 1}, 0x80000000},
      {"sub.u64 %rd20, %rd11, %rd12;", {3, 5}, uint64_t(-2)},
      {"add.u16 %rs0, %rs1, %rs2;", {0xffff, 2}, 1},
      {"mul.lo.s32 %r0, %r1, %r2;", {uint32_t(-3), 7}, uint32_t(-21)},
      {"mul.hi.s32 %r0, %r1, %r2;", {uint32_t(-3), 7}, 0xffffffff},
      {"mul.hi.u32 %r0, %r1, %r2;", {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"mul.hi.u64 %rd20, %rd11, %rd12;", {~0ull, ~0ull}, ~0ull - 1},
      {"mul.hi.s64 %rd20, %rd11, %rd12;", {~0ull, 5}, ~0ull},
      {"mul.wide.s32 %rd20, %r1, %r2;", {uint32_t(-2), 3}, uint64_t(-6)},
      {"mul.wide.u32 %rd20, %r1, %r2;", {0xffffffff, 2}, 0x1fffffffe},
      {"mul.wide.s16 %r0, %rs1, %rs2;", {0xffff, 300}, uint32_t(-300)},
      {"mul24.lo.s32 %r0, %r1, %r2;", {0xffffff, 5}, uint32_t(-5)},
      {"mad.lo.s32 %r0, %r1, %r2, %r3;", {5, 6, uint32_t(-1)}, 29},
      {"mad.wide.u32 %rd20, %r1, %r2, %rd13;", {0xffffffff, 2, 5}, 0x200000003},
      {"mad.hi.u32 %r0, %r1, %r2, %r3;", {0x80000000, 4, 5}, 7},
      {"sad.s32 %r0, %r1, %r2, %r3;", {uint32_t(-3), 4, 10}, 17},
      {"div.s32 %r0, %r1, %r2;", {uint32_t(-7), 2}, uint32_t(-3)},
      {"rem.s32 %r0, %r1, %r2;", {uint32_t(-7), 2}, uint32_t(-1)},
      {"div.u64 %rd20, %rd11, %rd12;", {~0ull, 10}, ~0ull / 10},
      {"abs.s32 %r0, %r1;", {uint32_t(-9)}, 9},
      {"neg.s64 %rd20, %rd11;", {9}, uint64_t(-9)},
      {"min.s32 %r0, %r1, %r2;", {uint32_t(-9), 3}, uint32_t(-9)},
      {"min.u32 %r0, %r1, %r2;", {uint32_t(-9), 3}, 3},
      {"max.s16 %rs0, %rs1, %rs2;", {0xfff0, 3}, 3},
      {"add.u16x2 %r0, %r1, %r2;", {0x0001ffff, 0x00020002}, 0x00030001},
      {"max.s16x2 %r0, %r1, %r2;", {0x0001ffff, 0xfffe0002}, 0x00010002},
      // 128-bit sums by carries.
      {"add.cc.u64 %rd30, %rd11, %rd12; addc.u64 %rd20, %rd13, 0;",
       {~0ull, 1, 5},
       6},
      {"sub.cc.u32 %r30, %r1, %r2; subc.u32 %r0, %r3, 0;", {1, 2, 5}, 4},
      {"mad.lo.cc.u32 %r30, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 7;",
       {0xffffffff, 2, 2},
       9},
  });
}

TEST_F(Isa, Bits) {
  check({
      {"and.b32 %r0, %r1, 0xff00;", {0x12345678}, 0x5600},
      {"xor.b64 %rd20, %rd11, -1;", {5}, ~5ull},
      {"not.b16 %rs0, %rs1;", {0x00f0}, 0xff0f},
      {"cnot.b32 %r0, %r1;", {0}, 1},
      {"shl.b32 %r0, %r1, %r2;", {1, 33}, 0},
      {"shr.s32 %r0, %r1, %r2;", {0x80000000, 40}, 0xffffffff},
      {"shr.u32 %r0, %r1, 4;", {0x80000000}, 0x08000000},
      {"shr.s64 %rd20, %rd11, 8;", {0xff00000000000000}, 0xffff000000000000},
      {"shf.l.wrap.b32 %r0, %r1, %r2, 36;",
       {0xf0000000, 0x12345678},
       0x2345678f},
      {"shf.r.clamp.b32 %r0, %r1, %r2, 40;", {1, 0xabcd}, 0xabcd},
      {"shf.r.wrap.b32 %r0, %r1, %r2, 8;",
       {0x11223344, 0xaabbccdd},
       0xdd112233},
      {"popc.b32 %r0, %r1;", {0xf0f0}, 8},
      {"popc.b64 %r0, %rd11;", {~0ull}, 64},
      {"clz.b32 %r0, %r1;", {0x00010000}, 15},
      {"clz.b64 %r0, %rd11;", {0}, 64},
      {"brev.b32 %r0, %r1;", {1}, 0x80000000},
      {"bfind.u32 %r0, %r1;", {0x00010000}, 16},
      {"bfind.s32 %r0, %r1;", {0xffffff00}, 7},
      {"bfind.shiftamt.u32 %r0, %r1;", {0x00010000}, 15},
      {"bfind.u32 %r0, %r1;", {0}, 0xffffffff},
      {"bfe.u32 %r0, %r1, 8, 8;", {0x12345678}, 0x56},
      {"bfe.s32 %r0, %r1, 4, 4;", {0x000000f0}, 0xffffffff},
      {"bfe.s32 %r0, %r1, 28, 8;", {0x80000000}, 0xfffffff8},
      {"bfe.u32 %r0, %r1, 28, 8;", {0x80000000}, 8},
      {"bfi.b32 %r0, %r1, %r2, 8, 8;", {0xab, 0x11223344}, 0x1122ab44},
      {"bfi.b64 %rd20, %rd11, %rd12, 32, 32;",
       {0xdeadbeef, 0x12345678},
       0xdeadbeef12345678},
      {"prmt.b32 %r0, %r1, %r2, 0x5410;", {0x33221100, 0x77665544}, 0x55441100},
      {"prmt.b32 %r0, %r1, %r2, 0x0008;", {0x00000080, 0}, 0x808080ff},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;",
       {0xff00ff00, 0xf0f0f0f0, 0xcccccccc},
       0xff00ff00 ^ 0xf0f0f0f0 ^ 0xcccccccc},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0xe8;",
       {0xff00ff00, 0xf0f0f0f0, 0xcccccccc},
       (0xff00ff00 & 0xf0f0f0f0) | (0xf0f0f0f0 & 0xcccccccc) |
           (0xff00ff00 & 0xcccccccc)},
      {"dp4a.s32.s32 %r0, %r1, %r2, %r3;",
       {0xff02fd04, 0x01020304, 100},
       100 - 1 + 4 - 9 + 16},
      {"dp4a.u32.u32 %r0, %r1, %r2, %r3;",
       {0xff000001, 0x02000003, 1},
       255 * 2 + 3 + 1},
      {"dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;",
       {0xfffe0003, 0x0a0b0405, 7},
       7 + 15 - 8},
      {"dp2a.hi.s32.s32 %r0, %r1, %r2, %r3;",
       {0xfffe0003, 0x0a0b0405, 7},
       7 + 33 - 20},
  });
}

TEST_F(Isa, Floats) {
  float tiny = 0x1p-149f, inf = INFINITY;
  check({
      {"add.f32 %f0, %f1, %f2;", {f(0.1f), f(0.2f)}, f(0.1f + 0.2f)},
      {"add.rz.f32 %f0, %f1, %f2;", {f(1.0f), f(0x1.8p-24f)}, f(1.0f)},
      {"add.rp.f32 %f0, %f1, %f2;", {f(1.0f), f(tiny)}, f(0x1.000002p0f)},
      {"add.rm.f32 %f0, %f1, %f2;", {f(-1.0f), f(-tiny)}, f(-0x1.000002p0f)},
      {"mul.f32 %f0, %f1, %f2;", {f(tiny), f(1.0f)}, f(tiny)},
      {"mul.ftz.f32 %f0, %f1, %f2;", {f(tiny), f(1e30f)}, f(0.0f)},
      {"mul.ftz.f32 %f0, %f1, %f2;", {f(0x1p-100f), f(-0x1p-40f)}, f(-0.0f)},
      {"add.sat.f32 %f0, %f1, %f2;", {f(0.75f), f(0.75f)}, f(1.0f)},
      {"add.f32 %f0, %f1, %f2;", {f(inf), f(-inf)}, 0x7fffffff},
      {"fma.rn.f32 %f0, %f1, %f2, %f3;",
       {f(0x1.000002p0f), f(0x1.000002p0f), f(-0x1.000004p0f)},
       f(0x1p-46f)},
      {"fma.rm.f32 %f0, %f1, %f2, %f3;",
       {f(-0x1.000002p0f), f(0x1.000002p0f), f(0.0f)},
       f(-0x1.000006p0f)},
      {"mad.rn.f32 %f0, %f1, %f2, %f3;", {f(2), f(3), f(4)}, f(10)},
      {"div.rn.f32 %f0, %f1, %f2;", {f(1), f(3)}, f(1.0f / 3)},
      {"rcp.rn.f32 %f0, %f1;", {f(3)}, f(1.0f / 3)},
      {"sqrt.rn.f32 %f0, %f1;", {f(2)}, f(std::sqrt(2.0f))},
      {"min.f32 %f0, %f1, %f2;", {0x7fc00000, f(2)}, f(2)},
      {"min.NaN.f32 %f0, %f1, %f2;", {0x7fc00000, f(2)}, 0x7fffffff},
      {"max.f32 %f0, %f1, %f2;", {f(-0.0f), f(0.0f)}, f(0.0f)},
      {"min.f32 %f0, %f1, %f2;", {f(0.0f), f(-0.0f)}, f(-0.0f)},
      {"abs.f32 %f0, %f1;", {f(-3)}, f(3)},
      {"neg.f32 %f0, %f1;", {f(0)}, f(-0.0f)},
      {"copysign.f32 %f0, %f1, %f2;", {f(-1), f(5)}, f(-5)},
      {"fma.rn.f64 %fd0, %fd1, %fd2, %fd3;", {d(2), d(3), d(0.5)}, d(6.5)},
      {"div.rn.f64 %fd0, %fd1, %fd2;", {d(1), d(3)}, d(1.0 / 3)},
      {"ex2.approx.f32 %f0, %f1;", {f(3)}, f(8)},
      {"ex2.approx.f32 %f0, %f1;", {f(-0.5f)}, f(0x1.6a09e6p-1f)},
      {"ex2.approx.f32 %f0, %f1;", {f(-inf)}, f(0)},
      {"ex2.approx.ftz.f32 %f0, %f1;", {f(-130)}, f(0)},
      {"ex2.approx.f32 %f0, %f1;", {f(-130)}, f(0x1p-130f)},
      {"lg2.approx.f32 %f0, %f1;", {f(8)}, f(3)},
      {"rsqrt.approx.f32 %f0, %f1;", {f(4)}, f(0.5f)},
      {"tanh.approx.f32 %f0, %f1;", {f(0)}, f(0)},
      {"testp.finite.f32 %p0, %f1;", {f(inf)}, 0},
      {"testp.notanumber.f32 %p0, %f1;", {0x7fc00000}, 1},
  });
}

// f16: 1 is 0x3c00, an ulp there 2^-10; bf16: 1 is 0x3f80, an ulp 2^-7.
TEST_F(Isa, Halves) {
  check({
      {"add.f16 %rs0, %rs1, %rs2;", {0x3c00, 0x3c01}, 0x4000},
      {"mul.f16 %rs0, %rs1, %rs2;", {0x4200, 0xc400}, 0xca00},
      {"fma.rn.f16 %rs0, %rs1, %rs2, %rs3;", {0x3c01, 0x3c01, 0xbc02}, 0x0010},
      {"fma.rn.f16x2 %r0, %r1, %r2, %r3;",
       {0x3c003c00, 0x40004200, 0x3c003c00},
       0x42004400},
      {"fma.rn.relu.f16x2 %r0, %r1, %r2, %r3;",
       {0xbc003c00, 0x40004200, 0x00003c00},
       0x00004400},
      {"sub.f16x2 %r0, %r1, %r2;", {0x40003c00, 0x3c003c00}, 0x3c000000},
      {"max.f16x2 %r0, %r1, %r2;", {0x7e003c00, 0x3c004000}, 0x3c004000},
      {"max.NaN.f16x2 %r0, %r1, %r2;", {0x7e003c00, 0x3c004000}, 0x7fff4000},
      {"neg.f16x2 %r0, %r1;", {0x3c00bc00}, 0xbc003c00},
      {"fma.rn.bf16 %rs0, %rs1, %rs2, %rs3;", {0x3f81, 0x3f81, 0xbf82}, 0x3880},
      {"fma.rn.bf16x2 %r0, %r1, %r2, %r3;",
       {0x3f804000, 0x40004040, 0x3f803f80},
       0x404040e0},
      {"add.f16 %rs0, %rs1, %rs2;", {0x7bff, 0x7bff}, 0x7c00},
      {"setp.lt.f16 %p0, %rs1, %rs2;", {0xc000, 0x3c00}, 1},
      {"set.eq.f16.f16 %rs0, %rs1, %rs2;", {0x3c00, 0x3c00}, 0x3c00},
      {"set.lt.u32.f16 %r0, %rs1, %rs2;", {0x3c00, 0x4000}, 0xffffffff},
  });
}

TEST_F(Isa, Conversions) {
  float inf = INFINITY;
  check({
      {"cvt.rn.f32.s32 %f0, %r1;", {16777217}, f(16777216.0f)},
      {"cvt.rp.f32.s32 %f0, %r1;", {16777217}, f(16777218.0f)},
      {"cvt.rn.f32.u64 %f0, %rd11;", {~0ull}, f(0x1p64f)},
      {"cvt.rz.f32.u64 %f0, %rd11;", {~0ull}, f(0x1.fffffep63f)},
      {"cvt.rzi.s32.f32 %r0, %f1;", {f(-3.9f)}, uint32_t(-3)},
      {"cvt.rni.s32.f32 %r0, %f1;", {f(2.5f)}, 2},
      {"cvt.rmi.s32.f32 %r0, %f1;", {f(-2.5f)}, uint32_t(-3)},
      {"cvt.rpi.s32.f32 %r0, %f1;", {f(-2.5f)}, uint32_t(-2)},
      {"cvt.rzi.s32.f32 %r0, %f1;", {f(3e9f)}, 0x7fffffff},
      {"cvt.rzi.s32.f32 %r0, %f1;", {f(-inf)}, 0x80000000},
      {"cvt.rzi.s32.f32 %r0, %f1;", {0x7fc00000}, 0},
      {"cvt.rzi.u32.f32 %r0, %f1;", {f(-1.5f)}, 0},
      {"cvt.rzi.u64.f32 %rd20, %f1;", {f(0x1p63f)}, 1ull << 63},
      {"cvt.rzi.s64.f64 %rd20, %fd1;",
       {d(-1e18)},
       uint64_t(-1000000000000000000)},
      {"cvt.rni.f32.f32 %f0, %f1;", {f(3.5f)}, f(4)},
      {"cvt.rmi.f32.f32 %f0, %f1;", {f(-3.5f)}, f(-4)},
      {"cvt.sat.f32.f32 %f0, %f1;", {f(-3)}, f(0)},
      {"cvt.rn.f16.f32 %rs0, %f1;", {f(1.0f + 0x1p-11f)}, 0x3c00},
      {"cvt.rn.f16.f32 %rs0, %f1;", {f(1.0f + 0x1.8p-10f)}, 0x3c02},
      {"cvt.rz.f16.f32 %rs0, %f1;", {f(1.0f + 0x1.8p-10f)}, 0x3c01},
      {"cvt.rn.f16.f32 %rs0, %f1;", {f(65520)}, 0x7c00},
      {"cvt.rz.f16.f32 %rs0, %f1;", {f(65520)}, 0x7bff},
      {"cvt.rn.f16.f32 %rs0, %f1;", {f(0x1p-24f)}, 1},
      {"cvt.rn.f16.f32 %rs0, %f1;", {f(0x1p-25f)}, 0},
      {"cvt.f32.f16 %f0, %rs1;", {0x0001}, f(0x1p-24f)},
      {"cvt.f32.f16 %f0, %rs1;", {0xfc00}, f(-inf)},
      {"cvt.rn.bf16.f32 %rs0, %f1;", {0x3f808000}, 0x3f80},
      {"cvt.rn.bf16.f32 %rs0, %f1;", {0x3f818000}, 0x3f82},
      {"cvt.rn.bf16x2.f32 %r0, %f1, %f2;", {f(1), f(2)}, 0x3f804000},
      {"cvt.rn.f16x2.f32 %r0, %f1, %f2;", {f(1), f(2)}, 0x3c004000},
      {"cvt.rn.relu.bf16x2.f32 %r0, %f1, %f2;", {f(-1), f(2)}, 0x00004000},
      {"cvt.rna.tf32.f32 %r0, %f1;", {0x3f801000}, 0x3f802000},
      {"cvt.rna.tf32.f32 %r0, %f1;", {0x3f800fff}, 0x3f800000},
      {"cvt.rn.f32.f64 %f0, %fd1;", {d(0.1)}, f(0.1f)},
      {"cvt.rz.f32.f64 %f0, %fd1;", {d(1e300)}, f(0x1.fffffep127f)},
      {"cvt.rn.f32.f64 %f0, %fd1;", {d(0x1p-150)}, f(0)},
      {"cvt.f64.f32 %fd0, %f1;", {f(0.1f)}, d(double(0.1f))},
      {"cvt.s32.s8 %r0, %r1;", {0x80}, 0xffffff80},
      {"cvt.u32.u8 %r0, %r1;", {0x180}, 0x80},
      {"cvt.s64.s32 %rd20, %r1;", {0x80000000}, 0xffffffff80000000},
      {"cvt.u64.u32 %rd20, %r1;", {0x80000000}, 0x80000000},
      {"cvt.sat.s8.s32 %r0, %r1;", {300}, 127},
      {"cvt.sat.u8.s32 %r0, %r1;", {uint32_t(-5)}, 0},
      {"cvt.rn.f16.s32 %rs0, %r1;", {2049}, 0x6800},
      {"cvt.u16.u32 %rs0, %r1;", {0x12345}, 0x2345},
  });
}

TEST_F(Isa, ComparisonsAndSelection) {
  uint64_t nan = 0x7fc00000;
  check({
      {"setp.lt.s32 %p0, %r1, %r2;", {uint32_t(-1), 0}, 1},
      {"setp.lo.u32 %p0, %r1, %r2;", {uint32_t(-1), 0}, 0},
      {"setp.ne.f32 %p0, %f1, %f2;", {nan, f(1)}, 0},
      {"setp.neu.f32 %p0, %f1, %f2;", {nan, f(1)}, 1},
      {"setp.eq.f32 %p0, %f1, %f2;", {f(0.0f), f(-0.0f)}, 1},
      {"setp.ltu.f32 %p0, %f1, %f2;", {nan, f(1)}, 1},
      {"setp.geu.f32 %p0, %f1, %f2;", {f(0), f(1)}, 0},
      {"setp.num.f32 %p0, %f1, %f2;", {f(0), f(1)}, 1},
      {"setp.nan.f32 %p0, %f1, %f2;", {f(0), nan}, 1},
      {"setp.eq.s32 %p1, %r1, 5; setp.lt.and.s32 %p0, %r1, %r2, !%p1;",
       {5, 9},
       0},
      {"setp.lt.s32 %p1|%p0, %r1, %r2;", {5, 9}, 0},
      {"setp.lt.s32 %p1, %r1, %r2; setp.gt.s32 %p2, %r1, %r2; xor.pred %p0, "
       "%p1, %p2;",
       {5, 9},
       1},
      {"setp.lt.s32 %p1, %r1, %r2; selp.b32 %r0, %r1, %r2, %p1;", {5, 9}, 5},
      {"slct.s32.s32 %r0, %r1, %r2, %r3;", {5, 9, uint32_t(-1)}, 9},
      {"slct.s32.f32 %r0, %r1, %r2, %f3;", {5, 9, f(-0.0f)}, 5},
      {"set.lt.u32.s32 %r0, %r1, %r2;", {1, 2}, 0xffffffff},
      {"set.lt.f32.s32 %f0, %r1, %r2;", {1, 2}, f(1)},
      {"mov.b32 {%rs0, %rs9}, %r1;", {0x12345678}, 0x5678},
      {"mov.b32 %r0, {%rs1, %rs2};", {0x1111, 0x2222}, 0x22221111},
      {"mov.b64 {%r9, %r0}, %rd11;", {0x1234567887654321}, 0x12345678},
      {"mov.b64 %rd20, {%r1, %r2};", {1, 2}, 0x200000001},
      {"setp.ne.s32 %p1, %r1, 0; @%p1 mov.u32 %r0, 5; @!%p1 mov.u32 %r0, 6;",
       {0},
       6},
  });
}

} // namespace
