//===- Package.h - A compiled package, loaded by its folder ---------------===//
//
// DIR/manifest.json names the package; its code is DIR/lib<name>.so (dlopen),
// its functions the table <name>_api(), its weights DIR/<name>.weights, its
// tokenizer DIR/tokenizer.bin. Code in a package runs with the rights of the
// caller: load only what you trust.
//
// Refuses, with the file named: a missing or foreign manifest, a library that
// does not load or lacks the table, weights that do not fit.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_PACKAGE_H
#define GPTC_RUNTIME_HOST_PACKAGE_H

#include "gptc/Runtime/Text/Tokenizer.h"
#include "gptc/Runtime/gptc.h"
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace gptc::host {

class Package {
public:
  /// Loads the code; opens no weights yet.
  static std::optional<Package> load(const std::string &folder,
                                     std::string &error);
  Package(Package &&) noexcept;
  ~Package();

  const gptc_api &api() const;
  const gptc_info &info() const { return *api().info(); }
  const nlohmann::json &manifest() const;
  const std::string &folder() const;

  /// Opens the weights file, checking its checksum unless `verify` is false.
  /// `host` may be null.
  std::optional<gptc_model *> open(const gptc_host *host, std::string &error,
                                   bool verify = true) const;
  /// The tokenizer, or nothing with a message (none, or a damaged one).
  std::optional<text::Tokenizer> tokenizer(std::string &error) const;

private:
  struct Impl;
  explicit Package(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// A model or session that closes itself.
template <typename T> class Handle {
public:
  Handle(const gptc_api &api, T *value) : api(&api), value(value) {}
  Handle(Handle &&other) noexcept : api(other.api), value(other.value) {
    other.value = nullptr;
  }
  Handle &operator=(Handle &&) = delete;
  ~Handle() { api->close(value); }
  T *get() const { return value; }

private:
  const gptc_api *api;
  T *value;
};

/// Empty with a message when the package refuses the limits.
std::optional<Handle<gptc_session>> openSession(const gptc_api &api,
                                                gptc_model *model,
                                                const gptc_limits &limits,
                                                std::string &error);

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_PACKAGE_H
