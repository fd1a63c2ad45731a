//===- StrictJson.cpp - JSON from files that may be hostile ---------------===//
#include "StrictJson.h"
#include <fmt/format.h>
#include <unordered_set>

namespace gptc::text {

using nlohmann::json;

static constexpr int maxDepth = 64;

std::optional<json> parseStrictJson(std::string_view bytes,
                                    std::string_view what, std::string &error) {
  std::vector<std::unordered_set<std::string>> keys;
  std::string refusal;
  auto watch = [&](int depth, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end && !keys.empty())
      keys.pop_back();
    else if (event == json::parse_event_t::key && !keys.empty() &&
             refusal.empty() &&
             !keys.back().insert(parsed.get_ref<std::string &>()).second)
      refusal = fmt::format("duplicate key '{}'",
                            parsed.get_ref<const std::string &>());
    if (depth > maxDepth && refusal.empty())
      refusal = fmt::format("more than {} nested levels", maxDepth);
    return true;
  };
  try {
    json value = json::parse(bytes.begin(), bytes.end(), watch);
    if (refusal.empty())
      return value;
  } catch (const json::exception &exception) {
    refusal = exception.what();
  }
  error = fmt::format("{}: {}", what, refusal);
  return std::nullopt;
}

const json &member(const json &value, const char *key) {
  static const json null;
  if (!value.is_object())
    return null;
  auto found = value.find(key);
  return found == value.end() ? null : *found;
}

std::string_view stringMember(const json &value, const char *key) {
  const json &found = member(value, key);
  return found.is_string()
             ? std::string_view(found.get_ref<const std::string &>())
             : std::string_view();
}

bool boolMember(const json &value, const char *key, bool fallback) {
  const json &found = member(value, key);
  return found.is_boolean() ? found.get<bool>() : fallback;
}

} // namespace gptc::text
