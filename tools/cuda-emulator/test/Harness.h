// What the tests of the emulator share: the driver by dlopen, as a runtime
// takes it, kernels from PTX text or from CUDA by nvcc, and what was reported.
#ifndef GPTC_CUDA_EMULATOR_TEST_HARNESS_H
#define GPTC_CUDA_EMULATOR_TEST_HARNESS_H

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

// An exported call of the library, by name.
void *driverSymbol(const char *name);
template <class... A> int driver(const char *name, A... arguments) {
  auto *call = reinterpret_cast<int (*)(A...)>(driverSymbol(name));
  EXPECT_NE(call, nullptr) << name;
  return call ? call(arguments...) : -1;
}

// A fresh context for each test; ends with it.
class Device : public ::testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;
  void *context = nullptr;

  // Memory with a copy of the values, or of so many bytes.
  template <class T> uint64_t upload(const std::vector<T> &values) {
    uint64_t at = allocate(values.size() * sizeof(T));
    EXPECT_EQ(driver("cuMemcpyHtoD_v2", at, (const void *)values.data(),
                     values.size() * sizeof(T)),
              0);
    return at;
  }
  uint64_t allocate(size_t bytes);
  template <class T> std::vector<T> download(uint64_t at, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(
        driver("cuMemcpyDtoH_v2", (void *)values.data(), at, count * sizeof(T)),
        0);
    return values;
  }
  void *load(const std::string &image); // EXPECTs success
  void *function(void *module, const char *name);
  // Launches and waits; the first result that is not 0.
  template <class... A>
  int launch(void *kernel, unsigned grid, unsigned block, unsigned shared,
             A... arguments) {
    void *params[] = {(void *)&arguments..., nullptr};
    int result =
        driver("cuLaunchKernel", kernel, grid, 1u, 1u, block, 1u, 1u, shared,
               (void *)nullptr, (void **)params, (void **)nullptr);
    return result ? result : driver("cuCtxSynchronize");
  }
};

// What the emulator reported since the last call.
std::string reported();

// A module with one kernel `k` of that body; parameters are 64-bit pointers
// p0, p1, ... that the body finds in %rd0, %rd1, ...
std::string ptxKernel(const std::string &body, int pointers,
                      const std::string &before = "", int sm = 80);

// CUDA compiled for sm_80 with -lineinfo to a fatbin of PTX, or of `code`; the
// file's name in reports is test.cu. Empty where there is no nvcc.
bool hasNvcc();
std::string compileCuda(const std::string &source,
                        const std::string &code = "compute_80");
#define NEEDS_NVCC()                                                           \
  if (!hasNvcc())                                                              \
  GTEST_SKIP() << "no nvcc"

#endif // GPTC_CUDA_EMULATOR_TEST_HARNESS_H
