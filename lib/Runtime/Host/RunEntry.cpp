//===- RunEntry.cpp - gptc-run: one entry with named tensors --------------===//
//
// Which outputs the entry has is read from the manifest; the package itself
// checks the inputs.
//
//===----------------------------------------------------------------------===//

#include "RunTool.h"
#include "gptc/Runtime/Host/Files.h"
#include "gptc/Runtime/Host/Npy.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace gptc::host;

/// The names of the entry's outputs; empty with a message if there is none.
static std::vector<std::string> outputNames(const nlohmann::json &manifest,
                                            const std::string &entry,
                                            std::string &error) {
  std::vector<std::string> names;
  std::vector<std::string> known;
  if (manifest.contains("entries") && manifest["entries"].is_array())
    for (const auto &candidate : manifest["entries"]) {
      if (!candidate.is_object() || !candidate.contains("name") ||
          !candidate["name"].is_string())
        continue;
      known.push_back(candidate["name"]);
      if (known.back() != entry || !candidate.contains("outputs") ||
          !candidate["outputs"].is_array())
        continue;
      for (const auto &output : candidate["outputs"])
        if (output.is_object() && output.contains("name") &&
            output["name"].is_string())
          names.push_back(output["name"]);
    }
  if (names.empty())
    error = fmt::format("no entry '{}' with outputs in the manifest; it has {}",
                        entry, fmt::join(known, ", "));
  return names;
}

bool gptc::host::runEntry(const RunRequest &request, const Package &package,
                          std::string &error) {
  const gptc_api &api = package.api();
  std::vector<std::string> names =
      outputNames(package.manifest(), request.entry, error);
  if (names.empty())
    return false;
  auto bytes = readFile(request.inputs, error);
  if (!bytes)
    return false;
  auto arrays = parseNpz(*bytes, error);
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
  gptc_session *newSession = nullptr;
  if (api.session(model.get(), &limits, &newSession) != GPTC_OK) {
    error = api.last_error();
    return false;
  }
  Handle<gptc_session> session(api, newSession);

  std::vector<gptc_tensor> inputs, outputs(names.size());
  for (Array &array : *arrays)
    inputs.push_back(array.tensor());
  for (size_t i = 0; i < names.size(); ++i)
    outputs[i].name = names[i].c_str();
  auto run = [&] {
    if (api.run(session.get(), request.entry.c_str(), inputs.data(),
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
