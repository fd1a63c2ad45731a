//===- Ptx.cpp - Fuzzes the emulator's parser of PTX ----------------------===//
//
// Text that is no PTX is refused with a message that has its line; of what is
// parsed, every statement and location can be asked for.
//
//===----------------------------------------------------------------------===//
#include "Error.h"
#include "Fuzz.h"
#include "Syntax.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    auto source = emu::parse(std::string(fuzz::text(data, size)));
    for (const auto &function : source->functions)
      for (const emu::Statement &statement : function->body) {
        fuzz::require(!statement.parts.empty() && !statement.name().empty(),
                      "a statement has an opcode");
        fuzz::require(statement.guard < int(function->registers.size()),
                      "a guard is a register of the function");
        source->where(statement.loc);
      }
    for (const auto &variable : source->variables)
      fuzz::require(variable->init.size() <= variable->size,
                    "values fit their variable");
  } catch (const emu::Error &error) {
    fuzz::requireMessage(error.what());
    fuzz::require(std::string_view(error.what()).find("PTX line ") !=
                      std::string_view::npos,
                  "a message has the line");
  }
  return 0;
}
