//===- TextFixtures.h - Vocabularies for the tests of the Text library ----===//
#ifndef GPTC_TEST_UNIT_TEXT_TEXTFIXTURES_H
#define GPTC_TEST_UNIT_TEXT_TEXTFIXTURES_H

#include "gptc/Runtime/Text/Text.h"
#include <nlohmann/json.hpp>

namespace gptc::text::test {

/// Empty if the file cannot be read.
std::string readFile(const std::string &path);

/// A JSON file under the golden folder; null if it cannot be read.
nlohmann::json golden(const std::string &path);

/// The tokenizer in a GGUF file's metadata.
std::optional<TokenizerData> tokenizerDataFromGgufFile(const std::string &path,
                                                       std::string &error);

/// From the folder and file that the environment names; empty if it names
/// none (the test is skipped then).
std::optional<Tokenizer> gpt2Tokenizer();
std::optional<Tokenizer> smollm2Tokenizer();

/// All 256 bytes as ids 0 to 255 in order, the merges given as strings of
/// bytes, whose results get the next ids, then the control tokens "<|end|>"
/// (eos) and "<|im_start|>", "<|im_end|>", and the user-defined "[[u]]".
TokenizerData
tinyData(const std::vector<std::pair<std::string, std::string>> &merges,
         const std::string &pre = "gpt2");
Tokenizer
tinyTokenizer(const std::vector<std::pair<std::string, std::string>> &merges,
              const std::string &pre = "gpt2");

} // namespace gptc::text::test

#endif // GPTC_TEST_UNIT_TEXT_TEXTFIXTURES_H
