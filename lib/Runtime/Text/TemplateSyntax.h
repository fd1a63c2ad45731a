//===- TemplateSyntax.h - The syntax tree of a chat template --------------===//
//
// The subset of Jinja that docs/Text.md describes. A tree is at most
// `maxDepth` deep, so that walking it by recursion is bounded.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gptc::text::chat {

constexpr unsigned maxDepth = 100;

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum Kind : uint8_t {
    String,  ///< name: the text
    Integer, ///< value
    Boolean, ///< value
    None,
    Name,        ///< name
    List,        ///< operands: the items
    Dict,        ///< operands: key, value, key, ...
    Attribute,   ///< operands: object; name
    Index,       ///< operands: object, key
    Slice,       ///< operands: object, from, to, step, each of them may be null
    Call,        ///< operands: callee, arguments
    Filter,      ///< operands: value, arguments; name
    Test,        ///< operands: value, arguments; name; value 1: negated
    Not,         ///< operands: one
    Negate,      ///< operands: one
    And,         ///< operands: two
    Or,          ///< operands: two
    Arithmetic,  ///< operands: two; name: + - * / // %
    Concatenate, ///< operands: two
    Compare,     ///< operands: two; name: == != < <= > >= in, "not in"
    Conditional, ///< operands: condition, then, else (may be null)
  } kind;
  unsigned line;
  unsigned depth = 1;
  std::string name;
  int64_t value = 0;
  std::vector<ExpressionPtr> operands;
  /// Of calls and filters: the names of the last operands, if any.
  std::vector<std::string> keywords;
};

struct Statement;
using Body = std::vector<Statement>;

struct Branch {
  ExpressionPtr condition; ///< null: else
  Body body;
};

struct Statement {
  enum Kind : uint8_t { Data, Print, If, For, Set, Break, Continue } kind;
  unsigned line;
  std::string text = {}; ///< Data
  /// Print: what; For: over what; Set: to what.
  ExpressionPtr expression = nullptr;
  ExpressionPtr filter = nullptr; ///< For: which items, or null
  /// For: one or two; Set: name [attribute].
  std::vector<std::string> names = {};
  std::vector<Branch> branches = {}; ///< If; For: the body, then the else
};

/// Empty with a message that names the line.
std::optional<Body> parseTemplate(std::string_view source, std::string &error);

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H
