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

TEST(ParseGuard, OperatorsOfOneExpressionCount) {
  std::string error;
  EXPECT_FALSE(bracketDepthOk(std::string(2000, '-') + "1", 9, error));
  std::string sum = "(1", list = "[1";
  for (int i = 0; i < 2000; ++i) {
    sum += " +\n 1";
    list += ", -1.0e-5";
  }
  EXPECT_FALSE(bracketDepthOk(sum, 9, error));
  EXPECT_TRUE(bracketDepthOk(list, 9, error)) << error;
}

TEST(ParseGuard, ChainsOfAliasesCount) {
  std::string chain = "#a0 = 1\n", flat = chain, error;
  for (int i = 1; i < 20; ++i) {
    std::string define = "#a" + std::to_string(i) + " = [#a";
    chain += define + std::to_string(i - 1) + "]\n";
    flat += define + "0, #a0]\n";
  }
  EXPECT_FALSE(bracketDepthOk(chain, 10, error));
  EXPECT_EQ(error.substr(0, 5), "11:9:");
  EXPECT_TRUE(bracketDepthOk(chain, 20, error));
  EXPECT_TRUE(bracketDepthOk(flat, 2, error));
  for (int i = 0; i < 99; ++i) // uses outside of definitions
    flat += "f() {a = #a19, b = #a18}\n";
  EXPECT_TRUE(bracketDepthOk(flat, 3, error));
}

// Each of these took 16 GB, or ended the process, before its type was checked.
TEST(ParseGuard, OpsThatAreAsLongAsTheirTypeSays) {
  std::string error;
  EXPECT_FALSE(bracketDepthOk(
      "\n  %t = tensor.from_elements %a : tensor<2147483647xf32>", 9, error));
  EXPECT_EQ(error.substr(0, 5), "2:8: ");
  EXPECT_NE(error.find("tensor.from_elements"), std::string::npos) << error;
  EXPECT_FALSE(bracketDepthOk("vector.from_elements", 9, error));
  EXPECT_FALSE(bracketDepthOk("%0:4 = vector.to_elements %v", 9, error));
  EXPECT_TRUE(bracketDepthOk("%tensor.from_elements = tensor.splat %a // "
                             "tensor.from_elements\n\"tensor.from_elements\"()",
                             9, error))
      << error;
}
} // namespace
