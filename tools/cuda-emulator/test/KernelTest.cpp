// Kernels as people write them, compiled by nvcc, against plain loops.
#include "Harness.h"

#include <cmath>
#include <cstdlib>

namespace {
using Kernels = Device;

uint16_t toHalf(float x) { // exact values only
  _Float16 h = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}
uint16_t toBfloat(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits >> 16;
}

const char *matmulSource = R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
// C[M][N] = A[M][K] B[N][K]^T in tiles of 64 x 64 x 32 with two stages.
template <bool bf> __device__ void mma(float *c, const unsigned *a, const unsigned *b) {
  if (bf)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]),"+f"(c[1]),"+f"(c[2]),"+f"(c[3]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b[0]),"r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]),"+f"(c[1]),"+f"(c[2]),"+f"(c[3]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b[0]),"r"(b[1]));
}
template <bool bf> __device__ void body(const unsigned short *A, const unsigned short *B, float *C, int N, int K) {
  __shared__ __align__(16) unsigned short As[2][64][40], Bs[2][64][40];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  int m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
  auto stage = [&](int s, int k0) {
    for (int i = t; i < 64 * 4; i += 128) {
      int r = i >> 2, c = (i & 3) * 8;
      __pipeline_memcpy_async(&As[s][r][c], &A[(m0 + r) * K + k0 + c], 16);
      __pipeline_memcpy_async(&Bs[s][r][c], &B[(n0 + r) * K + k0 + c], 16);
    }
    __pipeline_commit();
  };
  float acc[8][4] = {};
  stage(0, 0);
  for (int k0 = 0, s = 0; k0 < K; k0 += 32, s ^= 1) {
    if (k0 + 32 < K) { stage(s ^ 1, k0 + 32); __pipeline_wait_prior(1); }
    else __pipeline_wait_prior(0);
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned a[4];
      unsigned pa = (unsigned)__cvta_generic_to_shared(&As[s][warp * 16 + (lane & 15)][kk + (lane >> 4) * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(a[0]),"=r"(a[1]),"=r"(a[2]),"=r"(a[3]) : "r"(pa));
      for (int j = 0; j < 8; ++j) {
        unsigned b[2];
        unsigned pb = (unsigned)__cvta_generic_to_shared(&Bs[s][j * 8 + (lane & 7)][kk + ((lane >> 3) & 1) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];" : "=r"(b[0]),"=r"(b[1]) : "r"(pb));
        mma<bf>(acc[j], a, b);
      }
    }
    __syncthreads();
  }
  int g = lane >> 2, q = lane & 3;
  for (int j = 0; j < 8; ++j) {
    float *to = C + (m0 + warp * 16 + g) * N + n0 + j * 8 + q * 2;
    *(float2 *)to = make_float2(acc[j][0], acc[j][1]);
    *(float2 *)(to + 8 * N) = make_float2(acc[j][2], acc[j][3]);
  }
}
extern "C" __global__ void __launch_bounds__(128) matmul_f16(const unsigned short *A, const unsigned short *B, float *C, int N, int K) { body<false>(A, B, C, N, K); }
extern "C" __global__ void __launch_bounds__(128) matmul_bf16(const unsigned short *A, const unsigned short *B, float *C, int N, int K) { body<true>(A, B, C, N, K); }
)";

TEST_F(Kernels, MultipliesMatricesByMma) {
  NEEDS_NVCC();
  void *module = load(compileCuda(matmulSource));
  const int M = 128, N = 128, K = 96;
  std::vector<float> a(M * K), b(N * K);
  std::srand(1);
  for (float &x : a)
    x = std::rand() % 64 / 16.0f - 2;
  for (float &x : b)
    x = std::rand() % 64 / 16.0f - 2;
  for (bool bf : {false, true}) {
    std::vector<uint16_t> ha(M * K), hb(N * K);
    for (int i = 0; i < M * K; ++i)
      ha[i] = bf ? toBfloat(a[i]) : toHalf(a[i]);
    for (int i = 0; i < N * K; ++i)
      hb[i] = bf ? toBfloat(b[i]) : toHalf(b[i]);
    uint64_t da = upload(ha), db = upload(hb), dc = allocate(M * N * 4);
    void *kernel = function(module, bf ? "matmul_bf16" : "matmul_f16");
    void *params[] = {&da, &db, &dc, (void *)&N, (void *)&K};
    ASSERT_EQ(driver("cuLaunchKernel", kernel, N / 64u, M / 64u, 1u, 128u, 1u,
                     1u, 0u, (void *)nullptr, (void **)params,
                     (void **)nullptr),
              0);
    ASSERT_EQ(driver("cuCtxSynchronize"), 0) << reported();
    std::vector<float> c = download<float>(dc, M * N);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        double sum = 0;
        for (int k = 0; k < K; ++k)
          sum += double(a[i * K + k]) * b[j * K + k];
        ASSERT_EQ(c[i * N + j], float(sum)) << i << " " << j;
      }
  }
}

const char *softmaxSource = R"(
extern "C" __global__ void softmax(const float *x, float *y, int n) {
  __shared__ float part[8];
  const float *row = x + blockIdx.x * n;
  int t = threadIdx.x;
  float most = -3e38f;
  for (int i = t; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  if (t % 32 == 0) part[t / 32] = most;
  __syncthreads();
  for (int i = 0; i < blockDim.x / 32; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  float sum = 0;
  for (int i = t; i < n; i += blockDim.x) sum += __expf(row[i] - most);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (t % 32 == 0) part[t / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  for (int i = t; i < n; i += blockDim.x) y[blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}
__device__ unsigned ticket;
__device__ float parts[64];
// The last block adds up what the others left.
extern "C" __global__ void total(const float *x, int n, float *out) {
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) sum += x[i];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += parts[i];
    *out = all;
  }
}
)";

TEST_F(Kernels, SoftmaxIsTheSameForEverySeedAndThreadCount) {
  NEEDS_NVCC();
  void *kernel = function(load(compileCuda(softmaxSource)), "softmax");
  const int rows = 37, n = 200;
  std::vector<float> x(rows * n), first;
  std::srand(2);
  for (float &at : x)
    at = std::rand() % 1000 / 100.0f - 5;
  uint64_t dx = upload(x);
  for (const char *seed : {"1", "2", "3"})
    for (const char *threads : {"1", "2"}) {
      setenv("GPTC_EMULATOR_SEED", seed, 1);
      setenv("GPTC_EMULATOR_THREADS", threads, 1);
      uint64_t dy = allocate(rows * n * 4);
      ASSERT_EQ(launch(kernel, rows, 128, 0, dx, dy, n), 0) << reported();
      std::vector<float> y = download<float>(dy, rows * n);
      if (first.empty())
        first = y;
      EXPECT_EQ(y, first);
    }
  unsetenv("GPTC_EMULATOR_SEED");
  unsetenv("GPTC_EMULATOR_THREADS");
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
      sum += std::exp(double(x[r * n + i]));
    for (int i = 0; i < n; ++i)
      ASSERT_NEAR(first[r * n + i], std::exp(double(x[r * n + i])) / sum, 1e-6);
  }
}

TEST_F(Kernels, BlocksThatMeetByAtomicsAreNoRace) {
  NEEDS_NVCC();
  void *kernel = function(load(compileCuda(softmaxSource)), "total");
  const int n = 10000;
  uint64_t x = upload(std::vector<float>(n, 0.5f)), out = allocate(4);
  for (const char *seed : {"1", "2", "3"}) {
    setenv("GPTC_EMULATOR_SEED", seed, 1);
    ASSERT_EQ(launch(kernel, 20, 32, 0, x, n, out), 0) << reported();
    EXPECT_EQ(download<float>(out, 1)[0], n * 0.5f);
  }
  unsetenv("GPTC_EMULATOR_SEED");
}

} // namespace
