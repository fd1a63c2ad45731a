//===- Evaluate.h - evaluates small MLIR texts in tests ---------*- C++ -*-===//

#ifndef GPTC_TEST_UNIT_REFERENCE_EVALUATE_H
#define GPTC_TEST_UNIT_REFERENCE_EVALUATE_H

#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Reference/Evaluator.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace gptc::reference {

/// Parses a module and runs its function @f.
class EvaluateTest : public testing::Test {
protected:
  EvaluateTest() {
    mlir::DialectRegistry registry;
    registry.insert<gpt::GptDialect, mlir::func::FuncDialect,
                    mlir::arith::ArithDialect, mlir::math::MathDialect,
                    mlir::tensor::TensorDialect,
                    mlir::ml_program::MLProgramDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    handler = std::make_unique<mlir::ScopedDiagnosticHandler>(
        &context, [this](mlir::Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
          return mlir::success();
        });
  }

  /// Results of @f, or of the first function when there is none of that name;
  /// a failure is in `messages`.
  mlir::FailureOr<Results> tryRun(llvm::StringRef text,
                                  llvm::ArrayRef<TensorRef> args,
                                  WeightSource *weights = nullptr) {
    messages.clear();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return mlir::failure();
    auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
    if (!function)
      return mlir::failure();
    Evaluator evaluator(weights);
    return evaluator.run(function, args);
  }

  /// The elements of the first result of @f.
  std::vector<double> run(llvm::StringRef text, llvm::ArrayRef<TensorRef> args,
                          WeightSource *weights = nullptr) {
    mlir::FailureOr<Results> results = tryRun(text, args, weights);
    EXPECT_TRUE(mlir::succeeded(results)) << messages;
    if (mlir::failed(results) || results->empty())
      return {};
    const Tensor &first = *results->front();
    if (first.kind == Tensor::Kind::Int)
      return {first.ints.begin(), first.ints.end()};
    return first.data;
  }

  /// The diagnostics of a run that must fail.
  std::string error(llvm::StringRef text, llvm::ArrayRef<TensorRef> args,
                    WeightSource *weights = nullptr) {
    EXPECT_TRUE(mlir::failed(tryRun(text, args, weights)));
    return messages;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  std::string messages;
};

/// |got - expected| <= tolerance everywhere, so that NaN fails.
inline void expectNear(llvm::ArrayRef<double> got,
                       llvm::ArrayRef<double> expected,
                       double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::abs(got[i] - expected[i]) <= tolerance)
        << "element " << i << ": got " << got[i] << ", expected "
        << expected[i];
}

inline void expectContains(llvm::StringRef text, llvm::StringRef part) {
  EXPECT_TRUE(text.contains(part))
      << "no '" << part.str() << "' in: " << text.str();
}

/// `count` times `value`.
inline std::vector<double> repeat(int64_t count, double value) {
  return std::vector<double>(count, value);
}
/// 0, 1, ..., count - 1.
inline std::vector<double> iota(int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = i;
  return values;
}

} // namespace gptc::reference

#endif // GPTC_TEST_UNIT_REFERENCE_EVALUATE_H
