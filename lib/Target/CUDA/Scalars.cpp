//===- Scalars.cpp - scalar ops as C++ expressions ------------------------===//
//
// Elementwise arith, math and gpt ops, on f32, i32 and i1, as the functions of
// Kernels/math.cuh and plain operators say them. Products are not contracted
// into sums (-fmad=false); math.fma is.
//
//===----------------------------------------------------------------------===//
#include "Writer.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

StringRef gptc::cuda::scalarType(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF32() ? "float" : element.isInteger(1) ? "bool" : "int";
}

/// x op y that holds for ordered numbers; unordered ones give `unordered`.
static std::string compare(arith::CmpFPredicate predicate, StringRef x,
                           StringRef y) {
  using P = arith::CmpFPredicate;
  auto text = [&](const char *format) {
    return fmt::format(fmt::runtime(format), x.str(), y.str());
  };
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return text("{0} == {1}");
  case P::OGT:
    return text("{0} > {1}");
  case P::OGE:
    return text("{0} >= {1}");
  case P::OLT:
    return text("{0} < {1}");
  case P::OLE:
    return text("{0} <= {1}");
  case P::ONE:
    return text("{0} < {1} || {0} > {1}");
  case P::ORD:
    return text("{0} == {0} && {1} == {1}");
  case P::UEQ:
    return text("!({0} < {1} || {0} > {1})");
  case P::UGT:
    return text("!({0} <= {1})");
  case P::UGE:
    return text("!({0} < {1})");
  case P::ULT:
    return text("!({0} >= {1})");
  case P::ULE:
    return text("!({0} > {1})");
  case P::UNE:
    return text("{0} != {1}");
  case P::UNO:
    return text("{0} != {0} || {1} != {1}");
  }
  return "";
}

static std::string compare(arith::CmpIPredicate predicate, StringRef x,
                           StringRef y) {
  using P = arith::CmpIPredicate;
  bool isUnsigned = predicate >= P::ult;
  StringRef sign = predicate == P::eq                           ? "=="
                   : predicate == P::ne                         ? "!="
                   : predicate == P::slt || predicate == P::ult ? "<"
                   : predicate == P::sle || predicate == P::ule ? "<="
                   : predicate == P::sgt || predicate == P::ugt ? ">"
                                                                : ">=";
  std::string cast = isUnsigned ? "unsigned" : "";
  return fmt::format("{0}({1}) {2} {0}({3})", cast, x.str(), sign.str(),
                     y.str());
}

static std::string constant(arith::ConstantOp op) {
  Attribute v = op.getValue();
  if (auto dense = dyn_cast<DenseElementsAttr>(v); dense && dense.isSplat())
    v = dense.getSplatValue<Attribute>();
  if (auto i = dyn_cast<IntegerAttr>(v)) {
    if (i.getType().isInteger(1))
      return i.getValue().isZero() ? "false" : "true";
    if (i.getType().isInteger(32))
      return fmt::format("{}", i.getValue().getSExtValue());
  }
  if (auto f = dyn_cast<FloatAttr>(v); f && f.getType().isF32())
    return number(f.getValue().convertToFloat());
  return "";
}

std::string gptc::cuda::expressionOf(Operation *op, ArrayRef<std::string> in) {
  auto infix = [&](const char *sign) {
    return fmt::format("{} {} {}", in[0], sign, in[1]);
  };
  auto call = [&](const char *function) {
    return fmt::format("{}({})", function, llvm::join(in, ", "));
  };
  return TypeSwitch<Operation *, std::string>(op)
      .Case([&](arith::AddFOp) { return infix("+"); })
      .Case([&](arith::SubFOp) { return infix("-"); })
      .Case([&](arith::MulFOp) { return infix("*"); })
      .Case([&](arith::DivFOp) { return infix("/"); })
      // Sums of integers wrap.
      .Case([&](arith::AddIOp) {
        return fmt::format("int(unsigned({}) + unsigned({}))", in[0], in[1]);
      })
      .Case([&](arith::SubIOp) {
        return fmt::format("int(unsigned({}) - unsigned({}))", in[0], in[1]);
      })
      .Case([&](arith::NegFOp) { return "-" + in[0]; })
      .Case([&](arith::MaximumFOp) { return call("gptc::maximum"); })
      .Case([&](arith::MinimumFOp) { return call("gptc::minimum"); })
      .Case([&](math::FmaOp) { return call("fmaf"); })
      .Case([&](math::ExpOp) { return call("gptc::exp_f32"); })
      .Case([&](math::TanhOp) { return call("gptc::tanh_f32"); })
      .Case([&](math::ErfOp) { return call("gptc::erf_f32"); })
      .Case([&](math::SqrtOp) { return call("sqrtf"); })
      .Case([&](math::RsqrtOp) { return "1.0f / " + call("sqrtf"); })
      .Case([&](math::AbsFOp) { return call("fabsf"); })
      .Case([&](gpt::GeluOp g) {
        return fmt::format("gptc::gelu_{}({})",
                           stringifyGeluKind(g.getKind()).str(), in[0]);
      })
      .Case([&](gpt::SiluOp) { return call("gptc::silu"); })
      .Case([&](gpt::SoftcapOp s) {
        return fmt::format("gptc::softcap({}, {})", in[0],
                           number(float(s.getCap().convertToDouble())));
      })
      .Case([&](gpt::ScaleOp s) {
        return fmt::format("{} * {}", in[0],
                           number(float(s.getFactor().convertToDouble())));
      })
      .Case([&](arith::CmpFOp c) {
        return compare(c.getPredicate(), in[0], in[1]);
      })
      .Case([&](arith::CmpIOp c) {
        return compare(c.getPredicate(), in[0], in[1]);
      })
      .Case([&](arith::SelectOp) {
        return fmt::format("{} ? {} : {}", in[0], in[1], in[2]);
      })
      .Case([&](arith::AndIOp) { return infix("&"); })
      .Case([&](arith::OrIOp) { return infix("|"); })
      .Case([&](arith::XOrIOp) { return infix("^"); })
      .Case([&](arith::ConstantOp c) {
        std::string text = constant(c);
        if (text.empty())
          c.emitOpError("expected an f32, i32 or i1; the CUDA target has no "
                        "code for this one");
        return text;
      })
      .Default([&](Operation *other) {
        other->emitOpError("expected an elementwise op of arith, math or gpt; "
                           "the CUDA target has no code for this one");
        return std::string();
      });
}
