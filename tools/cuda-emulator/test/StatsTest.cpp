// What is counted: bank conflicts and sectors of accesses whose counts follow
// from their addresses, and which kernels were launched. Counts are written
// when a process ends, so each test has a process of its own.
#include "Harness.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>

namespace {

using Stats = Device;

struct Access {
  const char *name;
  std::string body; // %r1 the lane, %r2 shared memory, %rd2 global memory
  const char *says;
};

// Lane i at byte i * stride.
std::string shared(const char *op, int stride) {
  return "mul.lo.u32 %r3, %r1, " + std::to_string(stride) +
         "; add.u32 %r3, %r2, %r3; " + op + ";";
}
std::string global(const char *op, int stride) {
  return "mul.wide.u32 %rd3, %r1, " + std::to_string(stride) +
         "; add.u64 %rd3, %rd2, %rd3; " + op + ";";
}
const char *word = "st.shared.u32 [%r3], %r4";
const char *four = "st.shared.v4.u32 [%r3], {%r4, %r4, %r4, %r4}";
const char *matrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                     "{%r5, %r6, %r7, %r8}, [%r3]";
const char *read = "ld.global.u32 %r5, [%rd3]";
const char *readFour = "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3]";
const char *copy = "cp.async.cg.shared.global [%r3], [%rd3], 16; "
                   "cp.async.wait_all";

const Access accesses[] = {
    {"row", shared(word, 4), "bank conflicts: 0 of ld and st"},
    {"pairs", shared(word, 8), "bank conflicts: 1 of ld and st"},
    {"column", shared(word, 128), "bank conflicts: 31 of ld and st"},
    {"padded", shared(word, 132), "bank conflicts: 0 of ld and st"},
    {"vectors", shared(four, 16), "bank conflicts: 0 of ld and st"},
    // Quarters of a warp: lanes 0 and 4 of each have the same banks.
    {"apart", shared(four, 32), "bank conflicts: 4 of ld and st"},
    // Four matrices of eight rows, all in the same banks, or in none twice.
    {"matrix", shared(matrix, 128), "28 of matrix ops"},
    {"swizzled", shared(matrix, 144), "0 of matrix ops"},
    {"near", global(read, 4), "4 sectors in 1 ld and st"},
    {"second", global(read, 8), "8 sectors in 1 ld and st"},
    {"far", global(read, 32), "32 sectors in 1 ld and st"},
    {"same", global(read, 0), "1 sectors in 1 ld and st"},
    {"wide", global(readFour, 16), "16 sectors in 1 ld and st"},
    {"copy", shared("", 16) + global(copy, 16), "16 in 1 cp.async"},
};

std::string kernelOf(const Access &access) {
  std::string body = "mov.u32 %r1, %laneid; mov.u32 %r2, s; mov.u32 %r4, 1;"
                     "mov.u64 %rd2, %rd0; mul.lo.u32 %r3, %r1, 16;"
                     "add.u32 %r3, %r2, %r3;";
  // Matrices are read: all is written first, without conflicts.
  for (int at = 0; at < 8192; at += 512)
    body += "st.shared.v4.u32 [%r3+" + std::to_string(at) +
            "], {%r4, %r4, %r4, %r4};";
  body += "bar.warp.sync -1;" + access.body;
  std::string text = ptxKernel(body, 1, ".shared .align 16 .b8 s[8192];\n");
  text.replace(text.find(".entry k("), 9,
               std::string(".entry ") + access.name + "(");
  return text;
}

// What is printed by a process that runs the test of that name.
std::string printed(const std::string &test, const std::string &environment) {
  std::string command = environment + " /proc/" + std::to_string(getpid()) +
                        "/exe --gtest_also_run_disabled_tests "
                        "--gtest_filter=Stats.DISABLED_" +
                        test + " 2>&1";
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> pipe(
      popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), n);
  return text;
}

TEST_F(Stats, DISABLED_Accesses) {
  uint64_t at = upload(std::vector<uint32_t>(4096, 1));
  for (const Access &access : accesses)
    ASSERT_EQ(
        launch(function(load(kernelOf(access)), access.name), 1, 32, 0, at), 0)
        << reported();
}

TEST_F(Stats, CountsConflictsAndSectors) {
  std::string text = printed("Accesses", "GPTC_EMULATOR_STATS=1");
  for (const Access &access : accesses) {
    size_t at =
        text.find(std::string("cuda-emulator: ") + access.name + ": 1 ");
    ASSERT_NE(at, std::string::npos) << access.name << " in " << text;
    std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_NE(line.find(access.says), std::string::npos)
        << "expected " << access.says << " in " << line;
  }
}

TEST_F(Stats, DISABLED_Coverage) {
  std::string text = ptxKernel("", 1), other = text;
  other = other.substr(other.find(".visible"));
  other.replace(other.find(".entry k("), 9, ".entry never(");
  void *kernel = function(load(text + other), "k");
  EXPECT_EQ(launch(kernel, 1, 32, 0, uint64_t(0)), 0);
  EXPECT_EQ(launch(kernel, 1, 32, 0, uint64_t(0)), 0);
}

TEST_F(Stats, SaysWhichKernelsWereLaunched) {
  std::string path =
      ::testing::TempDir() + "coverage-" + std::to_string(getpid());
  for (int i = 0; i < 2; ++i) // records are appended
    printed("Coverage", "GPTC_EMULATOR_COVERAGE='" + path + "'");
  std::FILE *file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  char label[2][64], name[64];
  int count = 0, lines = 0, launched = 0, never = 0;
  while (std::fscanf(file, "%63s %63s %d", label[lines > 0], name, &count) ==
         3) {
    ++lines;
    launched += std::string(name) == "k" && count == 2;
    never += std::string(name) == "never" && count == 0;
    EXPECT_STREQ(label[0], label[lines > 1]);
  }
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_EQ(lines, 4);
  EXPECT_EQ(launched, 2);
  EXPECT_EQ(never, 2);
}

} // namespace
