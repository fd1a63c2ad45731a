// Types by name, and look-ups in a parsed module.
#include "Syntax.h"

#include <fmt/format.h>

namespace emu {

namespace {
struct TypeEntry {
  std::string_view name;
  Ty type;
  int bits;
};
constexpr TypeEntry types[] = {
    {"u8", Ty::U8, 8},          {"u16", Ty::U16, 16},
    {"u32", Ty::U32, 32},       {"u64", Ty::U64, 64},
    {"s8", Ty::S8, 8},          {"s16", Ty::S16, 16},
    {"s32", Ty::S32, 32},       {"s64", Ty::S64, 64},
    {"b8", Ty::B8, 8},          {"b16", Ty::B16, 16},
    {"b32", Ty::B32, 32},       {"b64", Ty::B64, 64},
    {"b128", Ty::B128, 128},    {"u16x2", Ty::U16x2, 32},
    {"s16x2", Ty::S16x2, 32},   {"f16", Ty::F16, 16},
    {"f16x2", Ty::F16x2, 32},   {"bf16", Ty::BF16, 16},
    {"bf16x2", Ty::BF16x2, 32}, {"tf32", Ty::TF32, 32},
    {"f32", Ty::F32, 32},       {"f64", Ty::F64, 64},
    {"pred", Ty::Pred, 1},
};
} // namespace

Ty typeOf(std::string_view word) {
  for (const TypeEntry &entry : types)
    if (entry.name == word)
      return entry.type;
  return Ty::None;
}

int bitsOf(Ty type) {
  for (const TypeEntry &entry : types)
    if (entry.type == type)
      return entry.bits;
  return 0;
}

const Function *Source::function(std::string_view name) const {
  for (const auto &function : functions)
    if (function->name == name)
      return function.get();
  return nullptr;
}

const Variable *Source::variable(std::string_view name) const {
  for (const auto &variable : variables)
    if (variable->name == name)
      return variable.get();
  return nullptr;
}

std::string Source::where(int32_t loc) const {
  std::string text;
  // The chain is bounded by construction: a location points to an earlier one.
  while (loc >= 0) {
    const Location &at = locations[loc];
    std::string_view file = "?";
    if (at.file < files.size() && !files[at.file].empty())
      file = files[at.file];
    file = file.substr(file.rfind('/') + 1);
    if (!text.empty())
      text += " inlined at ";
    text += fmt::format("{}:{}", file, at.line);
    loc = at.inlinedAt;
  }
  return text;
}

} // namespace emu
