//===- Elementwise.cpp - arith, math, gelu, silu and softcap --------------===//
//
// One table of scalar functions serves tensors and the scalar ops in the
// epilogue of a fused op.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

namespace {
using Args = llvm::ArrayRef<double>;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// x * gate(x), where gate(-inf) is 0: the limit of the product is -0, while
/// IEEE arithmetic would give -inf * 0 = NaN.
template <typename Gate> double gated(double x, Gate gate) {
  if (x == -std::numeric_limits<double>::infinity())
    return -0.0;
  return x * gate(x);
}

double gelu(gpt::GeluKind kind, double x) {
  switch (kind) {
  case gpt::GeluKind::Erf:
    // Phi(x), by erfc: 1 + erf cancels in the negative tail.
    return gated(x, [](double v) { return 0.5 * std::erfc(-v / M_SQRT2); });
  case gpt::GeluKind::Tanh:
    // (1 + tanh u) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
    return gated(x, [](double v) {
      double u = std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v);
      return sigmoid(2.0 * u);
    });
  case gpt::GeluKind::Quick:
    return gated(x, [](double v) { return sigmoid(1.702 * v); });
  }
  llvm_unreachable("unknown GELU kind");
}

bool compare(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return a != b;
  }
  llvm_unreachable("unknown predicate");
}

bool compareSigned(arith::CmpIPredicate predicate, double a, double b) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  default:
    return a >= b;
  }
}

/// maximum and minimum of IEEE 754-2019: NaN if either is NaN.
double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
}
double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
}

ScalarFunction arithFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, ScalarFunction>(op)
      .Case([](arith::AddFOp) { return [](Args x) { return x[0] + x[1]; }; })
      .Case([](arith::SubFOp) { return [](Args x) { return x[0] - x[1]; }; })
      .Case([](arith::MulFOp) { return [](Args x) { return x[0] * x[1]; }; })
      .Case([](arith::DivFOp) { return [](Args x) { return x[0] / x[1]; }; })
      .Case([](arith::RemFOp) {
        return [](Args x) { return std::fmod(x[0], x[1]); };
      })
      .Case([](arith::NegFOp) { return [](Args x) { return -x[0]; }; })
      .Case([](arith::MaximumFOp) {
        return [](Args x) { return maximum(x[0], x[1]); };
      })
      .Case([](arith::MinimumFOp) {
        return [](Args x) { return minimum(x[0], x[1]); };
      })
      .Case([](arith::MaxNumFOp) {
        return [](Args x) { return std::fmax(x[0], x[1]); };
      })
      .Case([](arith::MinNumFOp) {
        return [](Args x) { return std::fmin(x[0], x[1]); };
      })
      .Case([](arith::CmpFOp cmp) {
        return [p = cmp.getPredicate()](Args x) {
          return double(compare(p, x[0], x[1]));
        };
      })
      .Case([](arith::CmpIOp cmp) -> ScalarFunction {
        if (cmp.getPredicate() > arith::CmpIPredicate::sge)
          return nullptr; // unsigned: no graph needs it
        return [p = cmp.getPredicate()](Args x) {
          return double(compareSigned(p, x[0], x[1]));
        };
      })
      .Case([](arith::SelectOp) {
        return [](Args x) { return x[0] != 0.0 ? x[1] : x[2]; };
      })
      .Case([](arith::AddIOp) { return [](Args x) { return x[0] + x[1]; }; })
      .Case([](arith::SubIOp) { return [](Args x) { return x[0] - x[1]; }; })
      .Case([](arith::MulIOp) { return [](Args x) { return x[0] * x[1]; }; })
      .Case([](arith::AndIOp) {
        return [](Args x) { return double(int64_t(x[0]) & int64_t(x[1])); };
      })
      .Case([](arith::OrIOp) {
        return [](Args x) { return double(int64_t(x[0]) | int64_t(x[1])); };
      })
      .Case([](arith::XOrIOp) {
        return [](Args x) { return double(int64_t(x[0]) ^ int64_t(x[1])); };
      })
      .Case<arith::SIToFPOp, arith::IndexCastOp, arith::ExtFOp>(
          [](Operation *) { return [](Args x) { return x[0]; }; })
      .Default([](Operation *) { return nullptr; });
}

ScalarFunction mathFunction(Operation *op) {
  auto unary = [](double (*function)(double)) -> ScalarFunction {
    return [function](Args x) { return function(x[0]); };
  };
  return llvm::TypeSwitch<Operation *, ScalarFunction>(op)
      .Case([&](math::ExpOp) { return unary(std::exp); })
      .Case([&](math::Exp2Op) { return unary(std::exp2); })
      .Case([&](math::ExpM1Op) { return unary(std::expm1); })
      .Case([&](math::LogOp) { return unary(std::log); })
      .Case([&](math::Log2Op) { return unary(std::log2); })
      .Case([&](math::Log1pOp) { return unary(std::log1p); })
      .Case([&](math::TanhOp) { return unary(std::tanh); })
      .Case([&](math::ErfOp) { return unary(std::erf); })
      .Case([&](math::ErfcOp) { return unary(std::erfc); })
      .Case([&](math::SinOp) { return unary(std::sin); })
      .Case([&](math::CosOp) { return unary(std::cos); })
      .Case([&](math::SqrtOp) { return unary(std::sqrt); })
      .Case([&](math::AbsFOp) { return unary(std::fabs); })
      .Case([&](math::RsqrtOp) {
        return [](Args x) { return 1.0 / std::sqrt(x[0]); };
      })
      .Case([](math::PowFOp) {
        return [](Args x) { return std::pow(x[0], x[1]); };
      })
      .Case([](math::FmaOp) {
        return [](Args x) { return std::fma(x[0], x[1], x[2]); };
      })
      .Default([](Operation *) { return nullptr; });
}
} // namespace

ScalarFunction gptc::reference::scalarFunction(Operation *op) {
  if (auto op1 = dyn_cast<gpt::GeluOp>(op))
    return [kind = op1.getKind()](Args x) { return gelu(kind, x[0]); };
  if (isa<gpt::SiluOp>(op))
    return [](Args x) { return gated(x[0], sigmoid); };
  if (auto softcap = dyn_cast<gpt::SoftcapOp>(op))
    return [cap = softcap.getCap().convertToDouble()](Args x) {
      return cap * std::tanh(x[0] / cap);
    };
  if (ScalarFunction function = arithFunction(op))
    return function;
  return mathFunction(op);
}

Outcome gptc::reference::evalElementwise(const Call &call,
                                         const ScalarFunction &function) {
  // Operands have one shape; only a select's condition may be a lone scalar.
  const Tensor &shaped = *call.operands.back();
  for (const TensorRef &operand : call.operands)
    if (operand->rank() != 0 && operand->shape != shaped.shape)
      return call.op->emitError("expected operands of one shape, got ")
             << shapeText(operand->shape) << " and " << shapeText(shaped.shape);
  auto result = allocate(call.op, shaped.shape);
  if (!result)
    return failure();
  Type element = getElementTypeOrSelf(call.op->getResult(0).getType());
  Rounding round = isa<FloatType>(element) ? call.round : Rounding();
  llvm::SmallVector<double, 3> args(call.operands.size());
  for (int64_t i = 0, e = result->elements(); i < e; ++i) {
    for (auto [arg, operand] : llvm::zip(args, call.operands))
      arg = operand->at(operand->rank() == 0 ? 0 : i);
    result->data[i] = round(function(args));
  }
  if (element.isIntOrIndex()) {
    result->kind = Tensor::Kind::Int;
    result->ints.assign(result->data.begin(), result->data.end());
    if (element.isInteger(32)) // wraps
      for (int64_t &each : result->ints)
        each = static_cast<int32_t>(each);
    result->data.clear();
  }
  return Results{result};
}
