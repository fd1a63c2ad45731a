//===- Precision.cpp - names of precisions --------------------------------===//
#include "gptc/Schedule/Precision.h"
#include <utility>

using namespace gptc;
using llvm::StringRef;

static constexpr std::pair<StringRef, InputPrecision> precisions[] = {
    {"f32", InputPrecision::F32},
    {"tf32", InputPrecision::TF32},
    {"bf16", InputPrecision::BF16},
    {"f16", InputPrecision::F16},
    {"int8", InputPrecision::INT8}};

StringRef gptc::stringifyPrecision(InputPrecision precision) {
  for (auto [name, value] : precisions)
    if (value == precision)
      return name;
  return "";
}

std::optional<InputPrecision> gptc::symbolizePrecision(StringRef name) {
  for (auto [known, value] : precisions)
    if (known == name)
      return value;
  return std::nullopt;
}
