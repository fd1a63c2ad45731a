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

GraphBuilder::GraphBuilder(MLIRContext &context,
                           const std::vector<Weight> &weights, int64_t vocab)
    : builder(&context) {
  context.loadDialect<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                      ml_program::MLProgramDialect>();
  Location unknown = builder.getUnknownLoc();
  module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(module->getBody());
  for (Weight weight : weights) {
    auto type = tensorOf(weight->shape);
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

  auto ids =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto type =
      builder.getFunctionType({ids}, {tensorOf({ShapedType::kDynamic, vocab})});
  auto function = func::FuncOp::create(builder, unknown, "forward", type);
  function.setResultAttr(0, "gpt.result", builder.getStringAttr("logits"));
  Block *body =
      builder.createBlock(&function.getBody(), {}, {ids},
                          {NameLoc::get(builder.getStringAttr("tokens"))});
  tokenIds = body->getArgument(0);
}

void GraphBuilder::enter(StringRef tensorPrefix, int64_t layer) {
  prefix = tensorPrefix.str();
  suffix = layer < 0 ? "" : "." + std::to_string(layer);
}

Location GraphBuilder::at(StringRef name) {
  return NameLoc::get(builder.getStringAttr(name + suffix),
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
      builder, at(name), tensorOf(weight->shape),
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
                              double eps) {
  return gpt::LayerNormOp::create(builder, at(name), x.getType(), x, gamma,
                                  beta, builder.getF64FloatAttr(eps));
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

Value GraphBuilder::add(StringRef name, Value a, Value b) {
  return arith::AddFOp::create(builder, at(name), a, b);
}

Value GraphBuilder::multiply(StringRef name, Value a, Value b) {
  return arith::MulFOp::create(builder, at(name), a, b);
}

Value GraphBuilder::scale(StringRef name, Value x, double factor) {
  return gpt::ScaleOp::create(builder, at(name), x.getType(), x,
                              builder.getF64FloatAttr(factor));
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

OwningOpRef<ModuleOp> GraphBuilder::finish(Value logits) {
  func::ReturnOp::create(builder, logits.getLoc(), logits);
  return std::move(module);
}
