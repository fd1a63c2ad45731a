// Limits of launches, by the table of the CUDA programming guide ("Technical
// Specifications per Compute Capability"), for the device that
// GPTC_EMULATOR_SM names: ctest runs this for each.
#include "Harness.h"

#include <cstdlib>

namespace {

// Of CUdevice_attribute and CUfunction_attribute.
enum DeviceAttribute {
  threadsPerBlock = 1,
  sharedPerBlock = 8,
  registersPerBlock = 12,
  threadsPerMultiprocessor = 39,
  major = 75,
  minor = 76,
  sharedPerMultiprocessor = 81,
  sharedPerBlockOptin = 97,
  blocksPerMultiprocessor = 106
};
enum FunctionAttribute { numRegs = 4, maxDynamicShared = 8 };

struct Expected {
  int sm, sharedKb, sharedKbOfAll, threads, blocks;
};
constexpr Expected table[] = {{80, 163, 164, 2048, 32},
                              {86, 99, 100, 1536, 16},
                              {89, 99, 100, 1536, 24},
                              {90, 227, 228, 2048, 32}};

class Limits : public Device {
protected:
  Limits() {
    const char *name = std::getenv("GPTC_EMULATOR_SM");
    for (const Expected &each : table)
      if (each.sm == (name ? std::atoi(name) : 80))
        is = each;
  }
  int attribute(DeviceAttribute number) {
    int value = -1;
    EXPECT_EQ(driver("cuDeviceGetAttribute", &value, int(number), 0), 0);
    return value;
  }
  int launch(void *kernel, std::vector<unsigned> grid,
             std::vector<unsigned> block, unsigned shared, uint64_t pointer) {
    void *params[] = {&pointer, nullptr};
    grid.resize(3, 1), block.resize(3, 1);
    int result = driver("cuLaunchKernel", kernel, grid[0], grid[1], grid[2],
                        block[0], block[1], block[2], shared, (void *)nullptr,
                        (void **)params, (void **)nullptr);
    return result ? result : driver("cuCtxSynchronize");
  }
  bool saw(const char *words) {
    return reported().find(words) != std::string::npos;
  }
  Expected is = {};
};

// Writes the last word of its dynamic shared memory, whose size it is given.
const char *lastWord = ".extern .shared .align 16 .b8 dynamic[];\n"
                       ".shared .align 16 .b8 fixed[1024];\n";
const char *writesLast = "ld.global.u32 %r1, [%rd0]; mov.u32 %r2, dynamic;"
                         "add.u32 %r2, %r2, %r1; mov.u32 %r3, 7;"
                         "st.shared.u32 [%r2+-4], %r3;"
                         "st.shared.u32 [fixed], %r3;";

TEST_F(Limits, Attributes) {
  EXPECT_EQ(attribute(major) * 10 + attribute(minor), is.sm);
  EXPECT_EQ(attribute(sharedPerBlockOptin), is.sharedKb << 10);
  EXPECT_EQ(attribute(sharedPerMultiprocessor), is.sharedKbOfAll << 10);
  EXPECT_EQ(attribute(threadsPerMultiprocessor), is.threads);
  EXPECT_EQ(attribute(blocksPerMultiprocessor), is.blocks);
  EXPECT_EQ(attribute(sharedPerBlock), 48 << 10);
  EXPECT_EQ(attribute(registersPerBlock), 65536);
  EXPECT_EQ(attribute(threadsPerBlock), 1024);
}

TEST_F(Limits, SharedMemory) {
  void *kernel = function(load(ptxKernel(writesLast, 1, lastWord)), "k");
  const unsigned most = (is.sharedKb << 10) - 1024, usual = (48 << 10) - 1024;
  auto fits = [&](unsigned bytes) {
    return launch(kernel, {1}, {1}, bytes,
                  upload(std::vector<uint32_t>{bytes})) == 0;
  };
  EXPECT_TRUE(fits(usual)) << reported();
  EXPECT_FALSE(fits(usual + 4));
  EXPECT_TRUE(saw("expected at most 49152 bytes of shared memory"));
  // More has to be asked for, and all of it may be used.
  EXPECT_EQ(driver("cuFuncSetAttribute", kernel, int(maxDynamicShared),
                   int(most + 4)),
            1);
  EXPECT_EQ(driver("cuFuncSetAttribute", kernel, int(maxDynamicShared),
                   int(60 << 10)),
            0);
  EXPECT_TRUE(fits(60 << 10)) << reported();
  EXPECT_FALSE(fits((60 << 10) + 4));
  EXPECT_EQ(
      driver("cuFuncSetAttribute", kernel, int(maxDynamicShared), int(most)),
      0);
  EXPECT_TRUE(fits(most)) << reported();
  EXPECT_FALSE(fits(most + 4));
  int blocks = 0;
  ASSERT_EQ(driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks,
                   kernel, 32, size_t(most / 2 - 2048)),
            0);
  EXPECT_EQ(blocks, 2);
}

TEST_F(Limits, GridsAndBlocks) {
  void *kernel = function(load(ptxKernel("", 1)), "k");
  struct Case {
    std::vector<unsigned> grid, block;
    bool fits;
  };
  const Case cases[] = {{{1}, {1024}, true},        {{1}, {1025}, false},
                        {{1}, {1, 1024}, true},     {{1}, {1, 1025}, false},
                        {{1}, {1, 1, 64}, true},    {{1}, {1, 1, 65}, false},
                        {{1}, {32, 32}, true},      {{1}, {32, 33}, false},
                        {{1}, {0}, false},          {{0}, {1}, false},
                        {{1, 65535}, {1}, true},    {{1, 65536}, {1}, false},
                        {{1, 1, 65535}, {1}, true}, {{1, 1, 65536}, {1}, false},
                        {{70000}, {1}, true},       {{1u << 31}, {1}, false}};
  setenv("GPTC_EMULATOR_BLOCKS", "4", 1); // the ends are enough here
  for (const Case &each : cases)
    EXPECT_EQ(launch(kernel, each.grid, each.block, 0, 0), each.fits ? 0 : 1)
        << each.grid.back() << " " << each.block.back();
  unsetenv("GPTC_EMULATOR_BLOCKS");
  // What the kernel says itself.
  std::string text = ptxKernel("", 1);
  text.insert(text.find('{'), ".maxntid 128, 1, 1\n");
  kernel = function(load(text), "k");
  EXPECT_EQ(launch(kernel, {1}, {128}, 0, 0), 0);
  EXPECT_EQ(launch(kernel, {1}, {129}, 0, 0), 701);
}

TEST_F(Limits, TargetsOfModules) {
  for (int sm : {80, 86, 89, 90, 100}) {
    void *module = nullptr;
    std::string text = ptxKernel("", 1, "", sm);
    EXPECT_EQ(driver("cuModuleLoadData", &module, (const void *)text.c_str()),
              sm <= is.sm ? 0 : 209);
  }
}

// A kernel that needs most of the registers: as many as ptxas says, and a
// launch with more threads than they are enough for.
TEST_F(Limits, Registers) {
  NEEDS_NVCC();
  void *kernel = function(load(compileCuda(R"(
extern "C" __global__ void many(float *a) {
  float r[80];
  for (int i = 0; i < 80; ++i) r[i] = a[i];
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < 3; ++k)
#pragma unroll
    for (int i = 0; i < 80; ++i) r[i] = r[i] * r[(i + 7) % 80] + k;
  float sum = 0;
  for (int i = 0; i < 80; ++i) sum += r[i];
  if (threadIdx.x == 0) a[0] = sum;
}
)",
                                           "[sm_80,compute_80]")),
                          "many");
  uint64_t at = upload(std::vector<float>(80, 1.0f));
  int registers = 0;
  ASSERT_EQ(driver("cuFuncGetAttribute", &registers, int(numRegs), kernel), 0);
  if (is.sm == 90) { // code of sm_80 does not run there: they are not known
    EXPECT_EQ(launch(kernel, {1}, {1024}, 0, at), 0) << reported();
    return;
  }
  EXPECT_GT(registers, 80);
  EXPECT_LT(registers, 256);
  unsigned warps = 65536 / ((registers + 7) / 8 * 8 * 32) / 4 * 4;
  ASSERT_LT(warps, 32u);
  EXPECT_EQ(launch(kernel, {1}, {warps * 32}, 0, at), 0) << reported();
  EXPECT_EQ(launch(kernel, {1}, {warps * 32 + 32}, 0, at), 701);
  EXPECT_TRUE(saw("expected at most 65536 registers a block"));
}

} // namespace
