//===- TemplateLexer.h - Tokens of a chat template ------------------------===//
//
// Jinja's lexical rules with trim_blocks and lstrip_blocks on and
// keep_trailing_newline off, as chat templates are read everywhere: the line
// feed after a block tag or comment goes away, blanks between the start of a
// line and one too; `-` beside a tag takes all white space, `+` keeps it.
//
// Refuses: unclosed tags and strings, escapes other than \n \t \r \\ \' \",
// numbers with a fraction or above 10^15, names of more than 100 characters.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATELEXER_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATELEXER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gptc::text::chat {

struct Token {
  enum Kind : uint8_t {
    Data,       ///< text outside of tags
    BlockBegin, ///< {%
    BlockEnd,
    PrintBegin, ///< {{
    PrintEnd,
    Name,
    String,
    Integer,
    Operator,
    End,
  } kind;
  std::string text; ///< of data, names, strings (unquoted) and operators
  int64_t value = 0;
  unsigned line = 1;
};

/// Ends with a token of kind End. Empty with a message that names the line.
std::optional<std::vector<Token>> lexTemplate(std::string_view source,
                                              std::string &error);

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATELEXER_H
