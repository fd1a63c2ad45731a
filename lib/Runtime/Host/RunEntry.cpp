//===- RunEntry.cpp - gptc-run: one entry with named tensors --------------===//
//
// What the entry's tensors are called is read from the manifest; the package
// itself checks them.
//
//===----------------------------------------------------------------------===//

#include "RunTool.h"
#include "gptc/Runtime/Host/Files.h"
#include "gptc/Runtime/Host/Npy.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace gptc::host;

/// The names in an array of the manifest's entry.
static std::vector<std::string> namesIn(const nlohmann::json &entry,
                                        const char *key) {
  std::vector<std::string> names;
  auto list = entry.find(key);
  if (list != entry.end() && list->is_array())
    for (const auto &tensor : *list)
      if (tensor.is_object() && tensor.contains("name") &&
          tensor["name"].is_string())
        names.push_back(tensor["name"]);
  return names;
}

/// The manifest's entry of this name; null with a message if there is none.
static const nlohmann::json *findEntry(const nlohmann::json &manifest,
                                       const std::string &name,
                                       std::string &error) {
  std::vector<std::string> known = namesIn(manifest, "entries");
  if (std::ranges::find(known, name) != known.end())
    for (const auto &entry : manifest["entries"])
      if (entry.is_object() && entry.value("name", nlohmann::json()) == name)
        return &entry;
  std::vector<std::string_view> candidates(known.begin(), known.end());
  std::string_view near = nearest(name, candidates);
  error = fmt::format("no entry '{}' in the package, {}", name,
                      near.empty()
                          ? fmt::format("it has {}", fmt::join(known, ", "))
                          : fmt::format("did you mean '{}'?", near));
  return nullptr;
}

bool gptc::host::runEntry(const RunRequest &request, const Package &package,
                          std::string &error) {
  const gptc_api &api = package.api();
  const nlohmann::json *entry =
      findEntry(package.manifest(), request.entry, error);
  if (!entry)
    return false;
  const std::vector<std::string> names = namesIn(*entry, "outputs");
  auto bytes = readFile(request.inputs, error);
  if (!bytes)
    return false;
  // An archive may hold more than the entry takes: expected outputs, say.
  auto arrays = parseNpz(*bytes, error, namesIn(*entry, "inputs"));
  if (!arrays) {
    error = fmt::format("{}: {}", request.inputs, error);
    return false;
  }

  auto opened = package.open(nullptr, error);
  if (!opened)
    return false;
  Handle<gptc_model> model(api, *opened);
  gptc_limits limits{};
  limits.size = sizeof(limits);
  limits.tokens = limits.rows = limits.pages = 1; // no steps are made
  limits.threads = static_cast<int32_t>(request.threads);
  auto session = openSession(api, model.get(), limits, error);
  if (!session)
    return false;

  std::vector<gptc_tensor> inputs, outputs(names.size());
  for (Array &array : *arrays)
    inputs.push_back(array.tensor());
  for (size_t i = 0; i < names.size(); ++i)
    outputs[i].name = names[i].c_str();
  auto run = [&] {
    if (api.run(session->get(), request.entry.c_str(), inputs.data(),
                inputs.size(), outputs.data(), outputs.size()) == GPTC_OK)
      return true;
    error = api.last_error();
    return false;
  };
  // First the shapes, then the values.
  if (!run())
    return false;
  std::vector<Array> results(names.size());
  size_t total = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    size_t size = 4;
    for (int32_t d = 0; d < outputs[i].rank; ++d)
      size *= static_cast<size_t>(outputs[i].shape[d]);
    total += size;
    results[i].name = names[i];
    results[i].dtype = outputs[i].dtype;
    results[i].shape.assign(outputs[i].shape,
                            outputs[i].shape + outputs[i].rank);
    results[i].data.resize(size);
    outputs[i].data = results[i].data.data();
    outputs[i].capacity_bytes = size;
  }
  if (total > 0xf0000000) {
    error = fmt::format("{}: outputs of {} bytes: expected less than 4 GB, the "
                        "limit of the archive format",
                        request.outputs, total);
    return false;
  }
  if (!run())
    return false;
  std::vector<uint8_t> archive = serializeNpz(results);
  auto file = OutputFile::create(request.outputs, error);
  return file && file->write(archive.data(), archive.size(), error) &&
         file->commit(error);
}
