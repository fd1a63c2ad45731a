// The calls of the driver themselves: what they return for right and wrong
// arguments, graphs, fatbins, and modules that are not PTX.
#include "Harness.h"

#include <cstdlib>
#include <sys/resource.h>

namespace {

using Driver = Device;
void *const none = nullptr;

const char *addOne = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd30, %r1, 4;"
                     "add.u64 %rd31, %rd0, %rd30; ld.global.u32 %r2, [%rd31];"
                     "add.u32 %r2, %r2, 1; st.global.u32 [%rd31], %r2;";
const char *twice = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd30, %r1, 4;"
                    "add.u64 %rd31, %rd0, %rd30; ld.global.u32 %r2, [%rd31];"
                    "shl.b32 %r2, %r2, 1; st.global.u32 [%rd31], %r2;";

TEST_F(Driver, DeviceAndAttributes) {
  int count = 0, device = -1, value = 0;
  EXPECT_EQ(driver("cuDeviceGetCount", &count), 0);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(driver("cuDeviceGet", &device, 1), 101);
  EXPECT_EQ(driver("cuDeviceGet", &device, 0), 0);
  EXPECT_EQ(driver("cuDeviceGetAttribute", &value, 75, 0), 0);
  EXPECT_EQ(value, 8);
  EXPECT_EQ(driver("cuDeviceGetAttribute", &value, 97, 0), 0);
  EXPECT_EQ(value, 163 * 1024);
  EXPECT_EQ(driver("cuDeviceGetAttribute", &value, 97, 3), 101);
  EXPECT_EQ(driver("cuDeviceGetAttribute", &value, 100000, 0), 1);
  char name[64];
  EXPECT_EQ(driver("cuDeviceGetName", (char *)name, 64, 0), 0);
  EXPECT_STREQ(name, "gptc emulator sm_80");
  const char *text = nullptr;
  EXPECT_EQ(driver("cuGetErrorName", 700, &text), 0);
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(driver("cuGetErrorName", 12345, &text), 1);
  void *address = nullptr;
  EXPECT_EQ(driver("cuGetProcAddress_v2", "cuMemAlloc", &address, 12000, 0ull,
                   (int *)nullptr),
            0);
  EXPECT_EQ(address, driverSymbol("cuMemAlloc_v2"));
  EXPECT_EQ(driver("cuGetProcAddress_v2", "cuNoSuchCall", &address, 12000, 0ull,
                   (int *)nullptr),
            500);
}

TEST_F(Driver, MemoryIsChecked) {
  uint64_t at = allocate(100), size = 0;
  char data[200] = {1};
  EXPECT_EQ(driver("cuMemAlloc_v2", &size, size_t(0)), 1);
  EXPECT_EQ(driver("cuMemAlloc_v2", &size, size_t(1) << 60), 2);
  EXPECT_EQ(driver("cuMemAlloc_v2", &size, (size_t(4) << 30) + 1), 2);
  EXPECT_EQ(driver("cuMemcpyHtoD_v2", at, (const void *)data, size_t(100)), 0);
  EXPECT_EQ(driver("cuMemcpyHtoD_v2", at, (const void *)data, size_t(101)), 1);
  EXPECT_EQ(driver("cuMemcpyHtoD_v2", at + 50, (const void *)data, size_t(51)),
            1);
  EXPECT_EQ(driver("cuMemcpyDtoH_v2", (void *)data, at + 1, size_t(99)), 0);
  EXPECT_EQ(driver("cuMemcpyDtoH_v2", (void *)data, uint64_t(12345), size_t(9)),
            1);
  EXPECT_EQ(driver("cuMemcpyDtoH_v2", (void *)at, at, size_t(9)), 1);
  EXPECT_EQ(driver("cuMemsetD32_v2", at, 7u, size_t(25)), 0);
  EXPECT_EQ(driver("cuMemsetD32_v2", at, 7u, size_t(26)), 1);
  EXPECT_EQ(driver("cuMemsetD32_v2", at + 2, 7u, size_t(2)), 1);
  EXPECT_EQ(download<uint32_t>(at, 25), std::vector<uint32_t>(25, 7));
  EXPECT_EQ(driver("cuMemFree_v2", at + 4), 1);
  EXPECT_EQ(driver("cuMemFree_v2", at), 0);
  EXPECT_EQ(driver("cuMemcpyDtoH_v2", (void *)data, at, size_t(4)), 1);
}

const char *last = "ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd1], %r2;";

// Sizes that no test could fill are backed where they are touched; the checks
// are those of small ones.
TEST_F(Driver, LargeMemoryIsBackedWhereItIsTouched) {
  const size_t bytes = (size_t(3) << 30) + 2;
  uint64_t at = allocate(bytes), to = allocate(4), end = at + bytes - 6;
  void *kernel = function(load(ptxKernel(last, 2)), "k");
  EXPECT_EQ(launch(kernel, 1, 1, 0, at, end), 719);
  EXPECT_NE(reported().find("written before"), std::string::npos);
  TearDown(), SetUp(); // errors end with the context
  at = allocate(bytes), to = allocate(4), end = at + bytes - 6;
  kernel = function(load(ptxKernel(last, 2)), "k");
  uint32_t word = 7;
  EXPECT_EQ(driver("cuMemcpyHtoD_v2", end, (const void *)&word, size_t(4)), 0);
  EXPECT_EQ(launch(kernel, 1, 1, 0, end, at), 0) << reported();
  EXPECT_EQ(launch(kernel, 1, 1, 0, at, to), 0) << reported();
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 7u);
  EXPECT_EQ(driver("cuMemsetD8_v2", at, (unsigned char)0, bytes), 0);
  EXPECT_EQ(launch(kernel, 1, 1, 0, at + (size_t(2) << 30), to), 0);
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 0u);
  EXPECT_EQ(launch(kernel, 1, 1, 0, end, to), 0);
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 0u);
  // Two of its bytes are the end's.
  EXPECT_EQ(launch(kernel, 1, 1, 0, end + 4, to), 700);
  EXPECT_NE(reported().find("bytes after the end"), std::string::npos);
  TearDown(), SetUp(); // errors end with the context
  EXPECT_EQ(driver("cuMemFree_v2", allocate(bytes)), 0);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20); // KiB
}

TEST_F(Driver, EndsOfAGrid) {
  void *kernel = function(load(ptxKernel("mov.u32 %r1, %ctaid.x;"
                                         "mul.wide.u32 %rd2, %r1, 4;"
                                         "add.u64 %rd3, %rd0, %rd2;"
                                         "st.global.u32 [%rd3], %r1;",
                                         1)),
                          "k");
  for (unsigned ends : {0, 2, 5}) {
    setenv("GPTC_EMULATOR_BLOCKS", std::to_string(ends).c_str(), 1);
    uint64_t at = upload(std::vector<uint32_t>(10, 100));
    EXPECT_EQ(launch(kernel, 10, 1, 0, at), 0) << reported();
    std::vector<uint32_t> ran = download<uint32_t>(at, 10);
    for (unsigned i = 0; i < 10; ++i)
      EXPECT_EQ(ran[i], ends == 2 && i >= 2 && i < 8 ? 100 : i);
  }
  unsetenv("GPTC_EMULATOR_BLOCKS");
}

TEST_F(Driver, HostMemoryThatKernelsMayUse) {
  uint32_t *data = nullptr;
  ASSERT_EQ(driver("cuMemHostAlloc", (void **)&data, size_t(128), 0u), 0);
  for (int i = 0; i < 32; ++i)
    data[i] = i;
  void *kernel = function(load(ptxKernel(addOne, 1)), "k");
  EXPECT_EQ(launch(kernel, 1, 32, 0, (uint64_t)data), 0) << reported();
  EXPECT_EQ(data[31], 32u);
  EXPECT_EQ(driver("cuMemFreeHost", (void *)data), 0);
  EXPECT_EQ(driver("cuMemFreeHost", (void *)data), 1);
  // Memory that was never pinned.
  std::vector<uint32_t> other(32);
  EXPECT_EQ(launch(kernel, 1, 32, 0, (uint64_t)other.data()), 700);
}

TEST_F(Driver, WrongHandlesAreNoCrash) {
  void *junk = &junk, *module = nullptr, *kernel = nullptr;
  uint64_t at = 0;
  EXPECT_EQ(driver("cuModuleUnload", junk), 400);
  EXPECT_EQ(driver("cuModuleGetFunction", &kernel, junk, "k"), 400);
  EXPECT_EQ(driver("cuStreamSynchronize", junk), 400);
  EXPECT_EQ(driver("cuEventRecord", junk, none), 400);
  EXPECT_EQ(driver("cuGraphLaunch", junk, none), 1);
  EXPECT_EQ(driver("cuLaunchKernel", junk, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none,
                   (void **)nullptr, (void **)nullptr),
            400);
  EXPECT_EQ(driver("cuCtxPushCurrent_v2", junk), 201);
  module = load(ptxKernel(addOne, 1));
  EXPECT_EQ(driver("cuModuleGetFunction", &kernel, module, "absent"), 500);
  EXPECT_EQ(driver("cuModuleGetGlobal_v2", &at, (size_t *)nullptr, module, "x"),
            500);
  kernel = function(module, "k");
  EXPECT_EQ(driver("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none,
                   (void **)nullptr, (void **)nullptr),
            1);
  EXPECT_EQ(driver("cuModuleUnload", module), 0);
  EXPECT_EQ(driver("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none,
                   (void **)nullptr, (void **)nullptr),
            400);
}

TEST_F(Driver, GlobalsAndConstants) {
  void *module = load(ptxKernel(
      "ld.const.u32 %r1, [c+4]; ld.global.u32 %r2, [g]; add.u32 %r1, %r1, %r2;"
      "ld.global.u64 %rd5, [p]; ld.u32 %r3, [%rd5+8]; add.u32 %r1, %r1, %r3;"
      "st.global.u32 [%rd0], %r1;",
      1,
      ".const .align 4 .b32 c[2] = {10, 20};\n.global .b32 g = 5;\n"
      ".global .align 4 .b32 a[4] = {1, 2, 300};\n"
      ".global .b64 p = generic(a);\n"));
  uint64_t to = allocate(4), g = 0;
  size_t size = 0;
  void *kernel = function(module, "k");
  EXPECT_EQ(launch(kernel, 1, 1, 0, to), 0) << reported();
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 325u);
  EXPECT_EQ(driver("cuModuleGetGlobal_v2", &g, &size, module, "g"), 0);
  EXPECT_EQ(size, 4u);
  uint32_t value = 1000;
  driver("cuMemcpyHtoD_v2", g, (const void *)&value, size_t(4));
  EXPECT_EQ(launch(kernel, 1, 1, 0, to), 0);
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 1320u);
}

struct KernelParams {
  void *function;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kernel, *context;
};

// Values of a large variable are not kept for all of it.
TEST_F(Driver, LargeVariables) {
  void *module = load(
      ptxKernel("ld.global.u32 %r1, [g+4]; ld.global.u32 %r2, [g+2147483640];"
                "add.u32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1;",
                1, ".global .b32 g[536870911] = {1, 20};\n"));
  uint64_t to = allocate(4);
  EXPECT_EQ(launch(function(module, "k"), 1, 1, 0, to), 0) << reported();
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 20u);
}

TEST_F(Driver, GraphsKeepTheirOrder) {
  void *one = function(load(ptxKernel(addOne, 1)), "k");
  void *two = function(load(ptxKernel(twice, 1)), "k");
  uint64_t at = upload(std::vector<uint32_t>(32, 3));
  uint64_t other = upload(std::vector<uint32_t>(32, 100));
  void *graph = nullptr, *exec = nullptr, *nodes[3] = {};
  void *arguments[] = {&at};
  KernelParams params{one,       {1, 1, 1}, {32, 1, 1}, 0,
                      arguments, nullptr,   nullptr,    nullptr};
  ASSERT_EQ(driver("cuGraphCreate", &graph, 0u), 0);
  ASSERT_EQ(driver("cuGraphAddKernelNode_v2", &nodes[0], graph,
                   (void **)nullptr, size_t(0), &params),
            0);
  params.function = two;
  ASSERT_EQ(driver("cuGraphAddKernelNode_v2", &nodes[1], graph, &nodes[0],
                   size_t(1), &params),
            0);
  params.function = one;
  ASSERT_EQ(driver("cuGraphAddKernelNode_v2", &nodes[2], graph, &nodes[1],
                   size_t(1), &params),
            0);
  ASSERT_EQ(driver("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  for (const char *seed : {"1", "2", "3"}) {
    setenv("GPTC_EMULATOR_SEED", seed, 1);
    ASSERT_EQ(driver("cuGraphLaunch", exec, none), 0);
  }
  unsetenv("GPTC_EMULATOR_SEED");
  // ((3 + 1) * 2 + 1 = 9, 21, 45
  EXPECT_EQ(download<uint32_t>(at, 32)[31], 45u);
  arguments[0] = &other;
  EXPECT_EQ(
      driver("cuGraphExecKernelNodeSetParams_v2", exec, nodes[1], &params), 0);
  ASSERT_EQ(driver("cuGraphLaunch", exec, none), 0);
  EXPECT_EQ(download<uint32_t>(at, 32)[0], 47u);
  EXPECT_EQ(download<uint32_t>(other, 32)[0], 101u);
  // A node whose launch does not fit, and a cycle.
  params.block[0] = 2000;
  EXPECT_EQ(driver("cuGraphAddKernelNode_v2", &nodes[2], graph,
                   (void **)nullptr, size_t(0), &params),
            1);
  EXPECT_EQ(driver("cuGraphAddDependencies_v2", graph, &nodes[1], &nodes[0],
                   (void *)nullptr, size_t(1)),
            0);
  EXPECT_EQ(driver("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 1);
  EXPECT_EQ(driver("cuGraphDestroy", graph), 0);
  EXPECT_EQ(driver("cuGraphDestroy", graph), 1);
}

TEST_F(Driver, RefusesModulesWithAReason) {
  struct Case {
    std::string text;
    int result;
    const char *says;
  };
  std::string good = ptxKernel(addOne, 1);
  const Case cases[] = {
      {"", 218, "got 'the end'"},
      {"hello", 218, "PTX line 1"},
      {ptxKernel("frobnicate.u32 %r1, %r2;", 1), 218,
       "an instruction that the emulator knows, got frobnicate"},
      {ptxKernel("add.u32 %r1, %rd2, %r3;", 1), 218,
       "expected a register of 32 bits, got one of 64"},
      {ptxKernel("bra NOWHERE;", 1), 218, "a label of this function"},
      {ptxKernel("add.u32 %r1, %r2, 99999999999999999999999;", 1), 218,
       "at most 64 bits"},
      {ptxKernel("add.u32 %r1, %r2;", 1), 218, "expected 3 operands, got 2"},
      {ptxKernel("ld.global.u32 %r1, [unknown];", 1), 218, "unknown"},
      {ptxKernel(addOne, 1, "", 90), 209, "sm_90"},
      {ptxKernel(addOne, 1, "/* no end"), 218, "*/"},
      {ptxKernel(".local .b8 big[99999999999];", 1), 218, "16 GiB"},
      {ptxKernel("", 1, ".global .b64 a[1073741824][4294967296];\n"), 218,
       "16 GiB"},
      {ptxKernel("", 1, ".target sm_80\n"), 218, "one .target"},
      {".version 8.0\n.target sm_80808080808080\n", 218, "sm_NN"},
      {ptxKernel("", 1, ".global .b8 a[9] = " + std::string(100000, '{')), 218,
       "one list"},
      {ptxKernel("", 1, ".global .b8 a[1] = {1, 2};\n"), 218, "fewer elements"},
      {ptxKernel("ld.global.u32 %r1, [%rd0+9223372036854775807+"
                 "9223372036854775807--9223372036854775808];",
                 1),
       0, ""},
      {ptxKernel(std::string(100000, 'x') + " %r1;", 1), 218, "PTX line"},
      {ptxKernel(std::string(100000, '{'), 1), 218, ""},
      {ptxKernel("mov.b32 %r1, " + std::string(100000, '{'), 1), 218,
       "shallower"},
  };
  for (const Case &at : cases) {
    void *module = nullptr;
    reported();
    EXPECT_EQ(
        driver("cuModuleLoadData", &module, (const void *)at.text.c_str()),
        at.result)
        << at.text.substr(0, 300);
    std::string text = reported();
    EXPECT_NE(text.find(at.says), std::string::npos)
        << at.says << " in " << text;
  }
  // Every beginning of a good module, and one byte changed.
  for (size_t end = 0; end < good.size(); ++end) {
    void *module = nullptr;
    driver("cuModuleLoadData", &module,
           (const void *)good.substr(0, end).c_str());
    for (char c : {'{', ';', '%', '9', '.', '\x80'}) {
      std::string changed = good;
      changed[end] = c;
      driver("cuModuleLoadData", &module, (const void *)changed.c_str());
    }
  }
  reported();
}

} // namespace
