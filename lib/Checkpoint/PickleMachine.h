//===- PickleMachine.h - The pickle machine's state -------------*- C++ -*-===//
//
// Pickle.cpp runs the opcodes of plain values, PickleTensors.cpp what a pickle
// mentions by name: the globals, storages and tensors.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_CHECKPOINT_PICKLEMACHINE_H
#define GPTC_LIB_CHECKPOINT_PICKLEMACHINE_H

#include "Pickle.h"
#include <optional>

namespace gptc::checkpoint::pickle {

class Machine {
public:
  Machine(std::string_view text, std::string_view where)
      : text(text), where(where) {}

  Expected<Pickle> run();

private:
  void step(uint8_t opcode);
  void pushNumber(uint8_t opcode);
  void pushString(uint8_t opcode);
  void changeMemo(uint8_t opcode);
  void fillContainer(uint8_t opcode);
  void makeTuple(size_t size);
  void pushGlobal(std::string_view module, std::string_view name);
  void readGlobal();
  void readStackGlobal();
  void readStorage();
  void call();
  void rebuildTensor(const Value &arguments);
  void build();

  /// Keeps the first; everything after reads as zero and does nothing.
  void refuse(std::string_view rule);

  std::string_view bytes(uint64_t count);
  uint64_t unsignedNumber(size_t count);
  int64_t signedNumber(size_t count);
  std::string_view line();

  Value &push(Kind kind);
  void pushRef(Ref ref) { stack.push_back(ref); }
  /// The value on top, which stays in `result`.
  Ref pop();
  Value &value(Ref ref) { return result.values[ref]; }
  /// Everything above the last mark, and the mark.
  std::vector<Ref> popToMark();
  bool isInts(Ref ref);

  std::string_view text, where;
  size_t at = 0, opcodeAt = 0;
  Pickle result;
  std::vector<Ref> stack, memo;
  /// Heights of the stack.
  std::vector<size_t> marks;
  std::optional<Error> first;
};

} // namespace gptc::checkpoint::pickle

#endif // GPTC_LIB_CHECKPOINT_PICKLEMACHINE_H
