//===- Options.h - Command lines of the tools that run packages -----------===//
//
// --name VALUE, --name=VALUE, flags and positional arguments; --help and
// --version everywhere. An unknown option is answered with the nearest known
// one. Errors are one lower case line; the exit status for them is 2.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_OPTIONS_H
#define GPTC_RUNTIME_HOST_OPTIONS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gptc::host {

struct OptionSpec {
  std::string_view name;  ///< "--tokens" or "-n"
  std::string_view value; ///< what it takes ("1,2,3"); empty: a flag
  std::string_view help;
};

class Options {
public:
  /// Empty with a message when the line does not fit `specs`.
  static std::optional<Options> parse(std::span<const char *const> arguments,
                                      std::span<const OptionSpec> specs,
                                      std::string &error);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of the option, or `otherwise`. The last one given counts.
  std::string get(std::string_view name, std::string_view otherwise = "") const;
  /// A decimal number in [least, most], or `otherwise` if the option is absent.
  /// False, with a message that names the option, for anything else.
  bool integer(std::string_view name, int64_t least, int64_t most,
               int64_t &value, std::string &error) const;
  bool real(std::string_view name, double least, double most, double &value,
            std::string &error) const;
  /// Comma-separated integers in [least, most]; an absent option leaves `list`.
  bool integers(std::string_view name, int64_t least, int64_t most,
                std::vector<int32_t> &list, std::string &error) const;

  std::vector<std::string> positional;

private:
  struct Given {
    std::string_view name;
    std::string value;
  };
  const Given *find(std::string_view name) const;
  std::vector<Given> given;
};

/// The arguments of a tool's main. Nothing when `status`, the exit status, is
/// settled: --help or --version has been answered, or an error printed.
std::optional<Options> commandLine(std::string_view tool,
                                   std::string_view usage,
                                   std::span<const OptionSpec> specs, int argc,
                                   const char *const *argv, int &status);

/// Writes to standard error. What cannot be written there is nobody's to read:
/// it is lost, without an error.
void say(std::string_view text);
/// Writes all of it to standard output at once; false with `error` if that
/// cannot take it.
bool put(std::string_view text, std::string &error);

/// Prints "TOOL: error: MESSAGE" to standard error; returns `status`.
int report(std::string_view tool, std::string_view message, int status);

/// The text of --help: the usage lines, then one line for each option.
std::string helpText(std::string_view usage, std::span<const OptionSpec> specs);

/// The candidate nearest to `name` by edit distance, or "" if none is near.
std::string_view nearest(std::string_view name,
                         std::span<const std::string_view> candidates);

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_OPTIONS_H
