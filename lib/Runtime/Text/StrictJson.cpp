//===- StrictJson.cpp - JSON from files that may be hostile ---------------===//
#include "StrictJson.h"
#include <fmt/format.h>
#include <unordered_set>

namespace gptc::text {

using nlohmann::json;

static constexpr size_t maxDepth = 64;

namespace {
/// Keeps nothing but what the rules need, so that they hold before any value
/// is made. (The parser's own callback looks through a list at each of its
/// elements.)
class Rules : public nlohmann::json_sax<json> {
public:
  std::string refusal;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t &name) override {
    return keys.back().insert(name).second ||
           refuse(fmt::format("duplicate key '{}'", name));
  }
  bool parse_error(std::size_t, const std::string &,
                   const json::exception &exception) override {
    // Behind the parser's own number of it, "[json.exception.KIND.N] ".
    std::string_view what = exception.what();
    if (size_t end = what.find("] "); end != what.npos)
      what.remove_prefix(end + 2);
    return refuse(std::string(what));
  }

private:
  bool enter() {
    keys.emplace_back();
    return keys.size() <= maxDepth ||
           refuse(fmt::format("more than {} nested levels", maxDepth));
  }
  bool leave() {
    keys.pop_back();
    return true;
  }
  bool refuse(std::string rule) {
    refusal = std::move(rule);
    return false;
  }

  std::vector<std::unordered_set<std::string>> keys; // of a list: none
};
} // namespace

std::optional<json> parseStrictJson(std::string_view bytes,
                                    std::string_view what, std::string &error) {
  Rules rules;
  if (json::sax_parse(bytes.begin(), bytes.end(), &rules)) {
    json value = json::parse(bytes.begin(), bytes.end(), nullptr,
                             /*allow_exceptions=*/false);
    if (!value.is_discarded())
      return value;
    rules.refusal = "expected JSON";
  }
  error = fmt::format("{}: {}", what, rules.refusal);
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
