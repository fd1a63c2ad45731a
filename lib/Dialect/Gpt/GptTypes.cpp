//===- GptTypes.cpp - the KV cache type -----------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

#define GET_TYPEDEF_CLASSES
#include "gptc/Dialect/Gpt/GptTypes.cpp.inc"

void GptDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "gptc/Dialect/Gpt/GptTypes.cpp.inc"
      >();
}

// `<` layers `x` heads `x` head-dim `,` `page` page `,` element `>`
Type KVCacheType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t layers, heads, headDim, page;
  Type element;
  if (parser.parseLess() || parser.parseInteger(layers) ||
      parser.parseKeyword("x") || parser.parseInteger(heads) ||
      parser.parseKeyword("x") || parser.parseInteger(headDim) ||
      parser.parseComma() || parser.parseKeyword("page") ||
      parser.parseInteger(page) || parser.parseComma() ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<KVCacheType>(loc, parser.getContext(), layers, heads,
                                        headDim, page, element);
}

void KVCacheType::print(AsmPrinter &printer) const {
  printer << "<" << getLayers() << " x " << getHeads() << " x " << getHeadDim()
          << ", page " << getPage() << ", " << getElement() << ">";
}

LogicalResult KVCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t layers, int64_t heads,
                                  int64_t headDim, int64_t page, Type element) {
  auto positive = [&](StringRef what, int64_t value) -> LogicalResult {
    if (value > 0 && value <= INT32_MAX)
      return success();
    return emitError() << "[kv_cache-C1] expected " << what
                       << " between 1 and 2147483647, got " << value;
  };
  if (failed(positive("layers", layers)) || failed(positive("heads", heads)) ||
      failed(positive("head size", headDim)) || failed(positive("page", page)))
    return failure();
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return emitError()
           << "[kv_cache-C2] expected element type f32, bf16 or f16, got "
           << element;
  return success();
}
