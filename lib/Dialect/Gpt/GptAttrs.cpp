//===- GptAttrs.cpp - enumerations and attributes -------------------------===//
//
// Syntax and checks of the rotary attributes, and the frequencies that they
// mean (Su et al., arXiv:2104.09864; Llama 3.1's scaling). Refuses values that
// would make an angle infinite or a division by zero.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace gptc::gpt;

#include "gptc/Dialect/Gpt/GptEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "gptc/Dialect/Gpt/GptAttrs.cpp.inc"

void GptDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gptc/Dialect/Gpt/GptAttrs.cpp.inc"
      >();
}

static ParseResult parseNumber(AsmParser &parser, StringRef keyword,
                               double &value) {
  return failure(parser.parseKeyword(keyword) || parser.parseFloat(value));
}

//===----------------------------------------------------------------------===//
// #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 8192>
//===----------------------------------------------------------------------===//

Attribute RopeScalingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double factor, low, high;
  int64_t original;
  if (parser.parseLess() || parseNumber(parser, "factor", factor) ||
      parser.parseComma() || parseNumber(parser, "low", low) ||
      parser.parseComma() || parseNumber(parser, "high", high) ||
      parser.parseComma() || parser.parseKeyword("original") ||
      parser.parseInteger(original) || parser.parseGreater())
    return {};
  return parser.getChecked<RopeScalingAttr>(loc, parser.getContext(), factor,
                                            low, high, original);
}

void RopeScalingAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << "<factor ";
  printExactly(os, getFactor());
  os << ", low ";
  printExactly(os, getLow());
  os << ", high ";
  printExactly(os, getHigh());
  os << ", original " << getOriginal() << ">";
}

LogicalResult
RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ExactDouble factor, ExactDouble low, ExactDouble high,
                        int64_t original) {
  auto complain = [&](StringRef expected, double got) -> LogicalResult {
    InFlightDiagnostic diagnostic = emitError();
    std::string text;
    llvm::raw_string_ostream os(text);
    printExactly(os, got);
    return diagnostic << "[rope-C3] expected " << expected << ", got " << text;
  };
  if (!std::isfinite(factor.value) || factor.value < 1.0)
    return complain("a finite factor of at least 1", factor.value);
  if (!std::isfinite(low.value) || low.value <= 0.0)
    return complain("a finite low frequency factor above 0", low.value);
  if (!std::isfinite(high.value) || high.value <= low.value)
    return complain("a finite high frequency factor above the low one",
                    high.value);
  if (original <= 0)
    return emitError() << "[rope-C3] expected an original context of at least "
                          "1, got "
                       << original;
  return success();
}

//===----------------------------------------------------------------------===//
// #gpt.rope_factors<1.0, 1.5, 8.0>
//===----------------------------------------------------------------------===//

Attribute RopeFactorsAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<ExactDouble> factors;
  auto parseOne = [&]() -> ParseResult {
    double factor;
    if (parser.parseFloat(factor))
      return failure();
    factors.push_back(factor);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseOne))
    return {};
  return parser.getChecked<RopeFactorsAttr>(loc, parser.getContext(), factors);
}

void RopeFactorsAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << "<";
  llvm::interleaveComma(getFactors(), os,
                        [&](double factor) { printExactly(os, factor); });
  os << ">";
}

LogicalResult
RopeFactorsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<ExactDouble> factors) {
  if (factors.empty())
    return emitError() << "[rope-C8] expected one factor or more, got none";
  for (double factor : factors)
    if (!isRopeFactor(factor)) {
      InFlightDiagnostic diagnostic = emitError();
      std::string text;
      llvm::raw_string_ostream os(text);
      printExactly(os, leastRopeFactor);
      os << ", got ";
      printExactly(os, factor);
      return diagnostic << "[rope-C8] expected finite factors of at least "
                        << text;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// #gpt.rope<base 1.0e5, pairs half, dim 64>
//===----------------------------------------------------------------------===//

Attribute RopeAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double base;
  int64_t dim;
  StringRef pairing;
  if (parser.parseLess() || parseNumber(parser, "base", base) ||
      parser.parseComma() || parser.parseKeyword("pairs"))
    return {};
  SMLoc pairingLoc = parser.getCurrentLocation();
  if (parser.parseKeyword(&pairing))
    return {};
  std::optional<RopePairs> pairs = symbolizeRopePairs(pairing);
  if (!pairs) {
    parser.emitError(pairingLoc)
        << "expected pairs half or adjacent, got " << pairing;
    return {};
  }
  if (parser.parseComma() || parser.parseKeyword("dim") ||
      parser.parseInteger(dim))
    return {};
  int64_t rotary = dim;
  Attribute scaling;
  bool more = succeeded(parser.parseOptionalComma());
  if (more && succeeded(parser.parseOptionalKeyword("rotary"))) {
    if (parser.parseInteger(rotary))
      return {};
    more = succeeded(parser.parseOptionalComma());
  }
  if (more &&
      (parser.parseKeyword("scaling") || parser.parseAttribute(scaling)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RopeAttr>(loc, parser.getContext(), base, *pairs,
                                     dim, scaling, rotary);
}

void RopeAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << "<base ";
  printExactly(os, getBase());
  os << ", pairs " << stringifyRopePairs(getPairs()) << ", dim " << getDim();
  if (getRotary() != getDim())
    os << ", rotary " << getRotary();
  if (getScaling())
    printer << ", scaling " << getScaling();
  os << ">";
}

LogicalResult RopeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ExactDouble base, RopePairs, int64_t dim,
                               Attribute scaling, int64_t rotary) {
  if (!std::isfinite(base.value) || base.value <= 1.0) {
    InFlightDiagnostic diagnostic = emitError();
    std::string text;
    llvm::raw_string_ostream os(text);
    printExactly(os, base.value);
    return diagnostic << "[rope-C1] expected a finite base above 1, got "
                      << text;
  }
  if (dim <= 0 || dim % 2 != 0 || dim > (1 << 20))
    return emitError() << "[rope-C2] expected an even dim between 2 and "
                          "1048576, got "
                       << dim;
  if (rotary <= 0 || rotary % 2 != 0 || rotary > dim)
    return emitError() << "[rope-C7] expected an even number of rotary "
                          "channels between 2 and dim "
                       << dim << ", got " << rotary;
  auto factors = dyn_cast_if_present<RopeFactorsAttr>(scaling);
  if (scaling && !factors && !isa<RopeScalingAttr>(scaling))
    return emitError() << "[rope-C8] expected the scaling #gpt.llama3 or "
                          "#gpt.rope_factors, got "
                       << scaling;
  if (int64_t count = factors ? factors.getFactors().size() : 1;
      count != 1 && count != rotary / 2)
    return emitError() << "[rope-C8] expected one factor, or one for each of "
                       << rotary / 2 << " frequencies, got " << count;
  return success();
}

SmallVector<double> RopeAttr::inverseFrequencies() const {
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < getRotary() / 2; ++i)
    frequencies.push_back(
        std::pow(getBase(), -2.0 * static_cast<double>(i) / getRotary()));
  if (auto stored = dyn_cast_if_present<RopeFactorsAttr>(getScaling())) {
    ArrayRef<ExactDouble> factors = stored.getFactors();
    for (auto [i, frequency] : llvm::enumerate(frequencies))
      frequency /= factors[factors.size() == 1 ? 0 : i];
    return frequencies;
  }
  auto scaling = dyn_cast_if_present<RopeScalingAttr>(getScaling());
  if (!scaling)
    return frequencies;
  double original = static_cast<double>(scaling.getOriginal());
  for (double &frequency : frequencies) {
    double wavelength = 2.0 * std::numbers::pi / frequency;
    double turns = original / wavelength; // in the original context
    if (turns > scaling.getHigh())
      continue;
    // 0 where the wavelength is long, 1 where it is short.
    double blend = turns < scaling.getLow()
                       ? 0.0
                       : (turns - scaling.getLow()) /
                             (scaling.getHigh() - scaling.getLow());
    frequency =
        (1.0 - blend) * frequency / scaling.getFactor() + blend * frequency;
  }
  return frequencies;
}

//===----------------------------------------------------------------------===//
// #gpt.stored<"model.safetensors", "h.0.attn.c_attn.weight", f32>
//===----------------------------------------------------------------------===//

LogicalResult StoredAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef file, StringRef tensor,
                                 Storage storage) {
  // A file of the checkpoint's folder, under the bounds of file systems.
  constexpr size_t mostBytes = 255;
  if (file.size() > mostBytes)
    return emitError() << "[stored-C3] expected a file name of at most "
                       << mostBytes << " bytes, got " << file.size();
  if (file == "." || file == ".." ||
      file.find_first_of(StringRef("/\0", 2)) != StringRef::npos) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::printEscapedString(file, os);
    return emitError() << "[stored-C3] expected the name of a file in the "
                          "folder of gpt.checkpoint, without a path, got \""
                       << text << "\"";
  }
  if (tensor.empty())
    return emitError() << "[stored-C4] expected the name of a tensor, got none";
  if (storage >= Storage::BF16x2 && storage <= Storage::Q8_0x4)
    return emitError() << "[stored-C1] expected the storage of a checkpoint, "
                          "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1 or "
                          "q2_k to q6_k, got "
                       << stringifyStorage(storage)
                       << ", which only packages have";
  if (file.empty() && storage > Storage::Q8_0x4)
    return emitError() << "[stored-C2] expected a weight that the host hands "
                          "over to be f32, f16, bf16, q8_0, q4_0 or q4_1, got "
                       << stringifyStorage(storage)
                       << ", which only files have";
  return success();
}
