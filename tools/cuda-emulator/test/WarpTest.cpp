// Ops of whole warps and blocks: divergence, shuffles, calls, barriers.
#include "Harness.h"

#include <cstdlib>

namespace {

class Warps : public Device {
protected:
  // 32 lanes; %r1 is the lane, the body leaves a result in %r0.
  std::vector<uint32_t> run(const std::string &body, unsigned block = 32,
                            const std::string &before = "") {
    uint64_t to = upload(std::vector<uint32_t>(block, 0xdead));
    void *module = load(ptxKernel("mov.u32 %r1, %laneid; mov.u32 %r59, %tid.x;"
                                  "mul.wide.u32 %rd30, %r59, 4;"
                                  "add.u64 %rd31, %rd0, %rd30;\n" +
                                      body + "\nst.global.u32 [%rd31], %r0;",
                                  1, before));
    EXPECT_EQ(launch(function(module, "k"), 1, block, 0, to), 0) << reported();
    return download<uint32_t>(to, block);
  }
};

TEST_F(Warps, EveryBlockOfAGridRunsOnce) {
  void *module = load(ptxKernel("mov.u32 %r1, %ctaid.x;"
                                "mul.wide.u32 %rd30, %r1, 4;"
                                "add.u64 %rd31, %rd0, %rd30;"
                                "ld.global.u32 %r2, [%rd31];"
                                "add.u32 %r2, %r2, 1;"
                                "st.global.u32 [%rd31], %r2;",
                                1));
  for (unsigned blocks : {1u, 1023u, 1024u, 1025u, 2112u}) {
    uint64_t counts = upload(std::vector<uint32_t>(blocks, 0));
    EXPECT_EQ(launch(function(module, "k"), blocks, 1, 0, counts), 0)
        << reported();
    EXPECT_EQ(download<uint32_t>(counts, blocks),
              std::vector<uint32_t>(blocks, 1));
  }
}

TEST_F(Warps, Shuffle) {
  auto up = run("shfl.sync.up.b32 %r0, %r1, 3, 0, -1;");
  auto down = run("shfl.sync.down.b32 %r0, %r1, 3, 31, -1;");
  auto bfly = run("shfl.sync.bfly.b32 %r0, %r1, 5, 31, -1;");
  auto index = run("shfl.sync.idx.b32 %r0, %r1, 7, 31, -1;");
  // Segments of 8: the mask of the segment's number, 24, in bits 8 and up.
  auto segment = run("shfl.sync.down.b32 %r0|%p1, %r1, 1, 0x181f, -1;"
                     "selp.u32 %r2, 100, 0, %p1; add.u32 %r0, %r0, %r2;");
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(up[i], i < 3 ? i : i - 3);
    EXPECT_EQ(down[i], i > 28 ? i : i + 3);
    EXPECT_EQ(bfly[i], i ^ 5);
    EXPECT_EQ(index[i], 7u);
    EXPECT_EQ(segment[i], i % 8 == 7 ? i : i + 1 + 100);
  }
}

TEST_F(Warps, VotesMatchesReductions) {
  auto ballot = run("and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;"
                    "vote.sync.ballot.b32 %r0, %p1, -1;");
  auto any = run("setp.eq.u32 %p1, %r1, 9; vote.sync.any.pred %p2, %p1, -1;"
                 "selp.u32 %r0, 1, 0, %p2;");
  auto all = run("setp.eq.u32 %p1, %r1, 9; vote.sync.all.pred %p2, !%p1, -1;"
                 "selp.u32 %r0, 1, 0, %p2;");
  auto match = run("and.b32 %r2, %r1, 3; match.any.sync.b32 %r0, %r2, -1;");
  auto sum = run("redux.sync.add.s32 %r0, %r1, -1;");
  auto least = run("sub.s32 %r2, 10, %r1; redux.sync.min.s32 %r0, %r2, -1;");
  auto least2 = run("sub.s32 %r2, 10, %r1; redux.sync.min.u32 %r0, %r2, -1;");
  auto half = run("setp.lt.u32 %p1, %r1, 16; mov.u32 %r0, 0;"
                  "@%p1 activemask.b32 %r0;");
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(ballot[i], 0xaaaaaaaa);
    EXPECT_EQ(any[i], 1u);
    EXPECT_EQ(all[i], 0u);
    EXPECT_EQ(match[i], 0x11111111u << i % 4);
    EXPECT_EQ(sum[i], 31u * 16);
    EXPECT_EQ(least[i], uint32_t(-21));
    EXPECT_EQ(least2[i], 0u);
    EXPECT_EQ(half[i], i < 16 ? 0xffffu : 0);
  }
}

TEST_F(Warps, DivergentLoopsMeetAgain) {
  // Lane i goes round i times; all meet for the ballot.
  auto rounds = run(R"(
    mov.u32 %r0, 0;
    mov.u32 %r2, %r1;
LOOP:
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    add.u32 %r0, %r0, %r2;
    sub.u32 %r2, %r2, 1;
    bra LOOP;
DONE:
    activemask.b32 %r3;
    setp.ne.u32 %p2, %r3, -1;
    @%p2 mov.u32 %r0, -1;
)");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(rounds[i], i * (i + 1) / 2);
}

TEST_F(Warps, SyncWaitsForLanesElsewhere) {
  // The halves reach the shuffle one after the other.
  auto sum = run(R"(
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra LOW;
    add.u32 %r2, %r1, 1000;
    bra.uni MEET;
LOW:
    add.u32 %r2, %r1, 2000;
MEET:
    shfl.sync.bfly.b32 %r0, %r2, 16, 31, -1;
)");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(sum[i], (i ^ 16) + ((i ^ 16) < 16 ? 2000 : 1000));
}

TEST_F(Warps, OneWarpBarrierInTwoPlaces) {
  auto passed = run(R"(
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra LOW;
    bar.warp.sync -1;
    mov.u32 %r0, 1;
    bra.uni END;
LOW:
    bar.warp.sync -1;
    mov.u32 %r0, 2;
END:
)");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(passed[i], i < 16 ? 2u : 1u);
}

TEST_F(Warps, LanesThatExitAreNotWaitedFor) {
  auto sum = run(R"(
    mov.u32 %r0, 7;
    st.global.u32 [%rd31], %r0;
    setp.gt.u32 %p1, %r1, 19;
    @%p1 exit;
    redux.sync.add.u32 %r0, %r1, 0xfffff;
)");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(sum[i], i < 20 ? 190u : 7u);
}

TEST_F(Warps, TablesOfBranches) {
  auto chosen = run(R"(
    and.b32 %r2, %r1, 3;
T:  .branchtargets A, B, C, B;
    brx.idx %r2, T;
A:  mov.u32 %r0, 10; bra.uni END;
B:  mov.u32 %r0, 20; bra.uni END;
C:  mov.u32 %r0, 30;
END:
)");
  uint32_t expected[] = {10, 20, 30, 20};
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(chosen[i], expected[i % 4]);
}

TEST_F(Warps, FunctionsWithParametersAndRecursion) {
  // sum(n) = n + sum(n - 1), to a different depth in each lane.
  auto sums = run(R"(
    { .param .b32 a; .param .b32 r;
      st.param.b32 [a], %r1;
      call.uni (r), sum, (a);
      ld.param.b32 %r0, [r]; }
)",
                  32, R"(
.func (.param .b32 result) sum(.param .b32 n) {
  .reg .b32 %r<5>; .reg .pred %p;
  ld.param.b32 %r1, [n];
  setp.eq.u32 %p, %r1, 0;
  mov.u32 %r3, 0;
  @%p bra END;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 r;
    st.param.b32 [a], %r2;
    call.uni (r), sum, (a);
    ld.param.b32 %r3, [r]; }
  add.u32 %r3, %r3, %r1;
END:
  st.param.b32 [result], %r3;
  ret;
})");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(sums[i], i * (i + 1) / 2);
}

TEST_F(Warps, BarriersReduceAndCount) {
  auto count = run("and.b32 %r2, %r59, 3; setp.eq.u32 %p1, %r2, 0;"
                   "bar.red.popc.u32 %r0, 0, %p1;",
                   128);
  auto any = run("setp.eq.u32 %p1, %r59, 77; bar.red.or.pred %p2, 0, %p1;"
                 "selp.u32 %r0, 1, 0, %p2;",
                 128);
  auto all = run("setp.ne.u32 %p1, %r59, 77; bar.red.and.pred %p2, 0, %p1;"
                 "selp.u32 %r0, 1, 0, %p2;",
                 128);
  for (uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(count[i], 32u);
    EXPECT_EQ(any[i], 1u);
    EXPECT_EQ(all[i], 0u);
  }
}

TEST_F(Warps, AtomicsOfSharedMemory) {
  auto counts = run(R"(
    .shared .align 4 .b32 n[4];
    mov.u32 %r2, n;
    setp.lt.u32 %p1, %r59, 4;
    shl.b32 %r3, %r59, 2; add.u32 %r3, %r3, %r2;
    @%p1 st.shared.u32 [%r3], 0;
    bar.sync 0;
    and.b32 %r4, %r59, 3; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2;
    atom.shared.add.u32 %r5, [%r4], 2;
    red.shared.max.u32 [n+12], 500;
    bar.sync 0;
    ld.shared.u32 %r0, [%r4];
)",
                    128);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(counts[i], i % 4 == 3 ? counts[3] : 64u);
  EXPECT_GE(counts[3], 500u);
}

TEST_F(Warps, LanesAtTwoBarriersAreAnError) {
  uint64_t to = upload(std::vector<uint32_t>(32));
  void *module = load(ptxKernel(R"(
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra LOW;
    bar.sync 0;
    bra.uni END;
LOW:
    bar.sync 0;
END:
)",
                                1));
  setenv("GPTC_EMULATOR_LIMIT", "10000", 1);
  EXPECT_EQ(launch(function(module, "k"), 1, 32, 0, to), 719);
  unsetenv("GPTC_EMULATOR_LIMIT");
  std::string text = reported();
  EXPECT_NE(text.find("wait in different places"), std::string::npos) << text;
  EXPECT_NE(text.find("0xffff0000 at"), std::string::npos) << text;
}

} // namespace
