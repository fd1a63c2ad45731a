//===- OptionsTest.cpp - Command lines ------------------------------------===//

#include "gptc/Runtime/Host/Options.h"
#include <gtest/gtest.h>

using namespace gptc::host;

namespace {

constexpr OptionSpec specs[] = {{"--tokens", "1,2,3", ""},
                                {"--threads", "N", ""},
                                {"--top-p", "P", ""},
                                {"-n", "N", ""},
                                {"--json", "", ""}};

std::optional<Options> parse(std::vector<const char *> line,
                             std::string &error) {
  return Options::parse(line, specs, error);
}

TEST(Options, ValuesFlagsAndPositionals) {
  std::string error;
  auto options = parse({"dir", "--tokens=1,-2", "-n", "5", "--json", "--top-p",
                        "0.5", "-", "-n", "6"},
                       error);
  ASSERT_TRUE(options) << error;
  EXPECT_EQ(options->positional, (std::vector<std::string>{"dir", "-"}));
  EXPECT_TRUE(options->has("--json"));
  std::vector<int32_t> tokens;
  EXPECT_TRUE(options->integers("--tokens", -5, 5, tokens, error));
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, -2}));
  int64_t n = 0, threads = 7;
  double p = 1;
  EXPECT_TRUE(options->integer("-n", 0, 10, n, error));
  EXPECT_TRUE(options->integer("--threads", 0, 10, threads, error));
  EXPECT_TRUE(options->real("--top-p", 0, 1, p, error));
  EXPECT_EQ(n, 6) << "the last one counts";
  EXPECT_EQ(threads, 7) << "an absent option leaves the default";
  EXPECT_EQ(p, 0.5);
}

TEST(Options, Refusals) {
  const std::pair<std::vector<const char *>, const char *> cases[] = {
      {{"--token", "1"}, "unknown option '--token', did you mean '--tokens'?"},
      {{"--xyzzyxyzzy"}, "unknown option '--xyzzyxyzzy'; --help lists them"},
      {{"--json=1"}, "option '--json' takes no value"},
      {{"--tokens"}, "option '--tokens' expects 1,2,3"}};
  for (const auto &[line, message] : cases) {
    std::string error;
    EXPECT_FALSE(parse(line, error));
    EXPECT_EQ(error, message);
  }
  for (const char *bad : {"", ",", "1,", "1,,2", "1 ", "x", "99999999999"}) {
    std::string error;
    std::vector<int32_t> list;
    auto options = parse({"--tokens", bad}, error);
    ASSERT_TRUE(options);
    EXPECT_FALSE(options->integers("--tokens", 0, 100, list, error)) << bad;
  }
  std::string error;
  double p = 0;
  EXPECT_FALSE(
      parse({"--top-p", "nan"}, error)->real("--top-p", 0, 1, p, error));
}

} // namespace
