//===- EntryTensors.cpp - What an entry's tensors are called --------------===//

#include "gptc/Runtime/Host/EntryTensors.h"
#include "gptc/Runtime/Host/Files.h"
#include "gptc/Runtime/Host/Options.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace gptc::host;

/// The strings `member` of the objects in an array of the manifest.
static std::vector<std::string> stringsIn(const nlohmann::json &object,
                                          const char *key, const char *member) {
  std::vector<std::string> strings;
  auto list = object.find(key);
  if (list != object.end() && list->is_array())
    for (const auto &each : *list)
      if (each.is_object() && each.contains("name") &&
          each["name"].is_string() && each.contains(member) &&
          each[member].is_string())
        strings.push_back(each[member]);
  return strings;
}

/// "did you mean 'x'?", or "it has x, y".
static std::string hint(std::string_view name,
                        const std::vector<std::string> &known) {
  std::vector<std::string_view> candidates(known.begin(), known.end());
  std::string_view near = nearest(name, candidates);
  return near.empty() ? fmt::format("it has {}", fmt::join(known, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

std::optional<EntryTensors> EntryTensors::find(const Package &package,
                                               const std::string &entry,
                                               std::string &error) {
  std::vector<std::string> known =
      stringsIn(package.manifest(), "entries", "name");
  if (std::ranges::find(known, entry) != known.end())
    for (const auto &each : package.manifest()["entries"])
      if (each.is_object() && each.value("name", nlohmann::json()) == entry)
        return EntryTensors{entry, stringsIn(each, "inputs", "name"),
                            stringsIn(each, "inputs", "dtype"),
                            stringsIn(each, "outputs", "name")};
  error = fmt::format("no entry '{}' in the package, {}", entry,
                      hint(entry, known));
  return std::nullopt;
}

std::optional<std::vector<Array>> EntryTensors::read(const std::string &path,
                                                     std::string &error) const {
  auto bytes = readFile(path, error);
  if (!bytes)
    return std::nullopt;
  auto fail = [&](const std::string &why) {
    error = fmt::format("{}: {}", path, why);
    return std::nullopt;
  };
  std::vector<std::string> others;
  auto arrays = parseNpz(*bytes, error, inputs, &others);
  if (!arrays)
    return fail(error);
  for (const std::string &name : others)
    if (std::ranges::find(outputs, name) == outputs.end())
      return fail(fmt::format("array '{}': entry '{}' has no input of that "
                              "name, {}",
                              name, entry, hint(name, inputs)));
  for (const Array &array : *arrays) {
    size_t at = std::ranges::find(inputs, array.name) - inputs.begin();
    if (at >= inputTypes.size())
      continue; // of a damaged manifest; the package checks it
    const std::string &type = inputTypes[at];
    if (type != (array.dtype == GPTC_F32 ? "f32" : "i32"))
      return fail(fmt::format(
          "array '{}': expected {}, got {}", array.name,
          type == "f32"
              ? "float32, or float64 that is rounded to it"
              : "int32, or int64, uint8 or bool that are converted to it",
          array.stored));
  }
  return arrays;
}
