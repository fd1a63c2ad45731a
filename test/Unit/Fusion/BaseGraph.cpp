//===- BaseGraph.cpp - a random GPT, plainly spelled ----------------------===//

#include "BaseGraph.h"
#include "mlir/IR/SymbolTable.h"
#include <cmath>

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;
using gptc::reference::makeTensor;
using gptc::reference::TensorRef;

func::FuncOp gptc::fuzz::functionOf(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

Value gptc::fuzz::addWeight(func::FuncOp function, Weights &weights,
                            llvm::StringRef name, TensorRef tensor) {
  std::string symbol = name.str();
  for (int i = 1; weights.contains(symbol); ++i)
    symbol = (name + "." + Twine(i)).str();
  OpBuilder builder(function);
  auto type = RankedTensorType::get(tensor->shape, builder.getF32Type());
  Location loc = NameLoc::get(builder.getStringAttr(symbol));
  ml_program::GlobalOp::create(
      builder, loc, symbol, type, /*is_mutable=*/false,
      ml_program::ExternAttr::get(builder.getContext(), type),
      builder.getStringAttr("private"));
  builder.setInsertionPointToStart(&function.getBody().front());
  weights[symbol] = std::move(tensor);
  return ml_program::GlobalLoadConstOp::create(
      builder, loc, type, FlatSymbolRefAttr::get(builder.getContext(), symbol));
}

namespace {
class Writer {
public:
  Writer(MLIRContext &context, const Recipe &recipe, Weights &weights)
      : r(recipe), b(&context), weights(weights), choice(recipe.seed) {}
  OwningOpRef<ModuleOp> run();

private:
  Location at(llvm::StringRef name) {
    return NameLoc::get(b.getStringAttr(name + suffix));
  }
  RankedTensorType typeOf(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, b.getF32Type());
  }
  /// `last` in place of the last dimension of x.
  RankedTensorType rowsLike(Value x, int64_t last) {
    llvm::SmallVector<int64_t> shape(
        cast<RankedTensorType>(x.getType()).getShape());
    shape.back() = last;
    return typeOf(shape);
  }
  Value weight(llvm::StringRef name, std::vector<int64_t> shape);
  Value linear(llvm::StringRef name, Value x, int64_t N, bool bias);
  Value norm(llvm::StringRef name, Value x);
  Value scaled(llvm::StringRef name, Value x, double factor);
  Value add(llvm::StringRef name, Value x, Value y);
  Value heads(llvm::StringRef name, Value x, int64_t count);
  Value attention(Value x);
  Value scores(Value q, Value k);
  Value mlp(Value x);
  Value layer(Value x);
  void addExtras(llvm::SmallVectorImpl<Value> &results);

  const Recipe &r;
  OpBuilder b;
  Weights &weights;
  Choice choice;
  std::string suffix;
  func::FuncOp function;
  Value positions, memory, mask;
};
} // namespace

/// Matrices keep the size of activations; vectors are around 1, so that they do
/// as scales and as biases.
Value Writer::weight(llvm::StringRef name, std::vector<int64_t> shape) {
  bool vector = shape.size() == 1;
  double radius =
      vector ? 0.5 : std::sqrt(3.0 / static_cast<double>(shape.back()));
  std::vector<double> data(*gptc::reference::elementCount(shape));
  for (double &element : data)
    element = static_cast<float>((vector ? 1.0 : 0.0) + radius * choice.unit());
  return addWeight(function, weights, (name + suffix).str(),
                   makeTensor(std::move(shape), std::move(data)));
}

Value Writer::linear(llvm::StringRef name, Value x, int64_t N, bool bias) {
  int64_t K = cast<RankedTensorType>(x.getType()).getShape().back();
  Value w = weight(("w" + name).str(), {N, K});
  Value c = bias ? weight(("b" + name).str(), {N}) : Value();
  return gpt::LinearOp::create(b, at(name), rowsLike(x, N), x, w, c, false);
}

Value Writer::norm(llvm::StringRef name, Value x) {
  int64_t C = cast<RankedTensorType>(x.getType()).getShape().back();
  Value gamma = weight(("gamma." + name).str(), {C});
  FloatAttr eps = b.getF64FloatAttr(r.eps);
  if (r.norm == Recipe::Norm::Rms)
    return gpt::RmsNormOp::create(b, at(name), x.getType(), x, gamma, eps);
  Value beta = r.norm == Recipe::Norm::Layer
                   ? weight(("beta." + name).str(), {C})
                   : Value();
  return gpt::LayerNormOp::create(b, at(name), x.getType(), x, gamma, beta,
                                  eps);
}

Value Writer::scaled(llvm::StringRef name, Value x, double factor) {
  if (factor == 1)
    return x;
  return gpt::ScaleOp::create(b, at(name), x.getType(), x,
                              b.getF64FloatAttr(factor));
}

Value Writer::add(llvm::StringRef name, Value x, Value y) {
  return arith::AddFOp::create(b, at(name), x,
                               scaled("s." + name.str(), y, r.residualScale));
}

/// [..., T, count * D] to [..., count, T, D], with the norm and the rotary
/// embedding that queries and keys get.
Value Writer::heads(llvm::StringRef name, Value x, int64_t count) {
  auto from = cast<RankedTensorType>(x.getType());
  llvm::SmallVector<int64_t> shape(from.getShape().drop_back(2));
  shape.append({count, from.getDimSize(from.getRank() - 2), r.D});
  Value h =
      gpt::SplitHeadsOp::create(b, at("h." + name.str()), typeOf(shape), x);
  if (name == "v")
    return h;
  if (r.headNorms)
    h = norm("n." + name.str(), h);
  if (r.positions != Recipe::Positions::Rope)
    return h;
  gpt::RopeScalingAttr scaling;
  if (r.llama3)
    scaling = gpt::RopeScalingAttr::get(b.getContext(), 8.0, 1.0, 4.0, 4);
  auto rope = gpt::RopeAttr::get(b.getContext(), r.base, r.pairs, r.D, scaling,
                                 r.rotary);
  return gpt::RopeOp::create(b, at("r." + name.str()), h.getType(), h,
                             positions, rope);
}

Value Writer::scores(Value q, Value k) {
  auto kType = cast<RankedTensorType>(k.getType());
  RankedTensorType type = rowsLike(q, kType.getDimSize(kType.getRank() - 2));
  Value s = gpt::MatmulOp::create(b, at("s"), type, q, k, true,
                                  static_cast<uint64_t>(r.H / r.G));
  if (r.scale != 0)
    s = scaled("ss", s, r.scale);
  if (r.softcap != 0)
    s = gpt::SoftcapOp::create(b, at("c"), type, s,
                               b.getF64FloatAttr(r.softcap));
  if (r.positions == Recipe::Positions::Alibi) {
    llvm::SmallVector<double> slopes;
    for (int64_t h = 0; h < r.H; ++h)
      slopes.push_back(std::exp2(-h - 1.0));
    s = gpt::AlibiOp::create(b, at("a"), type, s,
                             b.getDenseF64ArrayAttr(slopes));
  }
  if (mask)
    s = gpt::MaskOp::create(b, at("k"), type, s, mask,
                            r.mask == Recipe::Mask::Filled
                                ? b.getF64FloatAttr(r.fill)
                                : FloatAttr());
  if (r.causal)
    s = gpt::CausalMaskOp::create(b, at("m"), type, s,
                                  r.window ? b.getI64IntegerAttr(r.window)
                                           : IntegerAttr());
  return gpt::SoftmaxOp::create(b, at("p"), type, s);
}

Value Writer::attention(Value x) {
  int64_t Q = r.H * r.D, K = r.G * r.D;
  Value q, k, v;
  if (r.packed) {
    // One bias for all, or of the parts that have one.
    bool all = r.biases[0] && r.biases[1] && r.biases[2];
    Value packed = linear("qkv", x, 3 * Q, all);
    Type part = rowsLike(x, Q);
    auto split = gpt::SplitOp::create(b, at("qkv"), {part, part, part}, packed);
    auto biased = [&](unsigned i, llvm::StringRef name) -> Value {
      Value y = split.getResult(i);
      if (all || !r.biases[i])
        return y;
      Value bias = gpt::BroadcastOp::create(b, at(name), part,
                                            weight(("b" + name).str(), {Q}), y);
      return arith::AddFOp::create(b, at(name), y, bias);
    };
    q = biased(0, "q");
    k = biased(1, "k");
    v = biased(2, "v");
  } else {
    Value from = r.cross ? memory : x;
    q = linear("q", x, Q, r.biases[0]);
    k = linear("k", from, K, r.biases[1]);
    v = linear("v", from, K, r.biases[2]);
  }
  q = heads("q", q, r.H);
  k = heads("k", k, r.G);
  v = heads("v", v, r.G);
  Value o = gpt::MatmulOp::create(b, at("o"), q.getType(), scores(q, k), v,
                                  false, static_cast<uint64_t>(r.H / r.G));
  Value merged = gpt::MergeHeadsOp::create(b, at("g"), rowsLike(x, Q), o);
  return linear("proj", merged, r.C, r.biases[3]);
}

Value Writer::mlp(Value x) {
  using A = Recipe::Activation;
  Value up = linear("up", x, r.F, r.biases[4]), y = up;
  if (r.gated)
    y = linear("gate", x, r.F, r.biases[4]);
  Type type = up.getType();
  Location loc = at("act");
  switch (r.activation) {
  case A::GeluErf:
    y = gpt::GeluOp::create(b, loc, type, y, gpt::GeluKind::Erf);
    break;
  case A::GeluTanh:
    y = gpt::GeluOp::create(b, loc, type, y, gpt::GeluKind::Tanh);
    break;
  case A::GeluQuick:
    y = gpt::GeluOp::create(b, loc, type, y, gpt::GeluKind::Quick);
    break;
  case A::Silu:
    y = gpt::SiluOp::create(b, loc, type, y);
    break;
  case A::Relu: {
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value zero = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(scalar, b.getF32FloatAttr(0)));
    zero = gpt::BroadcastOp::create(b, loc, type, zero, y);
    y = arith::MaximumFOp::create(b, loc, y, zero);
    break;
  }
  case A::Tanh:
    y = math::TanhOp::create(b, loc, y);
    break;
  }
  if (r.gated)
    y = arith::MulFOp::create(b, at("gated"), y, up);
  return linear("down", y, r.C, r.biases[5]);
}

Value Writer::layer(Value x) {
  switch (r.order) {
  case Recipe::Order::Pre:
    x = add("x1", x, attention(norm("n1", x)));
    return add("x2", x, mlp(norm("n2", x)));
  case Recipe::Order::Post:
    x = norm("n1", add("x1", x, attention(x)));
    return norm("n2", add("x2", x, mlp(x)));
  case Recipe::Order::Parallel: {
    Value n = norm("n1", x);
    Value a = attention(n), m = mlp(n);
    return add("x2", add("x1", x, a), m);
  }
  case Recipe::Order::Sandwich:
    x = add("x1", x, norm("n3", attention(norm("n1", x))));
    return add("x2", x, norm("n4", mlp(norm("n2", x))));
  }
  llvm_unreachable("unknown order");
}

/// Any activation may have another user: here the caller.
void Writer::addExtras(llvm::SmallVectorImpl<Value> &results) {
  llvm::SmallVector<Value> values;
  for (Operation &op : function.getBody().front())
    if (!isa<ml_program::GlobalLoadConstOp, arith::ConstantOp,
             gpt::BroadcastOp>(op))
      for (Value value : op.getResults())
        if (auto type = dyn_cast<RankedTensorType>(value.getType());
            type && type.getElementType().isF32())
          values.push_back(value);
  bool rowsOnly = r.kind == Recipe::Kind::Step && choice.chance(80);
  if (rowsOnly)
    llvm::erase_if(values, [](Value value) {
      return cast<RankedTensorType>(value.getType()).getRank() != 2;
    });
  for (int64_t i = 0; i < r.extras; ++i)
    results.push_back(choice.in(values));
}

OwningOpRef<ModuleOp> Writer::run() {
  using Kind = Recipe::Kind;
  constexpr int64_t any = ShapedType::kDynamic;
  OwningOpRef<ModuleOp> module = ModuleOp::create(b, b.getUnknownLoc());
  b.setInsertionPointToStart(module->getBody());
  bool tokens = r.kind == Kind::Step || r.kind == Kind::Static;
  int64_t T = r.kind == Kind::Step || r.kind == Kind::Rows ? any : r.T;
  // The arguments, by name.
  llvm::SmallVector<std::pair<std::string, Type>> inputs;
  auto ids = RankedTensorType::get({T}, b.getI32Type());
  if (tokens) {
    (*module)->setAttr("gpt.vocab", b.getI64IntegerAttr(r.V));
    (*module)->setAttr("gpt.context", b.getI64IntegerAttr(r.context));
    inputs.emplace_back("tokens", ids);
  } else {
    llvm::SmallVector<int64_t> shape;
    if (r.kind == Kind::Batch)
      shape.push_back(r.B);
    shape.append({T, r.C});
    inputs.emplace_back("x", typeOf(shape));
    if (r.positions == Recipe::Positions::Rope)
      inputs.emplace_back("positions", ids);
    if (r.cross)
      inputs.emplace_back("memory", typeOf(shape));
    auto flag = b.getI1Type();
    switch (r.mask) {
    case Recipe::Mask::None:
      break;
    case Recipe::Mask::Additive:
      inputs.emplace_back("mask", typeOf({T, T}));
      break;
    case Recipe::Mask::AdditiveByHead:
      inputs.emplace_back("mask", typeOf({r.H, T, T}));
      break;
    case Recipe::Mask::Boolean:
    case Recipe::Mask::Filled:
      inputs.emplace_back("mask", RankedTensorType::get({T, T}, flag));
      break;
    case Recipe::Mask::Padding:
      inputs.emplace_back("mask", RankedTensorType::get({T}, flag));
      break;
    }
  }
  llvm::SmallVector<Type> types;
  for (auto &input : inputs)
    types.push_back(input.second);
  function = func::FuncOp::create(b, at("f"), tokens ? "forward" : "block",
                                  b.getFunctionType(types, {}));
  Block *body = function.addEntryBlock();
  for (auto [i, input] : llvm::enumerate(inputs)) {
    function.setArgAttr(i, "gpt.arg", b.getStringAttr(input.first));
    Value argument = body->getArgument(i);
    if (input.first == "positions")
      positions = argument;
    if (input.first == "memory")
      memory = argument;
    if (input.first == "mask")
      mask = argument;
  }
  b.setInsertionPointToEnd(body);

  Value x = body->getArgument(0), wte;
  if (tokens) {
    positions = gpt::PositionsOp::create(b, at("pos"), ids, x);
    wte = weight("wte", {r.V, r.C});
    x = gpt::EmbeddingOp::create(b, at("x0"), typeOf({T, r.C}), wte, x);
    x = scaled("e", x, r.embeddingScale);
    if (r.positions == Recipe::Positions::Learned) {
      Value wpe = weight("wpe", {r.context, r.C});
      Value p =
          gpt::EmbeddingOp::create(b, at("p0"), x.getType(), wpe, positions);
      x = arith::AddFOp::create(b, at("x1"), x, p);
    }
  }
  for (int64_t i = 0; i < r.layers; ++i) {
    suffix = "." + std::to_string(i);
    x = layer(x);
  }
  suffix.clear();
  if (tokens) {
    x = norm("y", x);
    if (!r.tied)
      wte = weight("head", {r.V, r.C});
    x = gpt::LinearOp::create(b, at("logits"), rowsLike(x, r.V), x, wte,
                              Value(), false);
    x = scaled("ls", x, r.logitScale);
    if (r.logitCap != 0)
      x = gpt::SoftcapOp::create(b, at("lc"), x.getType(), x,
                                 b.getF64FloatAttr(r.logitCap));
  }
  llvm::SmallVector<Value> results;
  if (r.logits)
    results.push_back(x);
  if (r.argmax)
    results.push_back(gpt::ArgmaxOp::create(b, at("next"), ids, x));
  addExtras(results);
  func::ReturnOp::create(b, at("return"), results);
  llvm::SmallVector<Type> resultTypes(ValueRange(results).getTypes());
  function.setType(b.getFunctionType(types, resultTypes));
  llvm::SmallVector<Attribute> names;
  for (size_t i = 0; i < results.size(); ++i)
    function.setResultAttr(
        i, "gpt.result",
        b.getStringAttr(i ? "extra" + std::to_string(i) : std::string("out")));
  return module;
}

OwningOpRef<ModuleOp> gptc::fuzz::buildBase(MLIRContext &context,
                                            const Recipe &recipe,
                                            Weights &weights) {
  return Writer(context, recipe, weights).run();
}
