//===- Json.cpp - JSON files from outside ---------------------------------===//
//
// nlohmann-json is used as a SAX parser only: its tree would keep the last of
// two equal keys without a word. Its parser keeps its own stack, so that depth
// cannot overflow the machine's.
//
//===----------------------------------------------------------------------===//

#include "gptc/Checkpoint/Json.h"
#include "gptc/Checkpoint/MappedFile.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::json;

namespace {

constexpr size_t maxDepth = 64;
constexpr size_t maxValues = size_t{1} << 19; // at most some 60 MB
constexpr size_t maxTokenBytes = size_t{1} << 23;

/// Builds the tree. Each handler returns false to stop the parser, having set
/// `problem`.
class TreeBuilder {
public:
  Value root;
  std::string problem;

  bool null() { return add(Value()); }
  bool boolean(bool value) { return add(Value(value)); }
  bool number_integer(int64_t value) { return add(Value(value)); }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX))
      return add(Value(static_cast<int64_t>(value)));
    return add(Value(value));
  }
  bool number_float(double value, const std::string &) {
    return add(Value(value));
  }
  bool string(std::string &value) { return add(Value(std::move(value))); }
  bool binary(std::vector<uint8_t> &) { return refuse("binary value"); }

  bool start_object(size_t) { return open(Value(Object())); }
  bool start_array(size_t) { return open(Value(Array())); }
  bool key(std::string &name) {
    pendingKey = std::move(name);
    return true;
  }
  bool end_array() {
    stack.pop_back();
    return true;
  }
  bool end_object() {
    const Object &members = *stack.back()->asObject();
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const Member &member : members)
      keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      return refuse(fmt::format("duplicate key {}", quote(*twice)));
    stack.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string &token,
                   const nlohmann::detail::exception &) {
    problem = token.empty() || token == "<end of input>"
                  ? fmt::format("not valid json at byte {}", position)
                  : fmt::format("not valid json at byte {}, near {}", position,
                                quote(token));
    return false;
  }

private:
  bool refuse(std::string why) {
    problem = std::move(why);
    return false;
  }

  bool add(Value value) { return place(std::move(value)) != nullptr; }

  bool open(Value container) {
    if (stack.size() >= maxDepth)
      return refuse(fmt::format("nested deeper than {} levels", maxDepth));
    Value *placed = place(std::move(container));
    if (!placed)
      return false;
    // The address stays: a container grows only after its last child closed.
    stack.push_back(placed);
    return true;
  }

  /// Puts the value into the innermost open container; null when there are too
  /// many.
  Value *place(Value value) {
    if (++values > maxValues) {
      refuse(fmt::format("more than {} values", maxValues));
      return nullptr;
    }
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    if (Array *array = stack.back()->asArray())
      return &array->emplace_back(std::move(value));
    Object &object = *stack.back()->asObject();
    object.push_back({std::move(pendingKey), std::move(value)});
    return &object.back().value;
  }

  std::vector<Value *> stack;
  std::string pendingKey;
  size_t values = 0;
};

} // namespace

/// Whether a string or number of more than maxTokenBytes begins in `text`. The
/// parser copies a token several times before it reports anything.
static bool hasHugeToken(std::string_view text) {
  size_t length = 0;
  bool inString = false, escaped = false;
  for (char c : text) {
    bool ends = inString ? c == '"' && !escaped
                         : std::string_view(" \t\r\n,:[]{}\"").find(c) !=
                               std::string_view::npos;
    escaped = inString && c == '\\' && !escaped;
    if (!ends) {
      if (++length > maxTokenBytes)
        return true;
      continue;
    }
    inString = !inString && c == '"';
    length = 0;
  }
  return false;
}

Expected<Value> json::parse(std::string_view text, std::string_view where) {
  if (hasHugeToken(text))
    return Error{fmt::format("{}: a string or number of more than {} bytes",
                             where, maxTokenBytes)};
  TreeBuilder builder;
  bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!done)
    return Error{fmt::format("{}: {}", where, builder.problem)};
  return std::move(builder.root);
}

Expected<Value> json::parseFile(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  return parse(file->text(), path);
}
