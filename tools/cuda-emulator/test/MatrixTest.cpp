// Fragments of mma and ldmatrix by the tables of the PTX ISA: each test writes
// the table's formula down again and fills matrices with numbers that tell
// every position apart.
#include "Harness.h"

#include <bit>

namespace {

using Matrix = Device;

// The element of a matrix that a lane has: row and column for element i of its
// fragment, as the ISA writes it. groupID = lane >> 2, t = lane % 4.
struct Place {
  int row, col;
};

struct Kind {
  const char *shape, *types; // of the opcode
  int rows, k, perRegister;  // elements in 32 bits of A and B
  bool isInteger, isSigned;
  Place (*a)(int lane, int i), (*b)(int lane, int i);
  uint32_t (*encode)(float);
  int bits;
};

uint32_t half(float x) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(x));
}
uint32_t bfloat(float x) { return std::bit_cast<uint32_t>(x) >> 16; }
uint32_t single(float x) { return std::bit_cast<uint32_t>(x); }
uint32_t byte(float x) { return uint8_t(int(x)); }

// m16n8k16 of 16 bits.
Place a16(int lane, int i) {
  int g = lane >> 2, t = lane % 4;
  return {(i < 2 || (i >= 4 && i < 6)) ? g : g + 8,
          t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place b16(int lane, int i) {
  return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2};
}
// m16n8k8 of 16 bits.
Place a8(int lane, int i) {
  return {(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}
Place b8(int lane, int i) { return {lane % 4 * 2 + i, lane >> 2}; }
// m16n8k8 and m16n8k4 of tf32.
Place aTf8(int lane, int i) {
  return {(lane >> 2) + (i & 1 ? 8 : 0), lane % 4 + (i >= 2 ? 4 : 0)};
}
Place bTf8(int lane, int i) { return {lane % 4 + 4 * i, lane >> 2}; }
// m16n8k32 of 8 bits.
Place a32(int lane, int i) {
  int g = lane >> 2;
  return {(i < 4 || (i >= 8 && i < 12)) ? g : g + 8,
          lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place b32(int lane, int i) {
  return {lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane >> 2};
}
// m16n8k16 of 8 bits.
Place aByte16(int lane, int i) {
  return {(lane >> 2) + (i < 4 ? 0 : 8), lane % 4 * 4 + (i & 3)};
}
Place bByte16(int lane, int i) { return {lane % 4 * 4 + (i & 3), lane >> 2}; }

const Kind kinds[] = {
    {"m16n8k16", "f32.f16.f16.f32", 16, 16, 2, false, true, a16, b16, half, 16},
    {"m16n8k8", "f32.f16.f16.f32", 16, 8, 2, false, true, a8, b8, half, 16},
    {"m16n8k16", "f32.bf16.bf16.f32", 16, 16, 2, false, true, a16, b16, bfloat,
     16},
    {"m16n8k8", "f32.bf16.bf16.f32", 16, 8, 2, false, true, a8, b8, bfloat, 16},
    {"m16n8k8", "f32.tf32.tf32.f32", 16, 8, 1, false, true, aTf8, bTf8, single,
     32},
    {"m16n8k4", "f32.tf32.tf32.f32", 16, 4, 1, false, true, aTf8, bTf8, single,
     32},
    {"m16n8k32", "s32.s8.s8.s32", 16, 32, 4, true, true, a32, b32, byte, 8},
    {"m16n8k32", "s32.u8.u8.s32", 16, 32, 4, true, false, a32, b32, byte, 8},
    {"m16n8k16", "s32.s8.s8.s32", 16, 16, 4, true, true, aByte16, bByte16, byte,
     8},
    {"m16n8k16", "f16.f16.f16.f16", 16, 16, 2, false, true, a16, b16, half, 16},
};

std::string list(const char *prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i ? "," : "") + std::string(prefix) + std::to_string(first + i);
  return text + "}";
}

TEST_F(Matrix, FragmentsOfMma) {
  for (const Kind &kind : kinds) {
    bool halfSum = kind.types[0] == 'f' && kind.types[1] == '1';
    int aRegs = 16 * kind.k / 32 / kind.perRegister,
        bRegs = 8 * kind.k / 32 / kind.perRegister, sums = halfSum ? 2 : 4;
    // Small numbers, all sums exact in every type.
    std::vector<float> a(16 * kind.k), b(kind.k * 8), c(16 * 8);
    uint32_t random = 12345;
    auto small = [&](bool isSigned) {
      random = random * 1664525 + 1013904223;
      int x = random >> 24 & 7;
      return float(isSigned ? x - 4 : x);
    };
    for (float &x : a)
      x = small(kind.isSigned);
    for (float &x : b)
      x = small(kind.isSigned);
    for (float &x : c)
      x = small(true) * 8;
    std::vector<uint32_t> words((aRegs + bRegs + sums) * 32);
    for (int lane = 0; lane < 32; ++lane) {
      auto put = [&](int reg, int part, uint32_t value) {
        words[reg * 32 + lane] |= value << (part * kind.bits % 32);
      };
      for (int i = 0; i < aRegs * kind.perRegister; ++i) {
        Place at = kind.a(lane, i);
        put(i / kind.perRegister, i % kind.perRegister,
            kind.encode(a[at.row * kind.k + at.col]));
      }
      for (int i = 0; i < bRegs * kind.perRegister; ++i) {
        Place at = kind.b(lane, i);
        put(aRegs + i / kind.perRegister, i % kind.perRegister,
            kind.encode(b[at.row * 8 + at.col]));
      }
      for (int i = 0; i < 4; ++i) {
        int row = (lane >> 2) + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + (i & 1);
        float x = c[row * 8 + col];
        if (halfSum)
          words[(aRegs + bRegs + i / 2) * 32 + lane] |= half(x) << (i & 1) * 16;
        else
          words[(aRegs + bRegs + i) * 32 + lane] =
              kind.isInteger ? uint32_t(int(x)) : single(x);
      }
    }
    std::string body = "mov.u32 %r59, %laneid; mul.wide.u32 %rd30, %r59, 4;"
                       "add.u64 %rd31, %rd0, %rd30;"
                       "add.u64 %rd32, %rd1, %rd30;\n";
    for (int i = 0; i < aRegs + bRegs + sums; ++i)
      body += "ld.global.u32 %r" + std::to_string(i + 10) + ", [%rd31+" +
              std::to_string(i * 128) + "];\n";
    body += std::string("mma.sync.aligned.") + kind.shape + ".row.col." +
            kind.types + " " + list("%r", 0, sums) + ", " +
            list("%r", 10, aRegs) + ", " + list("%r", 10 + aRegs, bRegs) +
            ", " + list("%r", 10 + aRegs + bRegs, sums) + ";\n";
    for (int i = 0; i < sums; ++i)
      body += "st.global.u32 [%rd32+" + std::to_string(i * 128) + "], %r" +
              std::to_string(i) + ";\n";
    uint64_t from = upload(words), to = allocate(sums * 128);
    void *kernel = function(load(ptxKernel(body, 2)), "k");
    ASSERT_EQ(launch(kernel, 1, 32, 0, from, to), 0) << reported();
    std::vector<uint32_t> result = download<uint32_t>(to, sums * 32);
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        int row = (lane >> 2) + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + (i & 1);
        float sum = c[row * 8 + col];
        for (int k = 0; k < kind.k; ++k)
          sum += a[row * kind.k + k] * b[k * 8 + col];
        uint32_t got = halfSum
                           ? result[i / 2 * 32 + lane] >> (i & 1) * 16 & 65535
                           : result[i * 32 + lane];
        uint32_t expected = halfSum          ? half(sum)
                            : kind.isInteger ? uint32_t(int(sum))
                                             : single(sum);
        ASSERT_EQ(got, expected)
            << kind.shape << "." << kind.types << " lane " << lane << " " << i;
      }
  }
}

TEST_F(Matrix, LoadsFragments) {
  // Shared memory has four matrices of numbered elements; row r of matrix m
  // is at m * 128 + r * 16.
  for (bool trans : {false, true}) {
    std::string body = R"(
      .shared .align 16 .b8 s[512];
      mov.u32 %r1, s; mov.u32 %r2, %laneid; shl.b32 %r3, %r2, 4;
      add.u32 %r4, %r1, %r3;
      shl.b32 %r5, %r2, 3;
      add.u32 %r6, %r5, 1; add.u32 %r7, %r5, 2; add.u32 %r8, %r5, 3;
      add.u32 %r9, %r5, 4; add.u32 %r10, %r5, 5; add.u32 %r11, %r5, 6;
      add.u32 %r12, %r5, 7;
      shl.b32 %r6, %r6, 16; or.b32 %r20, %r5, %r6;
      shl.b32 %r8, %r8, 16; or.b32 %r21, %r7, %r8;
      shl.b32 %r10, %r10, 16; or.b32 %r22, %r9, %r10;
      shl.b32 %r12, %r12, 16; or.b32 %r23, %r11, %r12;
      st.shared.v4.b32 [%r4], {%r20, %r21, %r22, %r23};
      bar.warp.sync -1;
      ldmatrix.sync.aligned.m8n8.x4)" +
                       std::string(trans ? ".trans" : "") + R"(.shared.b16
        {%r30, %r31, %r32, %r33}, [%r4];
      mul.wide.u32 %rd30, %r2, 16; add.u64 %rd31, %rd0, %rd30;
      st.global.v4.u32 [%rd31], {%r30, %r31, %r32, %r33};
)";
    uint64_t to = allocate(512);
    ASSERT_EQ(launch(function(load(ptxKernel(body, 1)), "k"), 1, 32, 0, to), 0)
        << reported();
    std::vector<uint16_t> got = download<uint16_t>(to, 256);
    for (int lane = 0; lane < 32; ++lane)
      for (int m = 0; m < 4; ++m)
        for (int i = 0; i < 2; ++i) {
          int row = lane / 4, col = lane % 4 * 2 + i;
          int expected =
              trans ? m * 64 + col * 8 + row : m * 64 + row * 8 + col;
          EXPECT_EQ(got[lane * 8 + m * 2 + i], expected) << lane << " " << m;
        }
  }
}

} // namespace
