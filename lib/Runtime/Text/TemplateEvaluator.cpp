//===- TemplateEvaluator.cpp - Running a chat template --------------------===//
//
// Statements and the kinds of expressions. What they do with values is in
// TemplateOperators.cpp and TemplateFilters.cpp.
//
//===----------------------------------------------------------------------===//
#include "TemplateEvaluator.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

using Kind = Expression::Kind;

Value Evaluator::failAt(unsigned line, std::string message) {
  if (error.empty())
    error = fmt::format("line {}: {}", line, message);
  return Value();
}

bool Evaluator::spend(uint64_t work) {
  if (work > workLeft)
    failAt(currentLine,
           "the template does too much work for this conversation");
  workLeft -= std::min(work, workLeft);
  return !failed();
}

bool Evaluator::spendSearch(const Text &text, const Text &pattern) {
  uint64_t n = text.bytes.size(), m = pattern.bytes.size();
  return spend(n + n / 64 * m);
}

Value Evaluator::makeText(Text text) {
  return spend(2 * text.bytes.size()) ? Value(std::move(text)) : Value();
}

Value Evaluator::makeList(List list) {
  return spend(40 * list.size()) ? Value(std::move(list)) : Value();
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool Evaluator::run(const Body &body, Text &out) {
  execute(body, out);
  return !failed();
}

Evaluator::Flow Evaluator::execute(const Body &body, Text &out) {
  for (const Statement &statement : body) {
    currentLine = statement.line;
    spend(1);
    Flow flow = Flow::Next;
    switch (statement.kind) {
    case Statement::Data:
      if (spend(statement.text.size()))
        out.append(Text(statement.text, true));
      break;
    case Statement::Print: {
      Value value = evaluate(*statement.expression);
      if (Text text = toText(*statement.expression, value);
          !failed() && spend(text.bytes.size()))
        out.append(text);
      break;
    }
    case Statement::If:
      flow = executeIf(statement, out);
      break;
    case Statement::For:
      flow = executeFor(statement, out);
      break;
    case Statement::Set:
      executeSet(statement);
      break;
    case Statement::Break:
    case Statement::Continue:
      if (scopes.size() == 1)
        failAt(statement.line, "break and continue stand in no loop");
      flow = statement.kind == Statement::Break ? Flow::Break : Flow::Continue;
      break;
    }
    if (failed())
      return Flow::Stop;
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Evaluator::Flow Evaluator::executeIf(const Statement &statement, Text &out) {
  for (const Branch &branch : statement.branches) {
    if (branch.condition && !isTrue(evaluate(*branch.condition)))
      continue;
    return failed() ? Flow::Stop : execute(branch.body, out);
  }
  return Flow::Next;
}

static void setMember(Dict &dict, std::string_view name, Value value) {
  for (auto &[key, old] : dict)
    if (key == name) {
      old = std::move(value);
      return;
    }
  dict.emplace_back(name, std::move(value));
}

void Evaluator::executeSet(const Statement &statement) {
  Value value = evaluate(*statement.expression);
  if (failed())
    return;
  if (statement.names.size() == 1)
    return setMember(scopes.back(), statement.names[0], std::move(value));
  if (value.space()) {
    failAt(statement.line, "a namespace cannot be stored in a namespace");
    return;
  }
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    for (auto &[name, space] : *scope)
      if (name == statement.names[0] && space.space())
        return setMember(space.space()->members, statement.names[1],
                         std::move(value));
  failAt(statement.line,
         fmt::format("'{}' is no namespace", statement.names[0]));
}

bool Evaluator::bindItem(const Statement &loop, const Value &item) {
  if (loop.names.size() == 1) {
    setMember(scopes.back(), loop.names[0], item);
    return true;
  }
  const List *pair = item.list();
  if (!pair || pair->size() != 2) {
    failAt(loop.line, "expected pairs for the two names of the loop");
    return false;
  }
  setMember(scopes.back(), loop.names[0], (*pair)[0]);
  setMember(scopes.back(), loop.names[1], (*pair)[1]);
  return true;
}

void Evaluator::bindLoop(const List &items, size_t index) {
  int64_t count = int64_t(items.size()), at = int64_t(index);
  Dict loop;
  loop.emplace_back("index0", Value(at));
  loop.emplace_back("index", Value(at + 1));
  loop.emplace_back("revindex", Value(count - at));
  loop.emplace_back("revindex0", Value(count - at - 1));
  loop.emplace_back("first", Value(at == 0));
  loop.emplace_back("last", Value(at + 1 == count));
  loop.emplace_back("length", Value(count));
  if (at > 0)
    loop.emplace_back("previtem", items[index - 1]);
  if (at + 1 < count)
    loop.emplace_back("nextitem", items[index + 1]);
  setMember(scopes.back(), "loop", Value(std::move(loop)));
}

Evaluator::Flow Evaluator::executeFor(const Statement &loop, Text &out) {
  Value over = evaluate(*loop.expression);
  List items;
  if (failed())
    return Flow::Stop;
  if (!itemsOf(over, items)) {
    failAt(loop.line,
           fmt::format("expected a list to loop over, got {}", kindName(over)));
    return Flow::Stop;
  }
  spend(40 * items.size());
  scopes.emplace_back();
  if (loop.filter)
    std::erase_if(items, [&](const Value &item) {
      return failed() || !bindItem(loop, item) ||
             !isTrue(evaluate(*loop.filter));
    });
  // By Jinja's rule the else is for loops of which no round came to its end.
  bool completed = false;
  for (size_t i = 0; i < items.size() && !failed(); ++i) {
    scopes.back().clear();
    bindLoop(items, i);
    if (!bindItem(loop, items[i]))
      break;
    Flow flow = execute(loop.branches[0].body, out);
    completed |= flow == Flow::Next;
    if (flow == Flow::Break)
      break;
  }
  scopes.pop_back();
  if (!completed && loop.branches.size() > 1 && !failed())
    return execute(loop.branches[1].body, out);
  return failed() ? Flow::Stop : Flow::Next;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Value Evaluator::lookUp(const Expression &e) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    spend(scope->size() / 8);
    for (const auto &[name, value] : *scope)
      if (name == e.name)
        return value;
  }
  return Value(Undefined{e.name});
}

Value Evaluator::evaluate(const Expression &e) {
  currentLine = e.line;
  if (!spend(1))
    return Value();
  switch (e.kind) {
  case Kind::String:
    return makeText(Text(e.name, true));
  case Kind::Integer:
    return Value(e.value);
  case Kind::Boolean:
    return Value(e.value != 0);
  case Kind::None:
    return Value(nullptr);
  case Kind::Name:
    return lookUp(e);
  case Kind::Slice:
    return slice(e);
  case Kind::Call:
    return call(e);
  case Kind::Filter:
    return filter(e);
  case Kind::Test:
    return test(e);
  case Kind::And:
  case Kind::Or: {
    Value left = evaluate(*e.operands[0]);
    return isTrue(left) == (e.kind == Kind::Or) ? left
                                                : evaluate(*e.operands[1]);
  }
  case Kind::Conditional:
    if (isTrue(evaluate(*e.operands[0])))
      return evaluate(*e.operands[1]);
    return e.operands[2] ? evaluate(*e.operands[2]) : Value();
  default:
    return evaluateOperands(e);
  }
}

/// The kinds that need the values of all their operands.
Value Evaluator::evaluateOperands(const Expression &e) {
  List values;
  for (const ExpressionPtr &operand : e.operands) {
    values.push_back(evaluate(*operand));
    if (failed())
      return Value();
  }
  switch (e.kind) {
  case Kind::List:
  case Kind::Dict: {
    if (std::ranges::any_of(values, [](auto &v) { return v.space(); }))
      return fail(e, "a namespace cannot be stored in a list or a dict");
    if (std::ranges::any_of(values,
                            [](auto &v) { return v.nesting >= maxDepth; }))
      return fail(e,
                  fmt::format("more than {} nested lists or dicts", maxDepth));
    if (e.kind == Kind::List)
      return makeList(std::move(values));
    Dict dict;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      if (!values[i].text())
        return fail(e, "expected a string as key of a dict");
      setMember(dict, values[i].text()->bytes, values[i + 1]);
    }
    return Value(std::move(dict));
  }
  case Kind::Attribute:
    return attribute(e, values[0]);
  case Kind::Index:
    return index(e, values[0], values[1]);
  case Kind::Not:
    return Value(!isTrue(values[0]));
  case Kind::Negate:
    if (auto number = values[0].integer())
      return Value(-*number);
    return fail(e, fmt::format("expected a number after '-', got {}",
                               kindName(values[0])));
  case Kind::Arithmetic:
    return arithmetic(e, values[0], values[1]);
  case Kind::Concatenate: {
    Text text = toText(e, values[0]);
    text.append(toText(e, values[1]));
    return makeText(std::move(text));
  }
  default:
    return compare(e, values[0], values[1]);
  }
}

} // namespace gptc::text::chat
