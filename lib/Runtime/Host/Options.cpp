//===- Options.cpp - Command lines ----------------------------------------===//

#include "gptc/Runtime/Host/Options.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>

using namespace gptc::host;

/// Levenshtein distance.
static size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

std::string_view
gptc::host::nearest(std::string_view name,
                    std::span<const std::string_view> candidates) {
  std::string_view best;
  // Further than a third of the letters away is another word.
  size_t least = std::min<size_t>(name.size(), 64) / 3 + 1;
  for (std::string_view candidate : candidates)
    if (name.size() <= 64)
      if (size_t d = distance(name, candidate); d < least) {
        least = d;
        best = candidate;
      }
  return best;
}

std::optional<Options> Options::parse(std::span<const char *const> arguments,
                                      std::span<const OptionSpec> specs,
                                      std::string &error) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      options.positional.emplace_back(argument);
      continue;
    }
    size_t equals = argument.starts_with("--") ? argument.find('=')
                                               : std::string_view::npos;
    std::string_view name = argument.substr(0, equals);
    auto spec = std::ranges::find(specs, name, &OptionSpec::name);
    if (spec == specs.end()) {
      std::vector<std::string_view> names;
      for (const OptionSpec &known : specs)
        names.push_back(known.name);
      std::string_view near = nearest(name, names);
      error =
          fmt::format("unknown option '{}'{}", name,
                      near.empty() ? std::string("; --help lists them")
                                   : fmt::format(", did you mean '{}'?", near));
      return std::nullopt;
    }
    if (spec->value.empty()) {
      if (equals != std::string_view::npos) {
        error = fmt::format("option '{}' takes no value", name);
        return std::nullopt;
      }
      options.given.push_back({spec->name, ""});
      continue;
    }
    if (equals != std::string_view::npos) {
      options.given.push_back(
          {spec->name, std::string(argument.substr(equals + 1))});
    } else if (i + 1 < arguments.size()) {
      options.given.push_back({spec->name, arguments[++i]});
    } else {
      error = fmt::format("option '{}' expects {}", name, spec->value);
      return std::nullopt;
    }
  }
  return options;
}

const Options::Given *Options::find(std::string_view name) const {
  for (auto it = given.rbegin(); it != given.rend(); ++it)
    if (it->name == name)
      return &*it;
  return nullptr;
}

std::string Options::get(std::string_view name,
                         std::string_view otherwise) const {
  const Given *found = find(name);
  return found ? found->value : std::string(otherwise);
}

template <typename T>
static bool parseNumber(std::string_view name, std::string_view text, T least,
                        T most, T &value, std::string &error) {
  T parsed;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), parsed);
  // Written so that NaN is refused too.
  if (code == std::errc() && end == text.data() + text.size() &&
      parsed >= least && parsed <= most) {
    value = parsed;
    return true;
  }
  error = fmt::format("option '{}': expected a number in [{}, {}], got '{}'",
                      name, least, most, text);
  return false;
}

bool Options::integer(std::string_view name, int64_t least, int64_t most,
                      int64_t &value, std::string &error) const {
  const Given *found = find(name);
  return !found || parseNumber(name, found->value, least, most, value, error);
}

bool Options::real(std::string_view name, double least, double most,
                   double &value, std::string &error) const {
  const Given *found = find(name);
  return !found || parseNumber(name, found->value, least, most, value, error);
}

bool Options::integers(std::string_view name, int64_t least, int64_t most,
                       std::vector<int32_t> &list, std::string &error) const {
  const Given *found = find(name);
  if (!found)
    return true;
  list.clear();
  for (std::string_view rest = found->value;;) {
    size_t comma = rest.find(',');
    int64_t value;
    if (!parseNumber(name, rest.substr(0, comma), least, most, value, error))
      return false;
    list.push_back(static_cast<int32_t>(value));
    if (comma == std::string_view::npos)
      return true;
    rest.remove_prefix(comma + 1);
  }
}

std::string gptc::host::helpText(std::string_view usage,
                                 std::span<const OptionSpec> specs) {
  std::string text(usage);
  text += "\noptions:\n";
  for (const OptionSpec &spec : specs)
    text += fmt::format("  {:<22} {}\n",
                        fmt::format("{} {}", spec.name, spec.value), spec.help);
  return text;
}

void gptc::host::say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool gptc::host::put(std::string_view text, std::string &error) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0)
    return true;
  error = fmt::format("standard output: cannot write: {}", strerror(errno));
  return false;
}

int gptc::host::report(std::string_view tool, std::string_view message,
                       int status) {
  say(fmt::format("{}: error: {}\n", tool, message));
  return status;
}

std::optional<Options>
gptc::host::commandLine(std::string_view tool, std::string_view usage,
                        std::span<const OptionSpec> specs, int argc,
                        const char *const *argv, int &status) {
  std::string error;
  auto options = Options::parse(std::span(argv + 1, argv + argc), specs, error);
  status = 0;
  if (!options)
    status = report(tool, error, 2);
  else if (options->has("--help") || options->has("--version"))
    status = put(options->has("--help")
                     ? helpText(usage, specs)
                     : fmt::format("{} {}\n", tool, GPTC_VERSION),
                 error)
                 ? 0
                 : report(tool, error, 1);
  else
    return options;
  return std::nullopt;
}
