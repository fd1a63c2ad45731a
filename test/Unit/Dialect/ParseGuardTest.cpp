//===- ParseGuardTest.cpp - bracket depth ---------------------------------===//
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include <gtest/gtest.h>

using gptc::bracketDepthOk;

namespace {
TEST(ParseGuard, DepthIsCountedUpToTheLimit) {
  std::string error;
  EXPECT_TRUE(bracketDepthOk("([{<>}])", 4, error));
  EXPECT_FALSE(bracketDepthOk("a\n ([{<>}])", 3, error));
  EXPECT_EQ(error, "2:5: error: expected brackets nested at most 3 deep, "
                   "got more");
}

TEST(ParseGuard, ClosedBracketsDoNotCount) {
  std::string text, error;
  for (int i = 0; i < 1000; ++i)
    text += "() -> ()\n";
  EXPECT_TRUE(bracketDepthOk(text, 1, error));
}

TEST(ParseGuard, ArrowClosesNothing) {
  std::string text, error;
  for (int i = 0; i < 10; ++i)
    text += "(->";
  EXPECT_FALSE(bracketDepthOk(text, 9, error));
}

TEST(ParseGuard, StringsAndCommentsDoNotCount) {
  std::string error;
  EXPECT_TRUE(bracketDepthOk("\"((\\\"((\" // [[[\n()", 1, error));
  // An unfinished string ends with its line.
  EXPECT_FALSE(bracketDepthOk("\"((\n((", 1, error));
  // Endings within a string, an escape or a comment.
  for (const char *text : {"", "\"", "\"\\", "/", "//", "-"})
    EXPECT_TRUE(bracketDepthOk(text, 1, error)) << text;
}
} // namespace
