//===- JsonTest.cpp - JSON from outside -----------------------------------===//

#include "gptc/Checkpoint/Json.h"
#include "TestFiles.h"

using namespace gptc::checkpoint;

static std::string errorOf(std::string_view text) {
  Expected<json::Value> value = json::parse(text, "config.json");
  return value ? "" : value.error().message;
}

static bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST(Json, KindsOfValues) {
  auto value = json::parse(
      R"({"i": -3, "u": 18446744073709551615, "d": 1e-5, "s": "\u00e9",
          "b": true, "n": null, "a": [1, [2]], "o": {"x": 1}})",
      "config.json");
  ASSERT_TRUE(value);
  json::Reader reader(*value, "config.json");
  EXPECT_EQ(*reader.integer("i"), -3);
  EXPECT_EQ(*reader.real("i"), -3.0);
  EXPECT_EQ(*reader.real("d"), 1e-5);
  EXPECT_EQ(*reader.string("s"), "\xc3\xa9");
  EXPECT_TRUE(*reader.boolean("b"));
  EXPECT_EQ((*reader.array("a"))->size(), 2u);
  EXPECT_EQ(*reader.child("o")->integer("x"), 1);
  EXPECT_EQ(*reader.integerOr("n", 7), 7);
  EXPECT_EQ(*reader.integerOr("absent", 7), 7);
  EXPECT_EQ(reader.integer("u").error().message,
            "config.json: key 'u': expected an integer, got integer "
            "18446744073709551615");
}

TEST(Json, ReaderNamesKeyExpectedAndGot) {
  auto value =
      json::parse(R"({"rope_scaling": {"factor": "8"}, "n_head": 1.5})", "c");
  ASSERT_TRUE(value);
  json::Reader reader(*value, "c");
  EXPECT_EQ(reader.child("rope_scaling")->real("factor").error().message,
            "c: key 'rope_scaling.factor': expected a number, got string '8'");
  EXPECT_EQ(reader.integer("n_head").error().message,
            "c: key 'n_head': expected an integer, got number 1.5");
  EXPECT_EQ(reader.integerOr("n_head", 1).error().message,
            "c: key 'n_head': expected an integer, got number 1.5");
  EXPECT_EQ(reader.string("model_type").error().message,
            "c: key 'model_type': expected a string, got no such key");
  EXPECT_FALSE(reader.child("n_head"));
  EXPECT_FALSE(reader.array("rope_scaling"));
  EXPECT_FALSE(reader.boolean("n_head"));
}

TEST(Json, DuplicateKeys) {
  EXPECT_EQ(errorOf(R"({"a": 1, "b": {"x": 1, "y": 2, "x": 3}})"),
            "config.json: duplicate key 'x'");
  EXPECT_EQ(errorOf(R"({"a": {"x": 1}, "b": {"x": 1}})"), "");
}

TEST(Json, Depth) {
  EXPECT_EQ(errorOf(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(errorOf(std::string(65, '[') + std::string(65, ']')),
            "config.json: nested deeper than 64 levels");
  EXPECT_EQ(errorOf(std::string(100000, '[')),
            "config.json: nested deeper than 64 levels");
}

TEST(Json, NumberOfValues) {
  std::string many = "[0";
  for (int i = 0; i < 1 << 19; ++i)
    many += ",0";
  EXPECT_EQ(errorOf(many + "]"), "config.json: more than 524288 values");
}

TEST(Json, TokenLength) {
  constexpr size_t limit = 1 << 23;
  EXPECT_EQ(errorOf('"' + std::string(limit, 'a') + '"'), "");
  EXPECT_EQ(errorOf('"' + std::string(limit + 1, 'a')),
            "config.json: a string or number of more than 8388608 bytes");
  EXPECT_EQ(errorOf(std::string(limit + 1, '1')),
            "config.json: a string or number of more than 8388608 bytes");
  EXPECT_EQ(errorOf(R"(["\\", "\"", "\\\"", 1, "[,"])"), "");
}

TEST(Json, Malformed) {
  for (const char *text :
       {"", " ", "{", "{\"a\"}", "{\"a\": }", "[1,]", "[1] 2", "nul", "NaN",
        "1e999", "\"\xff\"", "\"\x01\"", "{'a': 1}", "01", "[1 2]"})
    EXPECT_TRUE(contains(errorOf(text), "config.json: not valid json at byte"))
        << text << ": " << errorOf(text);
  EXPECT_TRUE(contains(errorOf("[1 2]"), "at byte 4"));
}
