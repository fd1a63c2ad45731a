//===- Pickle.cpp - The pickles that torch.save writes --------------------===//

#include "PickleMachine.h"
#include <bit>
#include <fmt/format.h>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::pickle;

static constexpr size_t maxOpcodes = size_t(1) << 21;

namespace {
/// The numbers of opcodes, under the names of Python's pickletools.
enum Opcode : uint8_t {
  Mark = '(',
  Stop = '.',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  PushNone = 'N',
  BinPersId = 'Q',
  Reduce = 'R',
  BinUnicode = 'X',
  EmptyList = ']',
  Append = 'a',
  Build = 'b',
  PushGlobal = 'c',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  BinPut = 'q',
  LongBinPut = 'r',
  SetItem = 's',
  MakeTuple = 't',
  SetItems = 'u',
  EmptyDict = '}',
  EmptyTuple = ')',
  BinFloat = 'G',
  Proto = 0x80,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  ShortBinUnicode = 0x8c,
  BinUnicode8 = 0x8d,
  StackGlobal = 0x93,
  Memoize = 0x94,
  Frame = 0x95,
};
} // namespace

void Machine::refuse(std::string_view rule) {
  if (!first)
    first = Error{fmt::format("{}: byte {}: {}", where, opcodeAt, rule)};
}

std::string_view Machine::bytes(uint64_t count) {
  if (count > text.size() - at) {
    refuse(fmt::format("expected {} more bytes, got {}; the pickle is "
                       "truncated or damaged",
                       count, text.size() - at));
    return {};
  }
  std::string_view read = text.substr(at, count);
  at += count;
  return read;
}

/// Little-endian; `count` is at most 8.
uint64_t Machine::unsignedNumber(size_t count) {
  uint64_t number = 0;
  std::string_view read = bytes(count);
  for (size_t i = read.size(); i-- > 0;)
    number = number << 8 | static_cast<uint8_t>(read[i]);
  return number;
}

int64_t Machine::signedNumber(size_t count) {
  uint64_t number = unsignedNumber(count);
  if (count == 0 || count == 8)
    return static_cast<int64_t>(number);
  uint64_t sign = uint64_t(1) << (8 * count - 1);
  return static_cast<int64_t>((number ^ sign) - sign);
}

std::string_view Machine::line() {
  size_t end = text.find('\n', at);
  if (end == std::string_view::npos) {
    refuse("expected a line, got the end of the pickle");
    return {};
  }
  std::string_view read = text.substr(at, end - at);
  at = end + 1;
  return read;
}

Value &Machine::push(Kind kind) {
  pushRef(static_cast<Ref>(result.values.size()));
  Value &made = result.values.emplace_back();
  made.kind = kind;
  return made;
}

Ref Machine::pop() {
  if (stack.size() > (marks.empty() ? 0 : marks.back())) {
    Ref top = stack.back();
    stack.pop_back();
    return top;
  }
  refuse("expected a value on the stack, got none; the pickle is damaged");
  result.values.emplace_back();
  return static_cast<Ref>(result.values.size() - 1);
}

std::vector<Ref> Machine::popToMark() {
  if (marks.empty()) {
    refuse("expected a mark on the stack, got none; the pickle is damaged");
    return {};
  }
  auto begin = stack.begin() + static_cast<ptrdiff_t>(marks.back());
  std::vector<Ref> items(begin, stack.end());
  stack.erase(begin, stack.end());
  marks.pop_back();
  return items;
}

void Machine::pushNumber(uint8_t opcode) {
  switch (opcode) {
  case NewTrue:
  case NewFalse:
    push(Kind::Bool).integer = opcode == NewTrue;
    return;
  case BinInt:
    push(Kind::Int).integer = signedNumber(4);
    return;
  case BinInt1:
    push(Kind::Int).integer = static_cast<int64_t>(unsignedNumber(1));
    return;
  case BinInt2:
    push(Kind::Int).integer = static_cast<int64_t>(unsignedNumber(2));
    return;
  case Long1: {
    uint64_t count = unsignedNumber(1);
    if (count > 8)
      return refuse(fmt::format("expected an integer of at most 8 bytes, got "
                                "{}",
                                count));
    push(Kind::Int).integer = signedNumber(count);
    return;
  }
  default: { // BinFloat, the one number that is big-endian
    uint64_t bits = 0;
    for (char byte : bytes(8))
      bits = bits << 8 | static_cast<uint8_t>(byte);
    push(Kind::Float).real = std::bit_cast<double>(bits);
  }
  }
}

void Machine::pushString(uint8_t opcode) {
  size_t width = opcode == BinUnicode ? 4 : opcode == BinUnicode8 ? 8 : 1;
  std::string_view read = bytes(unsignedNumber(width));
  if (!isUtf8(read))
    return refuse("expected a string of UTF-8, got " + quote(read));
  push(Kind::String).text = read;
}

/// A pickler numbers what it keeps from 0 on, so no number is beyond the next.
void Machine::changeMemo(uint8_t opcode) {
  if (opcode == BinGet || opcode == LongBinGet) {
    uint64_t number = unsignedNumber(opcode == BinGet ? 1 : 4);
    if (number >= memo.size())
      return refuse(fmt::format("expected the number of one of {} kept "
                                "values, got {}",
                                memo.size(), number));
    return pushRef(memo[number]);
  }
  uint64_t number = opcode == Memoize
                        ? memo.size()
                        : unsignedNumber(opcode == BinPut ? 1 : 4);
  if (number > memo.size())
    return refuse(fmt::format("expected to keep a value under a number of at "
                              "most {}, got {}",
                              memo.size(), number));
  Ref top = pop();
  pushRef(top);
  if (number == memo.size())
    memo.push_back(top);
  else
    memo[number] = top;
}

void Machine::fillContainer(uint8_t opcode) {
  bool dict = opcode == SetItem || opcode == SetItems;
  std::vector<Ref> items;
  if (opcode == Append || opcode == SetItem) {
    items.resize(dict ? 2 : 1);
    for (size_t i = items.size(); i-- > 0;)
      items[i] = pop();
  } else {
    items = popToMark();
  }
  Ref top = pop();
  pushRef(top);
  Value &container = value(top);
  if (container.kind != (dict ? Kind::Dict : Kind::List))
    return refuse(fmt::format("expected a {} to fill, got {}",
                              dict ? "dict" : "list", describe(container)));
  if (dict && items.size() % 2 != 0)
    return refuse("expected a value for each key, got one key more");
  container.items.insert(container.items.end(), items.begin(), items.end());
}

void Machine::makeTuple(size_t size) {
  std::vector<Ref> items(size);
  for (size_t i = size; i-- > 0;)
    items[i] = pop();
  push(Kind::Tuple).items = std::move(items);
}

void Machine::step(uint8_t opcode) {
  switch (opcode) {
  case Proto:
    if (uint64_t version = unsignedNumber(1); version < 2 || version > 5)
      refuse(fmt::format("expected pickle protocol 2 to 5, got {}", version));
    return;
  case Frame:
    bytes(8);
    return;
  case Mark:
    marks.push_back(stack.size());
    return;
  case PushNone:
    push(Kind::None);
    return;
  case EmptyList:
    push(Kind::List);
    return;
  case EmptyDict:
    push(Kind::Dict);
    return;
  case EmptyTuple:
    push(Kind::Tuple);
    return;
  case Tuple1:
  case Tuple2:
  case Tuple3:
    return makeTuple(opcode - Tuple1 + 1u);
  case MakeTuple: {
    std::vector<Ref> items = popToMark();
    push(Kind::Tuple).items = std::move(items);
    return;
  }
  case NewTrue:
  case NewFalse:
  case BinInt:
  case BinInt1:
  case BinInt2:
  case BinFloat:
  case Long1:
    return pushNumber(opcode);
  case BinUnicode:
  case ShortBinUnicode:
  case BinUnicode8:
    return pushString(opcode);
  case BinGet:
  case LongBinGet:
  case BinPut:
  case LongBinPut:
  case Memoize:
    return changeMemo(opcode);
  case Append:
  case Appends:
  case SetItem:
  case SetItems:
    return fillContainer(opcode);
  case PushGlobal:
    return readGlobal();
  case StackGlobal:
    return readStackGlobal();
  case BinPersId:
    return readStorage();
  case Reduce:
    return call();
  case Build:
    return build();
  default:
    refuse(fmt::format("opcode 0x{:02x} is refused: expected those that "
                       "torch.save writes for tensors and plain values",
                       opcode));
  }
}

Expected<Pickle> Machine::run() {
  for (size_t count = 0; !first; ++count) {
    opcodeAt = at;
    auto opcode = static_cast<uint8_t>(unsignedNumber(1));
    if (first)
      break;
    if (opcode == Stop) {
      result.root = pop();
      if (!stack.empty() || !marks.empty() || at != text.size())
        refuse("expected the pickle to end with one value, got more");
      break;
    }
    if (count == maxOpcodes)
      refuse(fmt::format("expected at most {} opcodes", maxOpcodes));
    else
      step(opcode);
  }
  if (first)
    return *first;
  return std::move(result);
}

const Value *Pickle::find(const Value &dict, std::string_view key) const {
  const Value *found = nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Value &candidate = values[dict.items[i]];
    if (candidate.kind == Kind::String && candidate.text == key)
      found = &values[dict.items[i + 1]];
  }
  return found;
}

std::string pickle::describe(const Value &value) {
  switch (value.kind) {
  case Kind::None:
    return "None";
  case Kind::Bool:
    return value.integer ? "True" : "False";
  case Kind::Int:
    return fmt::format("integer {}", value.integer);
  case Kind::Float:
    return fmt::format("number {}", value.real);
  case Kind::String:
    return quote(value.text);
  case Kind::Tuple:
    return fmt::format("a tuple of {}", value.items.size());
  case Kind::List:
    return fmt::format("a list of {}", value.items.size());
  case Kind::Dict:
    return fmt::format("a dict of {}", value.items.size() / 2);
  case Kind::Global:
    return std::string(globalName(value));
  case Kind::Storage:
    return "a storage";
  case Kind::Tensor:
    return "a tensor";
  }
  return "a value";
}

Expected<Pickle> pickle::read(std::string_view text, std::string_view where) {
  return Machine(text, where).run();
}
