//===- ConcurrentTest.cpp - 8 compiles at once in one process -------------===//
//
// On 8 threads before the process has compiled anything, then one after the
// other: the packages must have equal bytes. What belongs to the process, the
// working directory and the umask, is left alone: other threads use it.
//
//===----------------------------------------------------------------------===//
#include "gptc/Driver/Driver.h"
#include "gptc/Import/Import.h"
#include "gptc/Import/WriteFile.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <latch>
#include <map>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

static std::atomic<int> processChanges;

// Instead of libc's.
extern "C" int chdir(const char *path) noexcept {
  ++processChanges;
  return int(syscall(SYS_chdir, path));
}
extern "C" int fchdir(int folder) noexcept {
  ++processChanges;
  return int(syscall(SYS_fchdir, folder));
}
extern "C" mode_t umask(mode_t mask) noexcept {
  ++processChanges;
  return mode_t(syscall(SYS_umask, mask));
}

namespace {
constexpr int kThreads = 8;

const char *const kModels[] = {"gpt2-hf", "llama-hf"};
const char *const kOptions[] = {"-O0", "-O2"};
constexpr int kVariants = 4;

void onThreads(const std::function<void(int)> &body) {
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      body(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Works in a new folder, with a model.mlir of each checkpoint.
class ConcurrentTest : public testing::Test {
protected:
  ConcurrentTest() : before(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "gptc-XXXXXX").string();
    folder = mkdtemp(name.data());
    fs::current_path(folder);
    processChanges = 0;
  }
  ~ConcurrentTest() override {
    fs::current_path(before);
    fs::remove_all(folder);
  }

  void import() {
    for (const char *model : kModels) {
      auto opened = gptc::checkpoint::Checkpoint::open(
          std::string(GPTC_GOLDEN_DIR) + "/" + model);
      ASSERT_TRUE(bool(opened)) << opened.error().message;
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      auto imported = gptc::importCheckpoint(context, *opened, {});
      ASSERT_TRUE(bool(imported)) << imported.error().message;
      std::error_code code;
      llvm::raw_fd_ostream out(std::string(model) + ".mlir", code);
      gptc::printModel(*imported->module, out);
    }
  }

  /// Compiles one of the models with one of the options.
  static int compile(int variant, const std::string &output) {
    std::string model = std::string(kModels[variant % 2]) + ".mlir";
    const char *args[] = {"gptc", model.c_str(), "-o", output.c_str(),
                          kOptions[variant / 2 % 2]};
    return gptc::driverMain(5, args);
  }

  static std::map<std::string, std::string> contents(const fs::path &package) {
    std::map<std::string, std::string> files;
    for (const auto &entry : fs::directory_iterator(package)) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().filename()] = {std::istreambuf_iterator<char>(file),
                                        {}};
    }
    return files;
  }

  static int temporaryFolders() {
    int count = 0;
    for (const auto &entry : fs::directory_iterator("."))
      count +=
          entry.is_directory() && entry.path().filename().string()[0] == '.';
    return count;
  }

  fs::path before, folder;
};

/// As under nohup. In a process of its own, in which LLVM has not registered
/// its handlers yet.
TEST_F(ConcurrentTest, IgnoredSignalsStayIgnored) {
  ASSERT_NO_FATAL_FAILURE(import());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int number : {SIGINT, SIGHUP})
      signal(number, SIG_IGN);
    llvm::consumeError(gptc::writeFile("file", "text"));
    std::thread other([] {
      while (temporaryFolders() == 0)
        usleep(1000);
      for (int number : {SIGINT, SIGHUP})
        kill(getpid(), number);
    });
    int status = compile(0, "package");
    other.join();
    for (int number : {SIGINT, SIGHUP})
      if (signal(number, SIG_DFL) != SIG_IGN)
        status = 100;
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_GE(contents("package").size(), 5u);
}

TEST_F(ConcurrentTest, EqualBytes) {
  ASSERT_NO_FATAL_FAILURE(import());
  onThreads(
      [&](int i) { EXPECT_EQ(compile(i, "package-" + std::to_string(i)), 0); });
  EXPECT_EQ(processChanges, 0);
  // The packages, two models: no temporary folder is left.
  EXPECT_EQ(std::distance(fs::directory_iterator("."), {}), kThreads + 2);
  for (int variant = 0; variant < kVariants; ++variant) {
    ASSERT_EQ(compile(variant, "serial"), 0);
    auto expected = contents("serial");
    EXPECT_GE(expected.size(), 5u);
    for (int i = variant; i < kThreads; i += kVariants)
      EXPECT_TRUE(contents("package-" + std::to_string(i)) == expected) << i;
  }
}

/// A signal in the middle of several compiles removes the temporary folders of
/// all of them.
TEST_F(ConcurrentTest, InterruptedLeavesNothing) {
  ASSERT_NO_FATAL_FAILURE(import());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    onThreads([](int i) { compile(i, "package-" + std::to_string(i)); });
    _exit(1); // too late
  }
  int status = 0;
  while (temporaryFolders() < kThreads && waitpid(child, &status, WNOHANG) == 0)
    usleep(1000);
  usleep(50000); // the last folder is known to its process now
  kill(child, SIGTERM);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(temporaryFolders(), 0);
}

TEST_F(ConcurrentTest, WrittenFilesKeepTheUmask) {
  mode_t mask = umask(027);
  processChanges = 0;
  for (const char *name : {"new", "new", "of %Modell %"}) {
    EXPECT_FALSE(bool(gptc::writeFile(name, "text"))) << name;
    EXPECT_EQ(fs::status(name).permissions(), fs::perms(0640)) << name;
  }
  EXPECT_EQ(processChanges, 0);
  umask(mask);
  EXPECT_EQ(std::distance(fs::directory_iterator("."), {}), 2);
}

} // namespace
