//===- NvccTest.cpp - what ptxas says, and nvcc's command line ------------===//
#include "gptc/Target/CUDA/Nvcc.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace gptc;

namespace {
/// What runNvcc works in.
struct Folder {
  Folder() { llvm::sys::fs::createUniqueDirectory("gptc-test", path); }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  llvm::SmallString<128> path;
};
} // namespace

// As ptxas 13.0 prints it, with a kernel that spills.
TEST(Nvcc, ReadsResourceUsage) {
  std::vector<CudaUsage> usage = parseUsage(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'norm' for 'sm_80'\n"
      "ptxas info    : Function properties for norm\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 32 bytes smem, 400 "
      "bytes cmem[0]\n"
      "ptxas info    : Compile time = 21.626 ms\n"
      "ptxas info    : Compiling entry function 'gemm' for 'sm_80'\n"
      "ptxas info    : Function properties for gemm\n"
      "    104 bytes stack frame, 100 bytes spill stores, 96 bytes spill "
      "loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 104 bytes "
      "cumulative stack size, 392 bytes cmem[0]\n");
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].function, "norm");
  EXPECT_EQ(usage[0].registers, 32);
  EXPECT_EQ(usage[0].sharedBytes, 32);
  EXPECT_EQ(usage[0].stackBytes, 0);
  EXPECT_EQ(usage[0].spillStores, 0);
  EXPECT_EQ(usage[1].function, "gemm");
  EXPECT_EQ(usage[1].registers, 255);
  EXPECT_EQ(usage[1].sharedBytes, 0);
  EXPECT_EQ(usage[1].stackBytes, 104);
  EXPECT_EQ(usage[1].spillStores, 100);
  EXPECT_EQ(usage[1].spillLoads, 96);
}

// The same text gives the same bytes wherever the temporary folder lies.
TEST(Nvcc, BytesDoNotDependOnTheFolder) {
  llvm::Expected<std::string> nvcc = findNvcc();
  if (!nvcc) {
    llvm::consumeError(nvcc.takeError());
    GTEST_SKIP() << "there is no nvcc";
  }
  std::string error;
  std::optional<CudaTarget> target = lookupCudaTarget("sm_80", error);
  ASSERT_TRUE(target);
  std::string first;
  for (int i = 0; i < 2; ++i) {
    Folder folder;
    auto made =
        runNvcc(*nvcc, NvccProduct::Fatbin, *target, folder.path, "one",
                "extern \"C\" __global__ void f(float *x) { x[threadIdx.x] "
                "= max(__ldg(x), 2.0f); }\n");
    ASSERT_TRUE(bool(made));
    ASSERT_EQ(made->failure, "");
    ASSERT_EQ(made->usage.size(), 1u);
    if (i == 0)
      first = made->bytes;
    EXPECT_TRUE(made->bytes == first);
  }
  EXPECT_NE(first.find("/one.cu"), std::string::npos);

  EXPECT_FALSE(checkProduct(NvccProduct::Fatbin, first, {"f"}));
  llvm::Error missing = checkProduct(NvccProduct::Fatbin, first, {"f", "g"});
  EXPECT_EQ(llvm::toString(std::move(missing)),
            "expected PTX of the kernel g from nvcc, got none");

  auto parts = fatbinParts(first);
  ASSERT_TRUE(bool(parts));
  ASSERT_EQ(parts->size(), 2u);
  for (const FatbinPart &part : *parts) {
    EXPECT_EQ(part.sm, 80u);
    bool isElf = part.bytes.substr(1, 3) == "ELF";
    EXPECT_EQ(isElf, !part.isPtx);
    EXPECT_NE(part.bytes.find(".entry f("), std::string::npos);
    EXPECT_TRUE(isElf || part.bytes.back() == '\n');
  }
  // Cut off anywhere, or with a size that is wrong.
  for (size_t size = 0; size < first.size(); size += size < 200 ? 1 : 97) {
    auto cut = fatbinParts(first.substr(0, size));
    EXPECT_FALSE(bool(cut)) << size;
    if (!cut)
      llvm::consumeError(cut.takeError());
  }
  for (size_t at : {6, 8, 15, 16, 20, 24, 31}) {
    std::string wrong = first;
    wrong[at] ^= 0x7f;
    auto made = fatbinParts(wrong);
    EXPECT_FALSE(bool(made)) << at;
    if (!made)
      llvm::consumeError(made.takeError());
  }
}

TEST(Nvcc, SaysWhatIsWrongWithTheText) {
  llvm::Expected<std::string> nvcc = findNvcc();
  if (!nvcc) {
    llvm::consumeError(nvcc.takeError());
    GTEST_SKIP() << "there is no nvcc";
  }
  std::string error;
  Folder folder;
  auto made =
      runNvcc(*nvcc, NvccProduct::Ptx, *lookupCudaTarget("sm_80", error),
              folder.path, "one", "what is this\n");
  ASSERT_TRUE(bool(made));
  EXPECT_NE(made->failure.find("one.cu(1)"), std::string::npos)
      << made->failure;
}
