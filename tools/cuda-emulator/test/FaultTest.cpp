// Planted faults: each must be found, at its line of the .cu; the clean twin of
// each kernel must pass.
#include "Harness.h"

#include <algorithm>
#include <cstdlib>

namespace {

// A line with a fault ends with its name in a comment.
const char *source = R"(#include <cuda_pipeline.h>
template <bool bad> __device__ void race(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = o[t]; // race begins
  if (!bad) __syncthreads();
  o[t] = s[(t + 32) % 128]; // race
}
template <bool bad> __device__ void warpRace(float *o) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = o[t];
  if (!bad) __syncwarp();
  o[t] = s[t ^ 1]; // warp race
}
template <bool bad> __device__ void readRace(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = o[t];
  __syncthreads();
  float x = s[127 - t]; // read race begins
  if (!bad) __syncthreads();
  s[t] = x; // read race
  __syncthreads();
  o[t] = s[t];
}
template <bool bad> __device__ void warpReadRace(float *o) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = o[t];
  __syncwarp();
  float x = s[t ^ 1];
  if (!bad) __syncwarp();
  s[t] = x; // warp read race
  __syncwarp();
  o[t] = s[t ^ 2];
}
template <bool bad> __device__ void byteRace(unsigned char *o) {
  __shared__ unsigned char s[128];
  int t = threadIdx.x;
  s[t] = o[t]; // byte race begins
  if (bad && t == 64) s[t - 33] = 1; // byte race
  __syncthreads();
  o[t] = s[127 - t];
}
template <bool bad> __device__ void copyWait(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &o[t], 4);
  __pipeline_commit();
  if (!bad) __pipeline_wait_prior(0);
  __syncthreads();
  o[t] = s[t] + 1; // copy wait
}
template <bool bad> __device__ void copyWrite(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &o[t], 4);
  __pipeline_commit();
  if (!bad) __pipeline_wait_prior(0);
  s[t] = 1; // copy write
  __pipeline_wait_prior(0);
  o[t] = s[t] + 1;
}
template <bool bad> __device__ void copySeen(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  __pipeline_memcpy_async(&s[t], &o[t], 4); // copy seen begins
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (!bad) __syncthreads();
  o[t] = s[127 - t] + 1; // copy seen
}
template <bool bad> __device__ void globalBounds(float *o) {
  o[threadIdx.x + bad] = 1; // global bounds
}
template <bool bad> __device__ void globalBefore(float *o) {
  o[(int)threadIdx.x - bad] = 1; // global before
}
template <bool bad> __device__ void sharedBounds(float *o) {
  __shared__ float a[128], b[128];
  int t = threadIdx.x;
  a[t] = 1;
  b[t] = 2;
  __syncthreads();
  o[t] = b[t] + a[t + bad]; // shared bounds
}
extern __shared__ float dynamic[];
template <bool bad> __device__ void dynamicBounds(float *o) {
  int t = threadIdx.x;
  dynamic[t + bad] = 2; // dynamic bounds
  __syncthreads();
  o[t] = dynamic[t];
}
template <bool bad> __device__ void misaligned(float *o) {
  float4 x = *(float4 *)(o + bad); // misaligned
  o[threadIdx.x] = x.x + x.y + x.z + x.w;
}
template <bool bad> __device__ void uninitialised(float *o) {
  o[128 + threadIdx.x] = o[threadIdx.x + (bad ? 4 : 0) + 128] + 1; // uninitialised
}
template <bool bad> __device__ void sharedUninitialised(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  if (!bad || t != 5) s[t] = 1;
  __syncthreads();
  o[t] = s[127 - t]; // shared uninitialised
}
template <bool bad> __device__ void localUninitialised(float *o, int n) {
  float x[8];
  for (int i = 0; i < n - bad; ++i) x[i] = o[i];
  o[threadIdx.x] = x[(n - 1) & 7]; // local uninitialised
}
template <bool bad> __device__ void divergent(float *o) {
  int t = threadIdx.x;
  if (!bad || t < 40) __syncthreads(); // divergent
  o[t] = 1;
}
template <bool bad> __device__ void warpMissing(float *o) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = o[t];
  if (bad && t >= 96) return;
  __syncthreads(); // warp missing
  o[t] = s[t];
}
template <bool bad> __device__ void exited(float *o) {
  if (bad && threadIdx.x == 3) return;
  __syncthreads(); // exited
  o[threadIdx.x] = 1;
}
template <bool bad> __device__ void shuffle(float *o) {
  int t = threadIdx.x;
  float x = o[t];
  if (t % 32 < 16 || !bad) x += __shfl_down_sync(bad ? 0xffffu : 0xffffffffu, x, 8); // shuffle
  o[t] = x;
}
template <bool bad> __device__ void blocks(float *o) {
  if (threadIdx.x == 0) o[blockIdx.x / (bad ? 2 : 1)] = blockIdx.x; // blocks
}
template <bool bad> __device__ void blockRead(float *o) {
  int i = blockIdx.x * 128 + threadIdx.x;
  o[i] = i;
  o[i] += o[bad ? (i + 128) % 512 : i]; // block read
}
template <bool bad> __device__ void wild(float *o, int n) {
  float *p = bad ? (float *)(long long)n : o;
  p[threadIdx.x] = 1; // wild
}
template <bool bad> __device__ void endless(int *o) {
  while (bad && *(volatile int *)o == 0) {} // endless
  o[threadIdx.x] = 1;
}
#define KERNEL(name, T) \
  extern "C" __global__ void name##_bad(T *o) { name<true>(o); } \
  extern "C" __global__ void name##_good(T *o) { name<false>(o); }
#define KERNEL2(name, T) \
  extern "C" __global__ void name##_bad(T *o, int n) { name<true>(o, n); } \
  extern "C" __global__ void name##_good(T *o, int n) { name<false>(o, n); }
KERNEL(race, float) KERNEL(warpRace, float) KERNEL(readRace, float) KERNEL(warpReadRace, float)
KERNEL(byteRace, unsigned char) KERNEL(copyWait, float) KERNEL(copyWrite, float)
KERNEL(copySeen, float) KERNEL(globalBounds, float) KERNEL(globalBefore, float)
KERNEL(sharedBounds, float) KERNEL(dynamicBounds, float) KERNEL(misaligned, float)
KERNEL(uninitialised, float) KERNEL(sharedUninitialised, float)
KERNEL2(localUninitialised, float) KERNEL(divergent, float)
KERNEL(warpMissing, float) KERNEL(exited, float) KERNEL(shuffle, float)
KERNEL(blocks, float) KERNEL(blockRead, float) KERNEL2(wild, float)
KERNEL(endless, int)
extern "C" __global__ void __launch_bounds__(64) bounded(float *o) { o[threadIdx.x] = 1; }
extern "C" __global__ void plain(float *o) { o[threadIdx.x] = 1; }
)";

// Of a race, either access may be the second one: "NAME begins" is the other.
int lineOf(const std::string &name) {
  std::string text = source;
  size_t at = text.find("// " + name + "\n");
  if (at == std::string::npos)
    return 0;
  return 1 + std::count(text.begin(), text.begin() + std::min(at, text.size()),
                        '\n');
}

const std::string &image() {
  static const std::string made = compileCuda(source);
  return made;
}

struct Fault {
  const char *kernel, *line;
  int result;
  const char *text; // part of the report
  unsigned grid = 1, block = 128, shared = 0;
  int written = 128; // floats that the buffer starts with
  int size = 128;    // floats in the buffer
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.kernel; }

class Faults : public Device, public ::testing::WithParamInterface<Fault> {};

TEST_P(Faults, FoundAndCleanTwinPasses) {
  NEEDS_NVCC();
  const Fault &fault = GetParam();
  setenv("GPTC_EMULATOR_LIMIT", "100000", 1);
  // Twice each: the order of warps is another one.
  for (const char *seed : {"1", "7", "12345"}) {
    setenv("GPTC_EMULATOR_SEED", seed, 1);
    for (bool bad : {false, true}) {
      void *now = nullptr;
      driver("cuCtxCreate_v2", &now, 0u, 0);
      void *kernel = function(
          load(image()),
          (std::string(fault.kernel) + (bad ? "_bad" : "_good")).c_str());
      uint64_t o = allocate(fault.size * 4);
      std::vector<float> start(fault.written);
      driver("cuMemcpyHtoD_v2", o, (const void *)start.data(),
             start.size() * 4);
      int result = launch(kernel, fault.grid, fault.block, fault.shared, o, 8);
      std::string text = reported();
      if (!bad) {
        EXPECT_EQ(result, 0) << text;
      } else {
        EXPECT_EQ(result, fault.result) << text;
        auto names = [&](const std::string &line) {
          return text.find("test.cu:" + std::to_string(lineOf(line)) + " ") !=
                 std::string::npos;
        };
        EXPECT_TRUE(names(fault.line) ||
                    names(std::string(fault.line) + " begins"))
            << lineOf(fault.line) << " in " << text;
        EXPECT_NE(text.find(fault.text), std::string::npos) << text;
        // Sticky, as on a device.
        EXPECT_EQ(driver("cuCtxSynchronize"), fault.result);
      }
      driver("cuCtxDestroy_v2", now);
    }
  }
  unsetenv("GPTC_EMULATOR_SEED");
  unsetenv("GPTC_EMULATOR_LIMIT");
}

INSTANTIATE_TEST_SUITE_P(
    Planted, Faults,
    ::testing::Values(
        Fault{"race", "race", 719, "a race to"},
        Fault{"warpRace", "warp race", 719, "race to", 1, 32},
        Fault{"readRace", "read race", 719, "a race to"},
        Fault{"warpReadRace", "warp read race", 719,
              "read, got a race to write", 1, 32},
        Fault{"byteRace", "byte race", 719, "race"},
        Fault{"copyWait", "copy wait", 719, "cp.async"},
        Fault{"copyWrite", "copy write", 719, "cp.async"},
        Fault{"copySeen", "copy seen", 719, "race to"},
        Fault{"globalBounds", "global bounds", 700,
              "0 bytes after the end of the 512 bytes"},
        Fault{"globalBefore", "global before", 700,
              "4 bytes before the 512 bytes"},
        Fault{"sharedBounds", "shared bounds", 700, "shared variables"},
        Fault{"dynamicBounds", "dynamic bounds", 700, "shared variables", 1,
              128, 512},
        Fault{"misaligned", "misaligned", 716, "multiple of 16", 1, 1},
        Fault{"uninitialised", "uninitialised", 719, "written before", 1, 4, 0,
              132, 256},
        Fault{"sharedUninitialised", "shared uninitialised", 719,
              "written before"},
        Fault{"localUninitialised", "local uninitialised", 719,
              "written before"},
        Fault{"divergent", "divergent", 719, "barrier"},
        Fault{"warpMissing", "warp missing", 719, "warp 3 has exited"},
        Fault{"exited", "exited", 719, "the others have exited"},
        Fault{"shuffle", "shuffle", 719, "lane that takes part"},
        Fault{"blocks", "blocks", 719, "no other block", 4},
        Fault{"blockRead", "block read", 719, "no other block", 4, 128, 0, 512,
              512},
        Fault{"wild", "wild", 700, "no address of the device"},
        Fault{"endless", "endless", 702, "GPTC_EMULATOR_LIMIT"}));

using Launches = Device;

TEST_F(Launches, RefusesWhatTheDeviceCannot) {
  NEEDS_NVCC();
  void *module = load(image());
  void *plain = function(module, "plain"),
       *bounded = function(module, "bounded");
  uint64_t o = allocate(4096);
  EXPECT_EQ(launch(plain, 1, 1024, 0, o), 0);
  EXPECT_EQ(launch(plain, 1, 1025, 0, o), 1);
  EXPECT_EQ(launch(plain, 0, 32, 0, o), 1);
  EXPECT_EQ(launch(bounded, 1, 64, 0, o), 0);
  EXPECT_EQ(launch(bounded, 1, 65, 0, o), 701);
  EXPECT_EQ(launch(plain, 1, 32, 49152, o), 0);
  EXPECT_EQ(launch(plain, 1, 32, 49153, o), 1);
  EXPECT_NE(reported().find("49153 dynamic"), std::string::npos);
  EXPECT_EQ(driver("cuFuncSetAttribute", plain, 8, 163 * 1024), 0);
  EXPECT_EQ(launch(plain, 1, 32, 163 * 1024, o), 0);
  EXPECT_EQ(launch(plain, 1, 32, 163 * 1024 + 1, o), 1);
  EXPECT_EQ(driver("cuFuncSetAttribute", plain, 8, 163 * 1024 + 1), 1);
  void *params[] = {&o};
  EXPECT_EQ(driver("cuLaunchKernel", plain, 1u, 65536u, 1u, 32u, 1u, 1u, 0u,
                   (void *)nullptr, (void **)params, (void **)nullptr),
            1);
  EXPECT_EQ(driver("cuLaunchKernel", plain, 1u, 1u, 1u, 1u, 1u, 65u, 0u,
                   (void *)nullptr, (void **)params, (void **)nullptr),
            1);
}

TEST_F(Launches, FreedMemoryIsAnError) {
  NEEDS_NVCC();
  void *plain = function(load(image()), "plain");
  uint64_t o = allocate(128), other = allocate(128);
  EXPECT_EQ(launch(plain, 1, 32, 0, o), 0);
  EXPECT_EQ(driver("cuMemFree_v2", o), 0);
  EXPECT_EQ(driver("cuMemFree_v2", o), 1);
  EXPECT_EQ(launch(plain, 1, 32, 0, other), 0);
  EXPECT_EQ(launch(plain, 1, 32, 0, o), 700);
  EXPECT_NE(reported().find("which were freed"), std::string::npos);
}

} // namespace
