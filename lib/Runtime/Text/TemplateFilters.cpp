//===- TemplateFilters.cpp - Filters, tests, functions and methods --------===//
//
// Those that chat templates use, with Python's meaning. All others are refused
// by name when they are reached.
//
//===----------------------------------------------------------------------===//
#include "TemplateEvaluator.h"
#include "Unicode.h"
#include "Utf8.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

using Kind = Expression::Kind;

Arguments Evaluator::argumentsOf(const Expression &e, size_t first) {
  Arguments arguments;
  size_t named = e.operands.size() - e.keywords.size();
  for (size_t i = first; i < e.operands.size() && !failed(); ++i) {
    Value value = evaluate(*e.operands[i]);
    if (i < named)
      arguments.positional.push_back(std::move(value));
    else
      arguments.named.emplace_back(e.keywords[i - named], std::move(value));
  }
  return arguments;
}

void Evaluator::write(const Expression &e, const Value &value, Text &out) {
  if (value.text())
    return out.append(work, *value.text());
  std::string text;
  if (value.undefined())
    return;
  if (value.isNone())
    text = "None";
  else if (const bool *boolean = value.boolean())
    text = *boolean ? "True" : "False";
  else if (auto number = value.integer())
    text = std::to_string(*number);
  else
    fail(e, fmt::format("writing {} out is not supported", kindName(value)));
  out.append(work, text, true);
}

/// What a Python set of characters, or white space if none is given, is
/// stripped off by.
static Text strip(Work &work, const Text &text, const Text *characters,
                  bool left, bool right) {
  if (!work.spend(text.size()))
    return Text();
  std::string_view view = text.bytes();
  if (!characters) {
    view = left ? trimLeft(view, isPythonSpace) : view;
    return text.slice(work, right ? trimRight(view, isPythonSpace) : view);
  }
  std::string_view set = characters->bytes();
  auto starts = text.characterStarts(work);
  auto isIn = [&](size_t i) {
    return work.spend(1 + set.size()) &&
           set.find(view.substr(starts[i], starts[i + 1] - starts[i])) !=
               std::string_view::npos;
  };
  size_t from = 0, to = starts.size() - 1;
  while (left && from < to && isIn(from))
    ++from;
  while (right && from < to && isIn(to - 1))
    --to;
  return text.slice(work, starts[from], starts[to] - starts[from]);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
static char upper(char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; }

/// The letters of English; false if there are others, whose cases this library
/// does not know.
static bool changeCase(Work &work, Text &text, std::string_view name) {
  bool wordStarts = true, ascii = true, all = name == "upper";
  bool none = name == "lower", words = name == "title";
  text.transform(work, [&](char c) {
    ascii &= uint8_t(c) < 0x80;
    bool isLetter = lower(c) != upper(c);
    char changed = all || (wordStarts && !none) ? upper(c) : lower(c);
    wordStarts = words && !isLetter;
    return changed;
  });
  return ascii;
}

Value Evaluator::split(const Expression &e, const Text &text,
                       const Arguments &arguments) {
  const auto &given = arguments.positional;
  const Text *by = given.empty() ? nullptr : given[0].text();
  std::optional<int64_t> most =
      given.size() > 1 ? given[1].integer() : std::optional<int64_t>(-1);
  if (!by || by->empty() || !most || given.size() > 2 ||
      !arguments.named.empty())
    return fail(e, "expected split(string) or split(string, number)");
  List parts;
  size_t at = 0;
  while (!failed() && *most != int64_t(parts.size())) {
    size_t found = text.find(work, *by, at);
    if (found == Text::npos)
      break;
    parts.push(work, Value(work, text.slice(work, at, found - at)));
    at = found + by->size();
  }
  parts.push(work, Value(work, text.slice(work, at, text.size() - at)));
  return Value(work, std::move(parts));
}

Value Evaluator::replace(const Expression &e, const Text &text,
                         const Text &from, const Text &to) {
  if (from.empty())
    return fail(e, "expected something to replace");
  Text result;
  size_t at = 0;
  while (!failed()) {
    size_t found = text.find(work, from, at);
    if (found == Text::npos)
      break;
    result.append(work, text, at, found - at);
    result.append(work, to);
    at = found + from.size();
  }
  result.append(work, text, at, text.size() - at);
  return Value(work, std::move(result));
}

Value Evaluator::join(const Expression &e, const Value &value,
                      const Text &between) {
  List items;
  if (!itemsOf(work, value, items))
    return fail(e, fmt::format("expected a list to join, got {}",
                               describeItems(value)));
  Text text;
  for (size_t i = 0; i < items.size() && !failed(); ++i) {
    if (i > 0)
      text.append(work, between);
    write(e, items[i], text);
  }
  return Value(work, std::move(text));
}

//===----------------------------------------------------------------------===//
// Functions and methods
//===----------------------------------------------------------------------===//

Value Evaluator::call(const Expression &e) {
  const Expression &callee = *e.operands[0];
  if (callee.kind == Kind::Attribute) {
    Value object = evaluate(*callee.operands[0]);
    Arguments arguments = argumentsOf(e, 1);
    return failed() ? Value() : method(e, callee.name, object, arguments);
  }
  if (callee.kind != Kind::Name)
    return fail(e, "only functions and methods can be called");
  Arguments arguments = argumentsOf(e, 1);
  if (failed())
    return Value();
  if (callee.name == "raise_exception") {
    bool one = arguments.positional.size() == 1 && arguments.named.empty();
    Text text = one ? toText(e, arguments.positional[0]) : Text();
    work.fail(e.line, fmt::format("the template refuses the conversation: {}",
                                  text.bytes().substr(0, 1000)));
    return Value();
  }
  if (callee.name == "namespace" && arguments.positional.empty())
    return makeNamespace(e, std::move(arguments));
  return fail(e, fmt::format("the function '{}' is not supported; expected "
                             "raise_exception or namespace",
                             callee.name));
}

Value Evaluator::makeNamespace(const Expression &e, Arguments arguments) {
  auto space = std::make_shared<Namespace>();
  for (auto &[name, value] : arguments.named) {
    if (value.space())
      return fail(e, "a namespace cannot be stored in a namespace");
    space->members.set(work, name, std::move(value));
  }
  Value result;
  if (work.spend(sizeof(Namespace)))
    result.data = std::move(space);
  return result;
}

Value Evaluator::method(const Expression &e, std::string_view name,
                        const Value &object, const Arguments &arguments) {
  if (const Undefined *undefined = object.undefined())
    return fail(e, fmt::format("'{}' is undefined", undefined->name));
  if (object.text())
    return textMethod(e, name, *object.text(), arguments);
  if (object.dict())
    return dictMethod(e, name, *object.dict(), arguments);
  return fail(e, fmt::format("the method '{}' of {} is not supported", name,
                             kindName(object)));
}

Value Evaluator::textMethod(const Expression &e, std::string_view name,
                            const Text &text, const Arguments &arguments) {
  const auto &given = arguments.positional;
  const Text *first = given.empty() ? nullptr : given[0].text();
  bool plain = arguments.named.empty();
  bool noArgument = given.empty() && plain;
  bool oneText = given.size() == 1 && first && plain;
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    if (noArgument || oneText)
      return Value(
          work, strip(work, text, first, name != "rstrip", name != "lstrip"));
  if (name == "split")
    return split(e, text, arguments);
  if (name == "startswith" && oneText)
    return Value(text.startsWith(work, *first));
  if (name == "endswith" && oneText)
    return Value(text.endsWith(work, *first));
  if (name == "replace" && given.size() == 2 && first && given[1].text() &&
      plain)
    return replace(e, text, *first, *given[1].text());
  if ((name == "upper" || name == "lower" || name == "title" ||
       name == "capitalize") &&
      noArgument) {
    Text changed = text.copy(work);
    return changeCase(work, changed, name)
               ? Value(work, std::move(changed))
               : fail(e, fmt::format("'{}' of letters beyond ASCII is not "
                                     "supported",
                                     name));
  }
  return fail(e, fmt::format("the method '{}' of a string, with these "
                             "arguments, is not supported",
                             name));
}

Value Evaluator::dictMethod(const Expression &e, std::string_view name,
                            const Dict &dict, const Arguments &arguments) {
  const auto &given = arguments.positional;
  if (name == "get" && (given.size() == 1 || given.size() == 2) &&
      given[0].text() && arguments.named.empty()) {
    if (const Value *found = dict.find(work, given[0].text()->bytes()))
      return *found;
    return given.size() == 2 ? given[1] : Value(nullptr);
  }
  bool noArgument = given.empty() && arguments.named.empty();
  if (noArgument && (name == "items" || name == "keys" || name == "values")) {
    List list;
    for (const auto &[key, value] : dict) {
      List pair;
      if (name != "values")
        pair.push(work, Value(work, Text(work, key, false)));
      if (name != "keys")
        pair.push(work, value);
      if (failed())
        break;
      list.push(work, name == "items" ? Value(work, std::move(pair)) : pair[0]);
    }
    return Value(work, std::move(list));
  }
  return fail(e, fmt::format("the method '{}' of a dict, with these arguments, "
                             "is not supported",
                             name));
}

//===----------------------------------------------------------------------===//
// Filters and tests
//===----------------------------------------------------------------------===//

Value Evaluator::filter(const Expression &e) {
  Value value = evaluate(*e.operands[0]);
  Arguments arguments = argumentsOf(e, 1);
  return failed() ? Value() : applyFilter(e, value, arguments);
}

Value Evaluator::applyFilter(const Expression &e, const Value &value,
                             const Arguments &arguments) {
  const std::string &name = e.name;
  const auto &given = arguments.positional;
  bool plain = arguments.named.empty();
  bool noArgument = given.empty() && plain;
  if (noArgument &&
      (name == "trim" || name == "string" || name == "safe" ||
       name == "upper" || name == "lower" || name == "capitalize")) {
    Text text = toText(e, value);
    if (name == "trim")
      return Value(work, strip(work, text, nullptr, true, true));
    if (failed() || name == "string" || name == "safe")
      return Value(work, std::move(text));
    return textMethod(e, name, text, arguments);
  }
  if (noArgument && (name == "length" || name == "count"))
    if (auto count = countItems(work, value))
      return Value(int64_t(*count));
  if (noArgument && (name == "first" || name == "last") &&
      (value.list() || value.text()))
    return index(e, value, Value(int64_t(name == "first" ? 0 : -1)));
  if (noArgument && name == "list")
    if (List items; itemsOf(work, value, items))
      return Value(work, std::move(items));
  if ((name == "default" || name == "d") && plain && given.size() <= 2) {
    bool alsoFalse = given.size() == 2 && isTrue(given[1]);
    bool missing = value.undefined() || (alsoFalse && !isTrue(value));
    return !missing ? value : given.empty() ? Value(work, Text()) : given[0];
  }
  const Text none;
  if (name == "join" && plain && given.size() <= 1 &&
      (given.empty() || given[0].text()))
    return join(e, value, given.empty() ? none : *given[0].text());
  if (name == "replace" && plain && given.size() == 2 && given[0].text() &&
      given[1].text()) {
    Text text = toText(e, value);
    return failed() ? Value()
                    : replace(e, text, *given[0].text(), *given[1].text());
  }
  return fail(e, fmt::format("the filter '{}' of {}, with these arguments, is "
                             "not supported",
                             name, kindName(value)));
}

Value Evaluator::test(const Expression &e) {
  Value value = evaluate(*e.operands[0]);
  Arguments arguments = argumentsOf(e, 1);
  if (failed())
    return Value();
  const std::string &name = e.name;
  const auto &given = arguments.positional;
  auto number = value.integer();
  std::optional<bool> holds;
  if (!arguments.named.empty() || given.size() > 1) {
    // No test takes more.
  } else if (given.size() == 1) {
    if (name == "equalto" || name == "eq")
      holds = equal(work, value, given[0]);
    else if (name == "ne")
      holds = !equal(work, value, given[0]);
    else if (name == "in")
      holds = contains(e, given[0], value);
    else if (auto by = given[0].integer();
             name == "divisibleby" && number && by && *by > 0)
      holds = *number % *by == 0;
  } else if (name == "defined") {
    holds = !value.undefined();
  } else if (name == "undefined") {
    holds = value.undefined() != nullptr;
  } else if (name == "none") {
    holds = value.isNone();
  } else if (name == "string") {
    holds = value.text() != nullptr;
  } else if (name == "mapping") {
    holds = value.dict() != nullptr;
  } else if (name == "iterable" || name == "sequence") {
    // An undefined value has no items, but it can be looped over.
    holds = value.text() || value.list() || value.dict() || value.undefined();
  } else if (name == "number") {
    holds = number.has_value();
  } else if (name == "integer") {
    holds = number && !value.boolean();
  } else if (name == "boolean") {
    holds = value.boolean() != nullptr;
  } else if (name == "true" || name == "false") {
    holds = value.boolean() && *value.boolean() == (name == "true");
  } else if ((name == "odd" || name == "even") && number) {
    holds = (*number % 2 != 0) == (name == "odd");
  }
  if (!holds)
    return fail(e, fmt::format("the test '{}' of {}, with these arguments, is "
                               "not supported",
                               name, kindName(value)));
  return Value(*holds != (e.value != 0));
}

} // namespace gptc::text::chat
