//===- TemplateEvaluator.h - Running a chat template ----------------------===//
//
// Walks the tree of TemplateSyntax.h. Semantics are those of Jinja 3 on Python
// values. Work is counted: operations, and bytes of strings and items of lists
// as they are made; so neither time nor memory depends on anything but the
// limit. After the first error all evaluation stops with Undefined.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATEEVALUATOR_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATEEVALUATOR_H

#include "TemplateSyntax.h"
#include "TemplateValue.h"

namespace gptc::text::chat {

/// Arguments of a filter, test, function or method.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Evaluator {
public:
  Evaluator(Dict globals, uint64_t workLimit, std::string &error)
      : error(error), workLeft(workLimit) {
    scopes.emplace_back(std::move(globals));
  }
  /// False with a message that names the line.
  bool run(const Body &body, Text &out);

private:
  enum class Flow { Next, Break, Continue, Stop };

  Flow execute(const Body &body, Text &out);
  Flow executeFor(const Statement &loop, Text &out);
  Flow executeIf(const Statement &statement, Text &out);
  void executeSet(const Statement &statement);
  bool bindItem(const Statement &loop, const Value &item);
  void bindLoop(const List &items, size_t index);

  Value evaluate(const Expression &e);
  Value evaluateOperands(const Expression &e);
  Value lookUp(const Expression &e);
  Value attribute(const Expression &e, const Value &object);
  Value index(const Expression &e, const Value &object, const Value &key);
  Value slice(const Expression &e);
  Value call(const Expression &e);
  Value filter(const Expression &e);
  Value test(const Expression &e);
  Value arithmetic(const Expression &e, const Value &left, const Value &right);
  Value compare(const Expression &e, const Value &left, const Value &right);
  Value method(const Expression &e, std::string_view name, const Value &object,
               const Arguments &arguments);
  Value textMethod(const Expression &e, std::string_view name, const Text &text,
                   const Arguments &arguments);
  Value dictMethod(const Expression &e, std::string_view name, const Dict &dict,
                   const Arguments &arguments);
  Value applyFilter(const Expression &e, const Value &value,
                    const Arguments &arguments);
  Value split(const Text &text, const Arguments &arguments);
  Value replace(const Text &text, const Text &from, const Text &to);
  Value join(const Expression &e, const Value &value, const Text &between);
  Arguments argumentsOf(const Expression &e, size_t first);
  bool equal(const Value &left, const Value &right);
  bool contains(const Expression &e, const Value &container, const Value &item);

  /// What `{{ value }}` writes.
  Text toText(const Expression &e, const Value &value);
  Value makeText(Text text);
  Value makeList(List list);

  Value fail(const Expression &e, std::string message) {
    return failAt(e.line, std::move(message));
  }
  Value failAt(unsigned line, std::string message);
  bool failed() const { return !error.empty(); }
  /// Counts work; false when there is none left.
  bool spend(uint64_t work);
  /// For looking a pattern up in a text.
  bool spendSearch(const Text &text, const Text &pattern);

  std::string &error;
  uint64_t workLeft;
  unsigned currentLine = 1;
  std::vector<Dict> scopes;
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEEVALUATOR_H
