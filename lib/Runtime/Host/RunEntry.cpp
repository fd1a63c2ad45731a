//===- RunEntry.cpp - gptc-run: one entry with named tensors --------------===//
//
// The package itself checks shapes and numbers.
//
//===----------------------------------------------------------------------===//

#include "RunTool.h"
#include "gptc/Runtime/Host/EntryTensors.h"
#include "gptc/Runtime/Host/Files.h"
#include <fmt/format.h>

using namespace gptc::host;

bool gptc::host::runEntry(const RunRequest &request, const Package &package,
                          std::string &error) {
  const gptc_api &api = package.api();
  auto entry = EntryTensors::find(package, request.entry, error);
  if (!entry)
    return false;
  const std::vector<std::string> &names = entry->outputs;
  auto arrays = entry->read(request.inputs, error);
  if (!arrays)
    return false;

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
