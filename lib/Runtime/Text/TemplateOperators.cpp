//===- TemplateOperators.cpp - Members, arithmetic and comparisons --------===//
//
// With Python's meaning: indices from the end, // and % rounding down, booleans
// as numbers.
//
//===----------------------------------------------------------------------===//
#include "TemplateEvaluator.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

Value Evaluator::attribute(const Expression &e, const Value &object) {
  if (const Undefined *undefined = object.undefined())
    return fail(e, fmt::format("'{}' is undefined", undefined->name));
  const Value *found = memberOf(work, object, e.name);
  return found ? *found : Value(Undefined(e.name));
}

/// The place that a Python index means: negative ones count from the end.
static int64_t fromEnd(int64_t at, int64_t count) {
  return at < 0 ? at + count : at;
}

/// Where the characters of a string start, and its end; nothing of a list.
static std::vector<size_t> placesOf(Work &work, const Value &value) {
  return value.text() ? value.text()->characterStarts(work)
                      : std::vector<size_t>();
}
static int64_t countOf(const Value &value, const std::vector<size_t> &starts) {
  return value.list() ? int64_t(value.list()->size())
                      : int64_t(starts.size()) - 1;
}

Value Evaluator::index(const Expression &e, const Value &object,
                       const Value &key) {
  if (const Undefined *undefined = object.undefined())
    return fail(e, fmt::format("'{}' is undefined", undefined->name));
  if (const Text *name = key.text()) {
    const Value *found = memberOf(work, object, name->bytes());
    return found ? *found : Value(Undefined(name->bytes()));
  }
  auto at = key.integer();
  if (!at || !(object.list() || object.text()))
    return Value(Undefined("item"));
  std::vector<size_t> starts = placesOf(work, object);
  int64_t count = countOf(object, starts), place = fromEnd(*at, count);
  if (place < 0 || place >= count)
    return Value(Undefined(fmt::format("item {}", *at)));
  if (object.list())
    return (*object.list())[size_t(place)];
  size_t from = starts[size_t(place)];
  return Value(
      work, object.text()->slice(work, from, starts[size_t(place) + 1] - from));
}

Value Evaluator::slice(const Expression &e) {
  Value object = evaluate(*e.operands[0]);
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!e.operands[i + 1])
      continue;
    Value bound = evaluate(*e.operands[i + 1]);
    bounds[i] = bound.integer();
    if (!bounds[i] && !bound.isNone())
      return fail(e, "expected numbers in brackets");
  }
  if (failed() || !(object.list() || object.text()))
    return fail(e, fmt::format("expected a list or a string to cut, got {}",
                               kindName(object)));
  std::vector<size_t> starts = placesOf(work, object);
  int64_t count = countOf(object, starts);
  int64_t step = bounds[2].value_or(1);
  if (step != 1 && step != -1)
    return fail(e, "only the steps 1 and -1 are supported in brackets");
  // As Python's slice.indices.
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  auto bound = [&](std::optional<int64_t> at, int64_t absent) {
    return at ? std::clamp(fromEnd(*at, count), low, high) : absent;
  };
  int64_t from = bound(bounds[0], step > 0 ? low : high);
  int64_t to = bound(bounds[1], step > 0 ? high : low);
  List list;
  Text text;
  for (int64_t at = from; !failed() && (step > 0 ? at < to : at > to);
       at += step)
    if (object.list())
      list.push(work, (*object.list())[size_t(at)]);
    else
      text.append(work, *object.text(), starts[size_t(at)],
                  starts[size_t(at) + 1] - starts[size_t(at)]);
  return object.list() ? Value(work, std::move(list))
                       : Value(work, std::move(text));
}

Value Evaluator::arithmetic(const Expression &e, const Value &left,
                            const Value &right) {
  char op = e.name[0];
  if (left.text() && right.text() && op == '+') {
    Text text = left.text()->copy(work);
    text.append(work, *right.text());
    return Value(work, std::move(text));
  }
  if (left.list() && right.list() && op == '+') {
    List list;
    itemsOf(work, left, list);
    itemsOf(work, right, list);
    return Value(work, std::move(list));
  }
  for (const Value *side : {&left, &right})
    if (const Undefined *undefined = side->undefined())
      return fail(e, fmt::format("'{}' is undefined", undefined->name));
  auto a = left.integer(), b = right.integer();
  if (!a || !b)
    return fail(e, fmt::format("'{}' does not go with {} and {}", e.name,
                               kindName(left), kindName(right)));
  int64_t result = 0;
  bool overflow = false;
  if (op == '+')
    overflow = __builtin_add_overflow(*a, *b, &result);
  else if (op == '-')
    overflow = __builtin_sub_overflow(*a, *b, &result);
  else if (op == '*')
    overflow = __builtin_mul_overflow(*a, *b, &result);
  else if (e.name == "/")
    return fail(e, "'/' is not supported; '//' divides whole numbers");
  else if (*b == 0 || *b == -1)
    return *b == 0 ? fail(e, "division by zero")
                   : fail(e, "division by -1 is not supported");
  else {
    // Rounded down, the rest having the divisor's sign.
    int64_t rest = *a % *b;
    bool down = rest != 0 && (rest < 0) != (*b < 0);
    result = op == '%' ? rest + (down ? *b : 0) : *a / *b - down;
  }
  return overflow || result > INT64_MAX / 2 || result < INT64_MIN / 2
             ? fail(e, "a number is too large")
             : Value(result);
}

bool Evaluator::contains(const Expression &e, const Value &container,
                         const Value &item) {
  if (const Text *text = container.text()) {
    if (item.text())
      return item.text()->empty() ||
             text->find(work, *item.text()) != Text::npos;
  } else if (container.dict()) {
    return item.text() && memberOf(work, container, item.text()->bytes());
  } else if (const List *list = container.list()) {
    return std::ranges::any_of(
        *list, [&](const Value &each) { return equal(work, each, item); });
  } else if (container.undefined()) {
    return false;
  }
  fail(e, fmt::format("'in' does not go with {} and {}", kindName(item),
                      kindName(container)));
  return false;
}

Value Evaluator::compare(const Expression &e, const Value &left,
                         const Value &right) {
  if (e.name == "==" || e.name == "!=")
    return Value(equal(work, left, right) == (e.name == "=="));
  if (e.name == "in" || e.name == "not in")
    return Value(contains(e, right, left) == (e.name == "in"));
  int order = 0;
  if (left.integer() && right.integer())
    order = (*left.integer() > *right.integer()) -
            (*left.integer() < *right.integer());
  else if (left.text() && right.text())
    order = left.text()->compare(work, *right.text());
  else
    return fail(e, fmt::format("'{}' does not go with {} and {}", e.name,
                               kindName(left), kindName(right)));
  return Value(e.name == "<"    ? order < 0
               : e.name == "<=" ? order <= 0
               : e.name == ">"  ? order > 0
                                : order >= 0);
}

} // namespace gptc::text::chat
