//===- BenchWork.cpp - How much work a kernel's call is -------------------===//

#include "BenchWork.h"
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

using namespace gptc::host;
using nlohmann::json;

static double number(const json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

static std::string text(const json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

/// An empty array where there is none.
static const json &list(const json &object, const char *key) {
  static const json empty = json::array();
  auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : empty;
}

/// "d3" is 3; -1 for anything else.
static int32_t dimIndex(const json &size) {
  if (!size.is_string())
    return -1;
  const auto &name = size.get_ref<const std::string &>();
  int32_t index = -1;
  if (name.starts_with("d"))
    std::from_chars(name.data() + 1, name.data() + name.size(), index);
  return index;
}

/// Static sizes are multiplied into `bytes`, the others become indices.
template <typename Array> static void addSize(Array &array, const json &size) {
  if (size.is_number())
    array.bytes *= size.get<double>();
  else if (int32_t index = dimIndex(size); index >= 0)
    array.dims.push_back(index);
}

/// In how many layers the stepping entry attends.
static size_t layerCount(const json &manifest) {
  std::set<double> layers;
  for (const json &entry : list(manifest, "entries"))
    if (entry.is_object())
      for (const json &call : list(entry, "calls"))
        if (call.is_object() && call.contains("layer"))
          layers.insert(number(call, "layer"));
  return layers.size();
}

WorkOfKernels::WorkOfKernels(const json &manifest) {
  int8 = text(manifest, "precision") == "int8";
  double page = number(manifest, "kv_page");
  if (size_t layers = layerCount(manifest); layers && page > 0)
    kvBytes = number(manifest, "kv_page_bytes") / page / double(layers);
  add(manifest);
}

void WorkOfKernels::add(const json &manifest) {
  for (const json &kernel : list(manifest, "kernels")) {
    if (!kernel.is_object())
      continue;
    Kernel &entry = kernels[text(kernel, "name")];
    entry = {};
    std::string kind = text(kernel, "kind");
    entry.gemm = kind == "gemm";
    const json &ops = list(kernel, "ops");
    bool selects = !ops.empty() && ops[0] == "gpt.select_rows";
    entry.reads = kind == "embedding" || selects;
    entry.flopsPerRow = number(kernel, "flops_per_row");
    entry.weightBytes = number(kernel, "weight_bytes_per_call");
    if (double window = number(kernel, "window"); window > 0)
      entry.window = static_cast<int64_t>(std::min<double>(window, INT32_MAX));
    int index = -1;
    for (const char *side : {"arguments", "results"})
      for (const json &tensor : list(kernel, side)) {
        if (!tensor.is_object())
          continue;
        ++index;
        std::string type = text(tensor, "dtype");
        if (type == "kv_cache") {
          (kind == "attention" ? entry.attends : entry.appends) = true;
          continue;
        }
        const json &shape = list(tensor, "shape");
        if (index == 0 && !shape.empty())
          addSize(entry.rows, shape[0]);
        Array array;
        array.bytes = type == "bf16" || type == "f16" ? 2 : 4;
        for (const json &size : shape)
          addSize(array, size);
        bool table = entry.reads && index == 0;
        if (!array.dims.empty() && !table) // else a weight
          entry.arrays.push_back(array);
        if (side == std::string_view("results") && !shape.empty() &&
            shape.back().is_number())
          entry.width = shape.back().get<double>();
      }
  }
  // Which level runs is the package's choice; a kernel is the same work in all.
  for (const json &level : list(manifest, "lower_levels"))
    if (level.is_object())
      add(level);
}

void WorkOfKernels::attention(const Kernel &kernel, const StepTokens &tokens,
                              CallWork &work) const {
  double keys = 0, read = 0;
  for (int32_t position : tokens.positions)
    keys += static_cast<double>(std::min<int64_t>(position + 1, kernel.window));
  for (auto [end, count] : tokens.sequences) // the first token's window to end
    read +=
        static_cast<double>(std::min<int64_t>(end, kernel.window + count - 1));
  work.flops +=
      4 * kernel.width * keys; // a product with a key, one with a value
  work.bytes += read * kvBytes;
}

CallWork WorkOfKernels::call(const gptc_event &event,
                             const StepTokens &tokens) const {
  auto found = kernels.find(std::string_view(event.kernel));
  if (found == kernels.end())
    return {};
  const Kernel &kernel = found->second;
  auto size = [&](const Array &array) {
    double result = array.bytes;
    for (int32_t dim : array.dims)
      result *= dim < event.dim_count ? double(event.dims[dim]) : 0;
    return result;
  };
  CallWork work;
  work.dot8 = int8 && kernel.gemm;
  double rows = size(kernel.rows);
  work.flops = kernel.flopsPerRow * rows;
  work.bytes = kernel.weightBytes;
  for (const Array &array : kernel.arrays)
    work.bytes += size(array);
  if (kernel.reads && !kernel.arrays.empty())
    work.bytes += size(kernel.arrays.back());
  if (kernel.appends)
    work.bytes += rows * kvBytes;
  if (kernel.attends)
    attention(kernel, tokens, work);
  return work;
}
