//===- Package.cpp - Fuzzes what gptc-run reads of a package --------------===//
//
// Input: a letter, then the bytes of one of the package's files, the others
// being good ones: m manifest.json, w <name>.weights as it is, v the same with
// the header's hash, size and checksum put right. The code is that of the toy
// package of the runtime's unit tests: a shared library is trusted, not fuzzed.
//
//===----------------------------------------------------------------------===//
#include "gptc/Runtime/Host/Package.h"
#include "Fuzz.h"
#include "ToyModel.h"
#include "gptc/Format/Program.h"
#include "gptc/Format/WeightLayout.h"
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace gptc::host;
namespace fs = std::filesystem;

namespace {
/// The package's folder; gone with the process. Its files lie in memory.
struct Folder {
  fs::path path;
  fuzz::MemoryFile manifest, weights;
  Folder() {
    std::string name =
        (fs::temp_directory_path() / "gptc-fuzz-XXXXXX").string();
    path = mkdtemp(name.data());
    fs::create_symlink(GPTC_TOY_LIBRARY, path / "libtoy.so");
    fs::create_symlink(manifest.with("", 0), path / "manifest.json");
    fs::create_symlink(weights.with("", 0), path / "toy.weights");
    // libFuzzer keeps pointers into code that it has seen: it must stay loaded.
    fuzz::require(dlopen(GPTC_TOY_LIBRARY, RTLD_NOW), "the library loads");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};
} // namespace

static void putRight(std::string &bytes) {
  gptc_weights_header header;
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(header.magic, GPTC_WEIGHTS_MAGIC, 8);
  header.package_hash = toyPackageHash;
  header.file_bytes = bytes.size();
  header.checksum = gptc_checksum(0, bytes.data() + sizeof(header),
                                  bytes.size() - sizeof(header));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

static void useModel(const Package &package, gptc_model *model) {
  Handle<gptc_model> opened(package.api(), model);
  gptc_limits limits{};
  limits.size = sizeof(limits);
  limits.threads = 1;
  std::string error;
  auto session = openSession(package.api(), model, limits, error);
  if (!session)
    fuzz::requireMessage(error);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  static const std::string manifest = R"({"name": "toy", "weights": [{}]})";
  static const std::vector<char> good = toy::weightsFile();
  if (size == 0)
    return 0;
  std::string bytes(fuzz::text(data + 1, size - 1));
  if (data[0] == 'v')
    putRight(bytes);
  bool weights = data[0] == 'w' || data[0] == 'v';
  std::string_view manifestBytes = weights ? std::string_view(manifest) : bytes;
  std::string_view weightBytes(good.data(), good.size());
  if (weights)
    weightBytes = bytes;
  folder.manifest.with(manifestBytes.data(), manifestBytes.size());
  folder.weights.with(weightBytes.data(), weightBytes.size());

  std::string error;
  auto package = Package::load(folder.path.string(), error);
  if (!package) {
    fuzz::requireMessage(error);
    return 0;
  }
  for (bool verify : {false, true}) {
    error.clear();
    if (auto model = package->open(nullptr, error, verify))
      useModel(*package, *model);
    else
      fuzz::requireMessage(error);
  }
  return 0;
}
