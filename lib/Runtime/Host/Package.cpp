//===- Package.cpp - Loading a compiled package ---------------------------===//

#include "gptc/Runtime/Host/Package.h"
#include "gptc/Runtime/Host/Files.h"
#include <algorithm>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string.h>

using namespace gptc::host;
namespace fs = std::filesystem;

struct Package::Impl {
  ~Impl() {
    if (library)
      dlclose(library);
  }
  std::string folder, name;
  nlohmann::json manifest;
  void *library = nullptr;
  const gptc_api *api = nullptr;

  std::string path(std::string_view file) const {
    return (fs::path(folder) / file).string();
  }
};

Package::Package(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Package::Package(Package &&) noexcept = default;
Package::~Package() = default;

const gptc_api &Package::api() const { return *impl->api; }
const nlohmann::json &Package::manifest() const { return impl->manifest; }
const std::string &Package::folder() const { return impl->folder; }

/// Names become file and symbol names.
static bool isIdentifier(std::string_view name) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= 200 && letter(name[0]) &&
         std::ranges::all_of(
             name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// The bytes that a library must have, by its own headers; 0 of other files,
/// which dlopen refuses. It would map what ends early and fault there.
static uint64_t bytesNeeded(const std::string &library) {
  std::ifstream file(library, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char *>(&header), sizeof header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return 0;
  uint64_t needed =
      header.e_shoff + uint64_t(header.e_shnum) * header.e_shentsize;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!file.read(reinterpret_cast<char *>(&part), sizeof part))
      break;
    needed = std::max(needed, part.p_offset + part.p_filesz);
  }
  return needed;
}

std::optional<Package> Package::load(const std::string &folder,
                                     std::string &error) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  std::string manifestPath = impl->path("manifest.json");
  auto bytes = readFile(manifestPath, error);
  if (!bytes) {
    error += "; expected the folder of a compiled package";
    return std::nullopt;
  }
  impl->manifest = nlohmann::json::parse(*bytes, nullptr, false);
  const auto &manifest = impl->manifest;
  if (!manifest.is_object() || !manifest.contains("name") ||
      !manifest["name"].is_string() ||
      !isIdentifier(manifest["name"].get_ref<const std::string &>())) {
    error = fmt::format("{}: expected a JSON object with the package's name",
                        manifestPath);
    return std::nullopt;
  }
  impl->name = manifest["name"];

  // A path with a slash keeps dlopen from searching elsewhere.
  std::error_code failed;
  std::string library =
      fs::absolute(impl->path("lib" + impl->name + ".so"), failed).string();
  if (uint64_t size = fs::file_size(library, failed),
      needed = bytesNeeded(library);
      !failed && size < needed) {
    error = fmt::format("{}: truncated: expected {} bytes, got {}", library,
                        needed, size);
    return std::nullopt;
  }
  impl->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!impl->library) {
    const char *why = dlerror();
    error = fmt::format("{}: cannot be loaded: {}", library, why ? why : "");
    return std::nullopt;
  }
  std::string symbol = impl->name + "_api";
  auto *function = reinterpret_cast<const gptc_api *(*)()>(
      dlsym(impl->library, symbol.c_str()));
  impl->api = function ? function() : nullptr;
  if (!impl->api || impl->api->size < sizeof(gptc_api)) {
    error =
        fmt::format("{}: {}", library,
                    function ? fmt::format("expected a table of {} bytes "
                                           "from {}, compile it again",
                                           sizeof(gptc_api), symbol)
                             : fmt::format("expected the function {}", symbol));
    return std::nullopt;
  }
  return Package(std::move(impl));
}

std::optional<gptc_model *>
Package::open(const gptc_host *host, std::string &error, bool verify) const {
  std::string path = impl->path(impl->name + ".weights");
  std::error_code failed;
  gptc_tensor none{};
  gptc_open_params params{};
  params.size = sizeof(params);
  params.host = host;
  params.verify = verify;
  // A package without weights need not have the file.
  const auto weights = impl->manifest.find("weights");
  if (weights != impl->manifest.end() && weights->empty() &&
      !fs::exists(path, failed))
    params.weights = &none;
  else
    params.weights_path = path.c_str();
  gptc_model *model = nullptr;
  if (impl->api->open(&params, &model) == GPTC_OK)
    return model;
  error = impl->api->last_error();
  if (params.weights_path && !fs::exists(path, failed))
    error +=
        "; expected a package compiled with weights: without --no-weights, "
        "from a model that says where they lie";
  return std::nullopt;
}

std::optional<gptc::text::Tokenizer>
Package::tokenizer(std::string &error) const {
  std::string path = impl->path("tokenizer.bin");
  auto bytes = readFile(path, error);
  if (!bytes)
    return std::nullopt;
  std::string why;
  auto data = text::parse(*bytes, why);
  std::optional<text::Tokenizer> tokenizer;
  if (data)
    tokenizer = text::Tokenizer::create(std::move(*data), why);
  if (!tokenizer)
    error = fmt::format("{}: {}", path, why);
  return tokenizer;
}

std::optional<Handle<gptc_session>>
gptc::host::openSession(const gptc_api &api, gptc_model *model,
                        const gptc_limits &limits, std::string &error) {
  gptc_session *session = nullptr;
  if (api.session(model, &limits, &session) == GPTC_OK)
    return Handle<gptc_session>(api, session);
  error = api.last_error();
  return std::nullopt;
}
