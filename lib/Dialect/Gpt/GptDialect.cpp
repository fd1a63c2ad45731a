//===- GptDialect.cpp - registration of the gpt dialect -------------------===//
//
// Registers the dialect's words and refuses gpt.* attributes that it does not
// know or that stand where they mean nothing.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Dialect/Gpt/NearestName.h"

using namespace mlir;
using namespace gptc::gpt;

#include "gptc/Dialect/Gpt/GptDialect.cpp.inc"

void GptDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "gptc/Dialect/Gpt/GptOps.cpp.inc"
      >();
  registerAttributes();
  registerTypes();
}

namespace {
enum class Kind {
  String,
  PositiveInteger,
  TokenId,
  TokenIds,
  Stored,
  Storage,
  Element,
  Sizes
};

struct Known {
  StringRef name;
  Kind kind;
};

constexpr Known moduleAttributes[] = {
    {"gpt.name", Kind::String},
    {"gpt.checkpoint", Kind::String},
    {"gpt.context", Kind::PositiveInteger},
    {"gpt.vocab", Kind::PositiveInteger},
    {"gpt.tokenizer", Kind::String},
    {"gpt.eos", Kind::TokenId},
    {"gpt.bos", Kind::TokenId},
    {"gpt.extra_ends", Kind::TokenIds},
    {"gpt.chat_template", Kind::String},
};
constexpr Known globalAttributes[] = {{"gpt.stored", Kind::Stored}};
constexpr Known kernelAttributes[] = {{"gpt.dims", Kind::Sizes}};
constexpr Known argumentAttributes[] = {{"gpt.arg", Kind::String},
                                        {"gpt.storage", Kind::Storage},
                                        {"gpt.element", Kind::Element}};
constexpr Known resultAttributes[] = {{"gpt.result", Kind::String},
                                      {"gpt.element", Kind::Element}};

LogicalResult checkValue(function_ref<InFlightDiagnostic()> emit,
                         const Known &known, Attribute value) {
  switch (known.kind) {
  case Kind::String:
    if (auto text = dyn_cast<StringAttr>(value); text && !text.empty())
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be a string that is not empty, got " << value;
  case Kind::PositiveInteger:
  case Kind::TokenId: {
    int64_t least = known.kind == Kind::TokenId ? 0 : 1;
    auto number = dyn_cast<IntegerAttr>(value);
    if (number && number.getType().isInteger(64) &&
        number.getValue().sge(least))
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be an i64 of at least " << least << ", got "
                  << value;
  }
  case Kind::TokenIds: {
    auto ids = dyn_cast<DenseI64ArrayAttr>(value);
    if (ids &&
        llvm::all_of(ids.asArrayRef(), [](int64_t id) { return id >= 0; }))
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be an array of i64 of at least 0, got " << value;
  }
  case Kind::Stored:
    if (isa<StoredAttr>(value))
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be a #gpt.stored attribute, got " << value;
  case Kind::Storage:
    if (auto text = dyn_cast<StringAttr>(value))
      if (auto storage = symbolizeStorage(text.getValue());
          storage && *storage <= Storage::Q8_0x4)
        return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be one of \"f32\", \"f16\", \"bf16\", \"q8_0\", "
                     "\"q4_0\", \"q4_1\", got "
                  << value;
  case Kind::Element:
    if (auto type = dyn_cast<TypeAttr>(value);
        type && (type.getValue().isBF16() || type.getValue().isF16()))
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be bf16 or f16, got " << value;
  case Kind::Sizes:
    if (auto values = dyn_cast<ArrayAttr>(value);
        values && llvm::all_of(values, llvm::IsaPred<DenseI64ArrayAttr>))
      return success();
    return emit() << "[attr-C2] expected '" << known.name
                  << "' to be an array of array<i64>, one per argument and "
                     "result, got "
                  << value;
  }
  llvm_unreachable("every kind returns");
}

/// Checks `attribute` against the names that may stand on `place`, and
/// suggests the nearest one for a name that may not.
LogicalResult check(function_ref<InFlightDiagnostic()> emit, StringRef place,
                    ArrayRef<Known> names, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  for (const Known &known : names)
    if (known.name == name)
      return checkValue(emit, known, attribute.getValue());
  InFlightDiagnostic diagnostic = emit() << "[attr-C1] unknown attribute '"
                                         << name << "' on " << place;
  if (names.empty())
    return diagnostic << "; no gpt attribute stands there";
  StringRef nearest = gptc::nearestName(
      name, llvm::map_range(names, [](const Known &known) -> StringRef {
        return known.name;
      }));
  if (!nearest.empty())
    return diagnostic << "; did you mean '" << nearest << "'?";
  diagnostic << "; expected ";
  llvm::interleave(
      names, [&](const Known &known) { diagnostic << known.name; },
      [&] { diagnostic << ", "; });
  return diagnostic;
}
} // namespace

LogicalResult GptDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  auto emit = [&] { return op->emitError(); };
  if (isa<ModuleOp>(op))
    return check(emit, "a module", moduleAttributes, attribute);
  if (isa<ml_program::GlobalOp>(op))
    return check(emit, "a global", globalAttributes, attribute);
  if (isa<KernelOp>(op))
    return check(emit, "a kernel", kernelAttributes, attribute);
  std::string place = ("'" + op->getName().getStringRef() + "'").str();
  return check(emit, place, {}, attribute);
}

LogicalResult GptDialect::verifyRegionArgAttribute(Operation *op,
                                                   unsigned regionIndex,
                                                   unsigned argIndex,
                                                   NamedAttribute attribute) {
  return check([&] { return op->emitError(); },
               "argument " + std::to_string(argIndex), argumentAttributes,
               attribute);
}

LogicalResult
GptDialect::verifyRegionResultAttribute(Operation *op, unsigned regionIndex,
                                        unsigned resultIndex,
                                        NamedAttribute attribute) {
  return check([&] { return op->emitError(); },
               "result " + std::to_string(resultIndex), resultAttributes,
               attribute);
}
