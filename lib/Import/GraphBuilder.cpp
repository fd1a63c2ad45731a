//===- GraphBuilder.cpp - Writes a forward pass as graph ops --------------===//

#include "GraphBuilder.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using llvm::StringRef;

/// Weights::claim lets only formats of weights through, which have one name in
/// both enumerations.
static gpt::Storage storageOf(checkpoint::Storage storage) {
  return gpt::symbolizeStorage(checkpoint::storageName(storage))
      .value_or(gpt::Storage::F32);
}

static StringRef fileName(StringRef path) {
  return path.substr(path.rfind('/') + 1);
}

/// A matrix may be stored as a batch of one.
static llvm::ArrayRef<int64_t> shapeOf(Weight weight) {
  llvm::ArrayRef<int64_t> shape = weight->shape;
  while (shape.size() > 2 && shape.front() == 1)
    shape = shape.drop_front();
  return shape;
}

GraphBuilder::GraphBuilder(MLIRContext &context,
                           const std::vector<Weight> &weights)
    : builder(&context) {
  context.loadDialect<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                      ml_program::MLProgramDialect>();
  Location unknown = builder.getUnknownLoc();
  module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(module->getBody());
  for (Weight weight : weights) {
    auto type = tensorOf(shapeOf(weight));
    auto global = ml_program::GlobalOp::create(
        builder, NameLoc::get(builder.getStringAttr(weight->name)),
        weight->name, type, /*is_mutable=*/false,
        ml_program::ExternAttr::get(&context, type),
        builder.getStringAttr("private"));
    global->setAttr("gpt.stored",
                    gpt::StoredAttr::get(&context, fileName(weight->file),
                                         weight->name,
                                         storageOf(weight->storage)));
  }
}

GraphBuilder::GraphBuilder(MLIRContext &context,
                           const std::vector<Weight> &weights, int64_t vocab)
    : GraphBuilder(context, weights) {
  auto ids =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto type =
      builder.getFunctionType({ids}, {tensorOf({ShapedType::kDynamic, vocab})});
  function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), "forward", type);
  function.setResultAttr(0, "gpt.result", builder.getStringAttr("logits"));
  Block *body =
      builder.createBlock(&function.getBody(), {}, {ids},
                          {NameLoc::get(builder.getStringAttr("tokens"))});
  tokenIds = body->getArgument(0);
}

llvm::SmallVector<Value>
GraphBuilder::beginEntry(StringRef name, llvm::ArrayRef<Argument> arguments) {
  const int64_t any = ShapedType::kDynamic;
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Location> places;
  for (const Argument &argument : arguments) {
    types.push_back(
        argument.kind == Argument::Rows
            ? tensorOf({any, argument.channels})
            : RankedTensorType::get({any}, argument.kind == Argument::Flags
                                               ? builder.getI1Type()
                                               : builder.getI32Type()));
    places.push_back(NameLoc::get(builder.getStringAttr(argument.name)));
  }
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, builder.getUnknownLoc(), name,
                                  builder.getFunctionType(types, {}));
  for (auto [i, argument] : llvm::enumerate(arguments))
    function.setArgAttr(i, "gpt.arg", builder.getStringAttr(argument.name));
  Block *body = builder.createBlock(&function.getBody(), {}, types, places);
  return {body->getArguments().begin(), body->getArguments().end()};
}

void GraphBuilder::endEntry(StringRef name, Value result) {
  func::ReturnOp::create(builder, result.getLoc(), result);
  (void)function.insertResult(0, result.getType(),
                              builder.getDictionaryAttr(builder.getNamedAttr(
                                  "gpt.result", builder.getStringAttr(name))));
}

void GraphBuilder::enter(StringRef tensorPrefix, int64_t layer,
                         StringRef valuePrefix) {
  prefix = tensorPrefix.str();
  stem = valuePrefix.str();
  suffix = layer < 0 ? "" : "." + std::to_string(layer);
}

Location GraphBuilder::at(StringRef name) {
  return NameLoc::get(builder.getStringAttr(stem + name + suffix),
                      NameLoc::get(builder.getStringAttr(prefix)));
}

RankedTensorType GraphBuilder::tensorOf(llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

static llvm::ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

Value GraphBuilder::load(StringRef name, Weight weight) {
  return ml_program::GlobalLoadConstOp::create(
      builder, at(name), tensorOf(shapeOf(weight)),
      SymbolRefAttr::get(builder.getContext(), weight->name));
}

Value GraphBuilder::loadIfAny(StringRef name, Weight weight) {
  return weight ? load(name, weight) : Value();
}

Value GraphBuilder::positions(StringRef name, Value ids) {
  return gpt::PositionsOp::create(builder, at(name), ids.getType(), ids);
}

Value GraphBuilder::embedding(StringRef name, Value table, Value ids) {
  auto type = tensorOf({shapeOf(ids)[0], shapeOf(table)[1]});
  return gpt::EmbeddingOp::create(builder, at(name), type, table, ids);
}

Value GraphBuilder::layerNorm(StringRef name, Value x, Value gamma, Value beta,
                              double eps, bool sample) {
  return gpt::LayerNormOp::create(builder, at(name), x.getType(), x, gamma,
                                  beta, builder.getF64FloatAttr(eps),
                                  sample ? builder.getUnitAttr() : UnitAttr());
}

Value GraphBuilder::rmsNorm(StringRef name, Value x, Value gamma, double eps) {
  return gpt::RmsNormOp::create(builder, at(name), x.getType(), x, gamma,
                                builder.getF64FloatAttr(eps));
}

Value GraphBuilder::linear(StringRef name, Value x, Value weight, Value bias,
                           bool inOut) {
  auto type = tensorOf({shapeOf(x)[0], shapeOf(weight)[inOut ? 1 : 0]});
  return gpt::LinearOp::create(builder, at(name), type, x, weight, bias, inOut);
}

llvm::SmallVector<Value> GraphBuilder::split(StringRef name, Value x,
                                             int64_t parts) {
  llvm::SmallVector<int64_t> sizes(parts, shapeOf(x).back() / parts);
  return split(name, x, sizes);
}

llvm::SmallVector<Value> GraphBuilder::split(StringRef name, Value x,
                                             llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Type> types;
  for (int64_t size : sizes) {
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    shape.back() = size;
    types.push_back(tensorOf(shape));
  }
  auto op = gpt::SplitOp::create(builder, at(name), types, x);
  return {op.getParts().begin(), op.getParts().end()};
}

Value GraphBuilder::splitHeads(StringRef name, Value x, int64_t heads) {
  auto type = tensorOf({heads, shapeOf(x)[0], shapeOf(x)[1] / heads});
  return gpt::SplitHeadsOp::create(builder, at(name), type, x);
}

Value GraphBuilder::mergeHeads(StringRef name, Value x) {
  auto type = tensorOf({shapeOf(x)[1], shapeOf(x)[0] * shapeOf(x)[2]});
  return gpt::MergeHeadsOp::create(builder, at(name), type, x);
}

Value GraphBuilder::rope(StringRef name, Value x, Value positions,
                         gpt::RopeAttr rope) {
  return gpt::RopeOp::create(builder, at(name), x.getType(), x, positions,
                             rope);
}

Value GraphBuilder::activation(StringRef name, Activation kind, Value x) {
  if (kind == Activation::Silu)
    return gpt::SiluOp::create(builder, at(name), x.getType(), x);
  auto gelu = kind == Activation::GeluErf    ? gpt::GeluKind::Erf
              : kind == Activation::GeluTanh ? gpt::GeluKind::Tanh
                                             : gpt::GeluKind::Quick;
  return gpt::GeluOp::create(builder, at(name), x.getType(), x, gelu);
}

Value GraphBuilder::relu(StringRef name, Value x) {
  Value none = arith::ConstantOp::create(
      builder, at("none"),
      DenseElementsAttr::get(tensorOf({1}), builder.getF32FloatAttr(0)));
  Value zero = gpt::BroadcastOp::create(builder, at("zero"), x.getType(), none,
                                        ValueRange{x});
  return arith::MaximumFOp::create(builder, at(name), x, zero);
}

Value GraphBuilder::scale(StringRef name, Value x, double factor) {
  return gpt::ScaleOp::create(builder, at(name), x.getType(), x,
                              builder.getF64FloatAttr(factor));
}

Value GraphBuilder::selectRows(StringRef name, Value x, Value rows) {
  auto type = tensorOf({shapeOf(rows)[0], shapeOf(x)[1]});
  return gpt::SelectRowsOp::create(builder, at(name), type, x, rows);
}

Value GraphBuilder::logSoftmax(StringRef name, Value x) {
  return gpt::LogSoftmaxOp::create(builder, at(name), x.getType(), x);
}

Value GraphBuilder::add(StringRef name, Value a, Value b) {
  return arith::AddFOp::create(builder, at(name), a, b);
}

Value GraphBuilder::multiply(StringRef name, Value a, Value b) {
  return arith::MulFOp::create(builder, at(name), a, b);
}

Value GraphBuilder::softcap(StringRef name, Value x, double cap) {
  return gpt::SoftcapOp::create(builder, at(name), x.getType(), x,
                                builder.getF64FloatAttr(cap));
}

Value GraphBuilder::constant(StringRef name, int64_t size, double number) {
  auto numbers =
      DenseElementsAttr::get(tensorOf({size}), static_cast<float>(number));
  return arith::ConstantOp::create(builder, at(name), numbers);
}

Value GraphBuilder::matmul(StringRef name, Value a, Value b, bool transposeB,
                           int64_t groups) {
  auto type =
      tensorOf({shapeOf(a)[0], shapeOf(a)[1], shapeOf(b)[transposeB ? 1 : 2]});
  return gpt::MatmulOp::create(builder, at(name), type, a, b, transposeB,
                               groups);
}

Value GraphBuilder::attention(Value q, Value k, Value v, double factor,
                              int64_t groups, std::optional<int64_t> window,
                              std::optional<double> softcapAt) {
  Value scores = matmul("scores", q, k, /*transposeB=*/true, groups);
  if (factor != 1)
    scores = scale("scaled", scores, factor);
  if (softcapAt)
    scores = softcap("capped", scores, *softcapAt);
  scores = gpt::CausalMaskOp::create(
      builder, at("masked"), scores.getType(), scores,
      window ? builder.getI64IntegerAttr(*window) : IntegerAttr());
  Value weights =
      gpt::SoftmaxOp::create(builder, at("probs"), scores.getType(), scores);
  return matmul("heads", weights, v, /*transposeB=*/false, groups);
}

Value GraphBuilder::maskedAttention(Value q, Value k, Value v, Value mask,
                                    double factor) {
  Value scores = matmul("scores", q, k, /*transposeB=*/true, /*groups=*/1);
  scores = scale("scaled", scores, factor);
  scores = gpt::MaskOp::create(builder, at("masked"), scores.getType(), scores,
                               mask, builder.getF64FloatAttr(-1e9));
  Value weights =
      gpt::SoftmaxOp::create(builder, at("probs"), scores.getType(), scores);
  return matmul("heads", weights, v, /*transposeB=*/false, /*groups=*/1);
}

OwningOpRef<ModuleOp> GraphBuilder::finish(Value logits) {
  func::ReturnOp::create(builder, logits.getLoc(), logits);
  return std::move(module);
}
