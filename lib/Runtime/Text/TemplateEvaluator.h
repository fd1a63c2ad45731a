//===- TemplateEvaluator.h - Running a chat template ----------------------===//
//
// Walks the tree of TemplateSyntax.h. Semantics are those of Jinja 3 on Python
// values. Each step of the walk spends a unit of work (TemplateWork.h), what is
// done with the values spends its own. After the first error all evaluation
// stops with Undefined.
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
  Evaluator(Dict globals, Work &work) : work(work) {
    scopes.push_back({std::move(globals)});
  }
  /// False with a message that names the line.
  bool run(const Body &body, Text &out);

private:
  enum class Flow { Next, Break, Continue, Stop };
  struct Scope {
    Dict names;
    /// Of a loop in a round: what it goes over, and where it is.
    const List *items = nullptr;
    size_t index = 0;
  };

  Flow execute(const Body &body, Text &out);
  Flow executeFor(const Statement &loop, Text &out);
  Flow executeIf(const Statement &statement, Text &out);
  void executeSet(const Statement &statement);
  bool loopItems(const Statement &loop, const Value &over, List &items);
  bool bindItem(const Statement &loop, const Value &item);
  Value bindLoop(Scope &scope);

  Value evaluate(const Expression &e);
  Value evaluateOperands(const Expression &e);
  Value makeContainer(const Expression &e, std::vector<Value> values);
  Value lookUp(const Expression &e);
  Value attribute(const Expression &e, const Value &object);
  Value index(const Expression &e, const Value &object, const Value &key);
  Value slice(const Expression &e);
  Value call(const Expression &e);
  Value makeNamespace(const Expression &e, Arguments arguments);
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
  Value split(const Expression &e, const Text &text,
              const Arguments &arguments);
  Value replace(const Expression &e, const Text &text, const Text &from,
                const Text &to);
  Value join(const Expression &e, const Value &value, const Text &between);
  Arguments argumentsOf(const Expression &e, size_t first);
  bool contains(const Expression &e, const Value &container, const Value &item);

  /// Appends what `{{ value }}` writes.
  void write(const Expression &e, const Value &value, Text &out);
  Text toText(const Expression &e, const Value &value) {
    Text text;
    write(e, value, text);
    return text;
  }

  /// What is not supported, or makes no sense.
  Value fail(const Expression &e, std::string_view message) {
    return failAt(e.line, message);
  }
  Value failAt(unsigned line, std::string_view message);
  bool failed() const { return work.failed(); }

  Work &work;
  std::vector<Scope> scopes;
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEEVALUATOR_H
