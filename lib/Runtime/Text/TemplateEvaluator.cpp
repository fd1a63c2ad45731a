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

Value Evaluator::failAt(unsigned line, std::string_view message) {
  work.fail(line, fmt::format("{}; give the whole prompt as text", message));
  return Value();
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
    work.line = statement.line;
    work.spend(1);
    Flow flow = Flow::Next;
    switch (statement.kind) {
    case Statement::Data:
      out.append(work, statement.text, true);
      break;
    case Statement::Print:
      write(*statement.expression, evaluate(*statement.expression), out);
      break;
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

void Evaluator::executeSet(const Statement &statement) {
  Value value = evaluate(*statement.expression);
  if (failed())
    return;
  if (statement.names.size() == 1)
    return scopes.back().names.set(work, statement.names[0], std::move(value));
  if (value.space()) {
    failAt(statement.line, "a namespace cannot be stored in a namespace");
    return;
  }
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (const Value *found = scope->names.find(work, statement.names[0]);
        found && found->space())
      return found->space()->members.set(work, statement.names[1],
                                         std::move(value));
  failAt(statement.line,
         fmt::format("'{}' is no namespace", statement.names[0]));
}

bool Evaluator::bindItem(const Statement &loop, const Value &item) {
  Dict &names = scopes.back().names;
  if (loop.names.size() == 1) {
    names.set(work, loop.names[0], item);
    return true;
  }
  const List *pair = item.list();
  if (!pair || pair->size() != 2) {
    failAt(loop.line, "expected pairs for the two names of the loop");
    return false;
  }
  names.set(work, loop.names[0], (*pair)[0]);
  names.set(work, loop.names[1], (*pair)[1]);
  return true;
}

/// The value of `loop`, made when a round first asks for it.
Value Evaluator::bindLoop(Scope &scope) {
  const List &items = *scope.items;
  int64_t count = int64_t(items.size()), at = int64_t(scope.index);
  Dict members;
  members.add(work, "index0", Value(at));
  members.add(work, "index", Value(at + 1));
  members.add(work, "revindex", Value(count - at));
  members.add(work, "revindex0", Value(count - at - 1));
  members.add(work, "first", Value(at == 0));
  members.add(work, "last", Value(at + 1 == count));
  members.add(work, "length", Value(count));
  if (at > 0)
    members.add(work, "previtem", items[scope.index - 1]);
  if (at + 1 < count)
    members.add(work, "nextitem", items[scope.index + 1]);
  Value loop(work, std::move(members));
  scope.names.add(work, "loop", loop);
  return loop;
}

/// The items of a loop that is not simply over a list.
bool Evaluator::loopItems(const Statement &loop, const Value &over,
                          List &items) {
  List all;
  if (!itemsOf(work, over, all)) {
    failAt(loop.line, fmt::format("expected a list to loop over, got {}",
                                  describeItems(over)));
    return false;
  }
  if (!loop.filter) {
    items = std::move(all);
    return !failed();
  }
  scopes.emplace_back();
  for (size_t i = 0; i < all.size() && !failed(); ++i)
    if (bindItem(loop, all[i]) && isTrue(evaluate(*loop.filter)))
      items.push(work, all[i]);
  scopes.pop_back();
  return !failed();
}

Evaluator::Flow Evaluator::executeFor(const Statement &loop, Text &out) {
  Value over = evaluate(*loop.expression); // which the list lives in
  const List *items = loop.filter ? nullptr : over.list();
  List made;
  if (failed() || (!items && !loopItems(loop, over, made)))
    return Flow::Stop;
  if (!items)
    items = &made;
  scopes.emplace_back();
  // By Jinja's rule the else is for loops of which no round came to its end.
  bool completed = false;
  for (size_t i = 0; i < items->size() && !failed(); ++i) {
    scopes.back() = {Dict(), items, i};
    if (!bindItem(loop, (*items)[i]))
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
    if (const Value *found = scope->names.find(work, e.name))
      return *found;
    if (scope->items && e.name == "loop")
      return bindLoop(*scope);
  }
  return Value(Undefined(e.name));
}

Value Evaluator::evaluate(const Expression &e) {
  work.line = e.line;
  if (!work.spend(1))
    return Value();
  switch (e.kind) {
  case Kind::String:
    return Value(work, Text(work, e.name, true));
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

Value Evaluator::makeContainer(const Expression &e, std::vector<Value> values) {
  for (const Value &value : values) {
    if (value.space())
      return fail(e, "a namespace cannot be stored in a list or a dict");
    if (value.nesting >= maxDepth)
      return fail(e,
                  fmt::format("more than {} nested lists or dicts", maxDepth));
  }
  if (e.kind == Kind::List) {
    List list;
    for (Value &value : values)
      list.push(work, std::move(value));
    return Value(work, std::move(list));
  }
  Dict dict;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    if (!values[i].text())
      return fail(e, "expected a string as key of a dict");
    dict.set(work, values[i].text()->bytes(), values[i + 1]);
  }
  return Value(work, std::move(dict));
}

/// The kinds that need the values of all their operands.
Value Evaluator::evaluateOperands(const Expression &e) {
  std::vector<Value> values;
  for (const ExpressionPtr &operand : e.operands) {
    values.push_back(evaluate(*operand));
    if (failed())
      return Value();
  }
  switch (e.kind) {
  case Kind::List:
  case Kind::Dict:
    return makeContainer(e, std::move(values));
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
    write(e, values[1], text);
    return Value(work, std::move(text));
  }
  default:
    return compare(e, values[0], values[1]);
  }
}

} // namespace gptc::text::chat
