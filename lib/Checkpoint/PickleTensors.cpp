//===- PickleTensors.cpp - What a pickle may mention by name --------------===//

#include "PickleMachine.h"
#include <fmt/format.h>
#include <iterator>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::pickle;
using TensorStorage = gptc::checkpoint::Storage;

namespace {
/// What a pickle may mention. Those without a storage are called.
struct Known {
  std::string_view name;
  std::optional<TensorStorage> storage;
};
} // namespace

enum KnownNumber { OrderedDict, RebuildTensor, RebuildParameter };
static constexpr Known known[] = {
    {"collections.OrderedDict", {}},
    {"torch._utils._rebuild_tensor_v2", {}},
    {"torch._utils._rebuild_parameter", {}},
    {"torch.FloatStorage", TensorStorage::F32},
    {"torch.HalfStorage", TensorStorage::F16},
    {"torch.BFloat16Storage", TensorStorage::BF16},
    {"torch.DoubleStorage", TensorStorage::F64},
    {"torch.CharStorage", TensorStorage::I8},
    {"torch.ShortStorage", TensorStorage::I16},
    {"torch.IntStorage", TensorStorage::I32},
    {"torch.LongStorage", TensorStorage::I64},
    {"torch.ByteStorage", TensorStorage::U8},
    {"torch.BoolStorage", TensorStorage::Bool},
};

std::string_view pickle::globalName(const Value &value) {
  return known[value.integer].name;
}

void Machine::pushGlobal(std::string_view module, std::string_view name) {
  std::string full = fmt::format("{}.{}", module, name);
  for (size_t i = 0; i < std::size(known); ++i)
    if (known[i].name == full) {
      push(Kind::Global).integer = static_cast<int64_t>(i);
      return;
    }
  refuse(fmt::format("global {} is refused: expected only tensors, numbers, "
                     "strings, lists, tuples and dicts; save "
                     "model.state_dict() and plain values alone",
                     quote(full)));
}

void Machine::readGlobal() {
  std::string_view module = line(), name = line();
  pushGlobal(module, name);
}

void Machine::readStackGlobal() {
  Value name = value(pop()), module = value(pop());
  if (name.kind != Kind::String || module.kind != Kind::String)
    return refuse("expected the names of a global, got " + describe(name));
  pushGlobal(module.text, name.text);
}

/// A tuple may be used again and again, so a long one is not looked through.
bool Machine::isInts(Ref ref) {
  constexpr size_t maxDimensions = 64; // PyTorch's own limit
  const Value &tuple = value(ref);
  if (tuple.kind != Kind::Tuple || tuple.items.size() > maxDimensions)
    return false;
  for (Ref item : tuple.items)
    if (value(item).kind != Kind::Int)
      return false;
  return true;
}

/// ('storage', type, key, location, number of elements)
void Machine::readStorage() {
  Ref id = pop();
  const Value &tuple = value(id);
  bool fits = tuple.kind == Kind::Tuple && tuple.items.size() == 5 &&
              value(tuple.items[0]).kind == Kind::String &&
              value(tuple.items[0]).text == "storage" &&
              value(tuple.items[1]).kind == Kind::Global &&
              value(tuple.items[2]).kind == Kind::String &&
              value(tuple.items[4]).kind == Kind::Int;
  const Known *type = fits ? &known[value(tuple.items[1]).integer] : nullptr;
  if (!type || !type->storage)
    return refuse("expected a persistent id ('storage', type, key, location, "
                  "number of elements), got another");
  std::vector<Ref> items = {tuple.items[2], tuple.items[4]};
  Value &storage = push(Kind::Storage);
  storage.storage = *type->storage;
  storage.items = std::move(items);
}

/// (storage, offset, sizes, strides, requires_grad, backward hooks[, metadata])
void Machine::rebuildTensor(const Value &arguments) {
  const std::vector<Ref> &items = arguments.items;
  bool fits = (items.size() == 6 || items.size() == 7) &&
              value(items[0]).kind == Kind::Storage &&
              value(items[1]).kind == Kind::Int && isInts(items[2]) &&
              isInts(items[3]) &&
              value(items[2]).items.size() == value(items[3]).items.size();
  if (!fits)
    return refuse("expected a tensor's storage, offset, sizes and strides, "
                  "got other arguments");
  std::vector<Ref> parts(items.begin(), items.begin() + 4);
  push(Kind::Tensor).items = std::move(parts);
}

void Machine::call() {
  Ref arguments = pop(), callable = pop();
  if (value(arguments).kind != Kind::Tuple ||
      value(callable).kind != Kind::Global)
    return refuse(fmt::format("expected a known global and a tuple, got {} "
                              "and {}",
                              describe(value(callable)),
                              describe(value(arguments))));
  const std::vector<Ref> &items = value(arguments).items;
  switch (value(callable).integer) {
  case OrderedDict:
    if (!items.empty())
      return refuse("expected an OrderedDict that is filled later, got one "
                    "with arguments");
    push(Kind::Dict);
    return;
  case RebuildTensor:
    return rebuildTensor(value(arguments));
  case RebuildParameter: // (tensor, requires_grad, backward hooks)
    if (items.empty() || value(items[0]).kind != Kind::Tensor)
      return refuse("expected a parameter's tensor, got other arguments");
    return pushRef(items[0]);
  default:
    return refuse(fmt::format("expected a storage type to be named, got a "
                              "call of {}",
                              known[value(callable).integer].name));
  }
}

/// A state dict carries its modules' versions as an attribute.
void Machine::build() {
  Ref state = pop(), target = pop();
  if (value(target).kind != Kind::Dict || value(state).kind != Kind::Dict)
    return refuse(fmt::format("expected attributes of a dict, got those of {}",
                              describe(value(target))));
  pushRef(target);
}
