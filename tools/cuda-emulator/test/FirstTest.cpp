// The whole way once: CUDA, nvcc, a fatbin, a launch.
#include "Harness.h"

namespace {
using First = Device;

TEST_F(First, AddsVectors) {
  NEEDS_NVCC();
  std::string image = compileCuda(R"(
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}
)");
  void *add = function(load(image), "add");
  int n = 100000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i)
    a[i] = i * 0.25f, b[i] = 3.0f * i;
  uint64_t da = upload(a), db = upload(b), dc = allocate(n * 4);
  ASSERT_EQ(launch(add, (n + 255) / 256, 256, 0, da, db, dc, n), 0)
      << reported();
  std::vector<float> c = download<float>(dc, n);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(c[i], a[i] + b[i]) << i;
  // One too many.
  EXPECT_EQ(launch(add, (n + 256) / 256, 256, 0, da, db, dc, n + 1), 700);
  std::string text = reported();
  EXPECT_NE(text.find("test.cu:5"), std::string::npos) << text;
}

} // namespace
