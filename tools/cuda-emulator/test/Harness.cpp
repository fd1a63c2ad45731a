// What the tests of the emulator share.
#include "Harness.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

void *driverSymbol(const char *name) {
  static void *library = dlopen(EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  return dlsym(library, name);
}

// A folder that goes away with the program.
static const std::string &folder() {
  struct Folder {
    std::string path;
    Folder() {
      char name[] = "/tmp/cuda-emulator-test-XXXXXX";
      path = mkdtemp(name) ? name : "/tmp";
    }
    ~Folder() {
      if (path.size() > 6)
        (void)!std::system(("rm -rf '" + path + "'").c_str());
    }
  };
  static Folder one;
  return one.path;
}

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string reported() {
  std::string path = folder() + "/log";
  std::string text = readFile(path);
  std::remove(path.c_str());
  return text;
}

void Device::SetUp() {
  setenv("GPTC_EMULATOR_LOG", (folder() + "/log").c_str(), 1);
  ASSERT_EQ(driver("cuInit", 0u), 0);
  ASSERT_EQ(driver("cuCtxCreate_v2", &context, 0u, 0), 0);
  reported();
}

void Device::TearDown() { driver("cuCtxDestroy_v2", context); }

uint64_t Device::allocate(size_t bytes) {
  uint64_t at = 0;
  EXPECT_EQ(driver("cuMemAlloc_v2", &at, bytes), 0);
  return at;
}

void *Device::load(const std::string &image) {
  void *module = nullptr;
  EXPECT_EQ(driver("cuModuleLoadData", &module, (const void *)image.c_str()), 0)
      << reported();
  return module;
}

void *Device::function(void *module, const char *name) {
  void *kernel = nullptr;
  EXPECT_EQ(driver("cuModuleGetFunction", &kernel, module, name), 0);
  return kernel;
}

std::string ptxKernel(const std::string &body, int pointers,
                      const std::string &before, int sm) {
  std::string text = ".version 8.0\n.target sm_" + std::to_string(sm) +
                     "\n.address_size 64\n" + before + "\n.visible .entry k(";
  for (int i = 0; i < pointers; ++i)
    text += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  text += ")\n{\n.reg .pred %p<20>; .reg .b16 %rs<40>; .reg .b32 %r<60>;\n"
          ".reg .f32 %f<60>; .reg .b64 %rd<40>; .reg .f64 %fd<20>;\n";
  for (int i = 0; i < pointers; ++i)
    text += "ld.param.u64 %rd" + std::to_string(i) + ", [p" +
            std::to_string(i) + "];\n";
  return text + body + "\nret;\n}\n";
}

static std::string nvcc() {
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable)) {
      std::string path = std::string(home) + "/bin/nvcc";
      if (access(path.c_str(), X_OK) == 0)
        return path;
    }
  if (std::system("command -v nvcc >/dev/null 2>&1") == 0)
    return "nvcc";
  std::string path = "/usr/local/cuda/bin/nvcc";
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

bool hasNvcc() {
  static const bool has = !nvcc().empty();
  return has;
}

std::string compileCuda(const std::string &source, const std::string &code) {
  std::string in = folder() + "/test.cu", out = folder() + "/test.fatbin";
  std::ofstream(in) << source;
  std::remove(out.c_str());
  std::string command = nvcc() + " -gencode arch=compute_80,code=" + code +
                        " -O3 "
                        "-lineinfo -std=c++17 -fatbin -no-compress -o " +
                        out + " " + in + " >&2";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return readFile(out);
}
