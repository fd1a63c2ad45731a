//===- Pickle.h - The pickles that torch.save writes ------------*- C++ -*-===//
//
// A machine for Python's pickle protocols 2 to 5 that can build None, bools,
// integers of 64 bits, floats, strings, lists, tuples, dicts, and tensors as
// PyTorch describes them: a storage (a persistent id), an offset, sizes and
// strides. It imports nothing and calls nothing. Any other global, such as
// posix.system, is refused by name where it is mentioned, and so are opcodes
// that make other objects.
//
// Values refer to each other by number, so that a value may be shared and a
// list may contain itself. Memory is bounded by the number of opcodes, which is
// at most 2^21; nothing recurses. Spec: Python's pickletools and the storages
// of torch/_utils.py.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_CHECKPOINT_PICKLE_H
#define GPTC_LIB_CHECKPOINT_PICKLE_H

#include "gptc/Checkpoint/Error.h"
#include "gptc/Checkpoint/Storage.h"
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace gptc::checkpoint::pickle {

enum class Kind : uint8_t {
  None,
  Bool,    // integer is 0 or 1
  Int,     // integer
  Float,   // real
  String,  // text, a view of the pickle
  Tuple,   // items
  List,    // items
  Dict,    // items: key, value, key, value ...
  Global,  // integer: which; only while the machine runs
  Storage, // items: key (a String), number of elements (an Int); storage
  Tensor,  // items: Storage, offset (Int), sizes, strides (Tuples of Ints)
};

/// Number of a value.
using Ref = uint32_t;

struct Value {
  Kind kind = Kind::None;
  checkpoint::Storage storage = checkpoint::Storage::F32;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  std::vector<Ref> items;
};

struct Pickle {
  std::deque<Value> values;
  Ref root = 0;

  const Value &operator[](Ref ref) const { return values[ref]; }
  /// The last value of a dict under a string key; null when there is none.
  const Value *find(const Value &dict, std::string_view key) const;
};

/// "a dict of 3", "'text'", for messages.
std::string describe(const Value &value);

/// "torch.FloatStorage", of a Global.
std::string_view globalName(const Value &value);

/// Reads the whole of `text`; `where` begins every message.
Expected<Pickle> read(std::string_view text, std::string_view where);

} // namespace gptc::checkpoint::pickle

#endif // GPTC_LIB_CHECKPOINT_PICKLE_H
