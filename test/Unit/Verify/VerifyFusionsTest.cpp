// --verify-fusions: passes that keep the meaning are right, those that change
// it are found, at their place; big models are made smaller.
#include "gptc/Verify/VerifyFusions.h"
#include "Verify/Reduce.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace gptc::verify;
namespace gpt = gptc::gpt;

namespace {
/// x + linear(norm(x)), twice, with a vocabulary of 5000 words.
constexpr const char *text = R"(
!x = tensor<?x8xf32>
!c = tensor<8xf32>
!w = tensor<8x8xf32>
!v = tensor<5000x8xf32>
!l = tensor<?x5000xf32>
module attributes {gpt.vocab = 5000 : i64} {
  ml_program.global private @wte(#ml_program.extern<!v>) : !v
  ml_program.global private @g0(#ml_program.extern<!c>) : !c
  ml_program.global private @w0(#ml_program.extern<!w>) : !w {gpt.stored = #gpt.stored<"f", "w0", f32>}
  ml_program.global private @g1(#ml_program.extern<!c>) : !c
  ml_program.global private @w1(#ml_program.extern<!w>) : !w {gpt.stored = #gpt.stored<"f", "w1", STORAGE>}
  func.func @forward(%tokens: tensor<?xi32>) -> !l {
    %wte = ml_program.global_load_const @wte : !v
    %x0 = gpt.embedding %wte, %tokens : !v, tensor<?xi32> -> !x
    %g0 = ml_program.global_load_const @g0 : !c
    %w0 = ml_program.global_load_const @w0 : !w
    %n0 = gpt.rms_norm %x0, %g0 eps 1.0e-5 : !x, !c
    %y0 = gpt.linear %n0, %w0 : !x, !w -> !x
    %x1 = arith.addf %x0, %y0 : !x
    %g1 = ml_program.global_load_const @g1 : !c
    %w1 = ml_program.global_load_const @w1 : !w
    %n1 = gpt.rms_norm %x1, %g1 eps 1.0e-5 : !x, !c
    %y1 = gpt.linear %n1, %w1 : !x, !w -> !x
    %x2 = arith.addf %x1, %y1 : !x
    %logits = gpt.linear %x2, %wte : !x, !v -> !l
    return %logits : !l
  }
}
)";

/// Calls a function on the module.
struct Change : PassWrapper<Change, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Change)
  explicit Change(std::function<void(ModuleOp)> body) : body(std::move(body)) {}
  StringRef getArgument() const final { return "gpt-change"; }
  void runOnOperation() override { body(getOperation()); }
  std::function<void(ModuleOp)> body;
};

class VerifyTest : public testing::Test {
protected:
  VerifyTest() {
    DialectRegistry registry;
    registry.insert<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                    math::MathDialect, tensor::TensorDialect,
                    ml_program::MLProgramDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parse("f32");
  }

  OwningOpRef<ModuleOp> parse(StringRef storage) {
    std::string source = text;
    source.replace(source.find("STORAGE"), 7, storage.str());
    auto parsed = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(parsed);
    return parsed;
  }

  Verification verifyWith(std::function<void(ModuleOp)> change) {
    return verifyFusions(*module, [&](OpPassManager &manager) {
      manager.addPass(std::make_unique<Change>(change));
    });
  }

  template <typename Op> static Op nth(ModuleOp module, unsigned n) {
    llvm::SmallVector<Op> ops;
    module.walk([&](Op op) { ops.push_back(op); });
    return ops[n];
  }

  /// A linear as a fused_gemm; `factor` on its accumulator unless 1.
  static void fuse(gpt::LinearOp linear, float factor) {
    OpBuilder b(linear);
    auto gemm = gpt::FusedGemmOp::create(
        b, linear.getLoc(), TypeRange{linear.getType()}, Type(), linear.getX(),
        ValueRange{linear.getWeight()}, ValueRange(), ValueRange(), Value(),
        Value(), Value(), Value(), Value(), Value(), UnitAttr(),
        b.getDenseBoolArrayAttr({false}), b.getDenseBoolArrayAttr({false}),
        b.getArrayAttr({b.getUnitAttr()}),
        b.getArrayAttr(
            {gpt::AppendAttr::get(b.getContext(), gpt::Append::None)}),
        IntegerAttr(), IntegerAttr(), gpt::NormKindAttr(), FloatAttr(),
        IntegerAttr(), 1);
    Block *block = b.createBlock(&gemm.getEpilogues()[0], {}, {b.getF32Type()},
                                 {linear.getLoc()});
    Value y = block->getArgument(0);
    if (factor != 1) {
      Value f = arith::ConstantOp::create(b, linear.getLoc(),
                                          b.getF32FloatAttr(factor));
      y = arith::MulFOp::create(b, linear.getLoc(), y, f);
    }
    gpt::YieldOp::create(b, linear.getLoc(), y);
    linear.getResult().replaceAllUsesWith(gemm->getResult(0));
    linear.erase();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(VerifyTest, NothingChanged) {
  Verification found = verifyWith([](ModuleOp) {});
  EXPECT_TRUE(found.ok());
  EXPECT_TRUE(found.checks.empty());
  EXPECT_TRUE(found.notes.empty());
}

TEST_F(VerifyTest, RightFusion) {
  Verification found =
      verifyWith([](ModuleOp m) { fuse(nth<gpt::LinearOp>(m, 0), 1); });
  ASSERT_EQ(found.checks.size(), 1u);
  const FusionCheck &check = found.checks[0];
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.fusion, "change");
  EXPECT_EQ(check.made, "gpt.fused_gemm");
  EXPECT_EQ(check.of, "linear");
  EXPECT_EQ(check.doubleError, 0);
  EXPECT_GT(check.worst.error, 0); // that of f32
  EXPECT_EQ(check.worst.error, check.plainError);
}

TEST_F(VerifyTest, WrongByLittle) {
  // 1e-5 is small, but more than rounding.
  Verification found =
      verifyWith([](ModuleOp m) { fuse(nth<gpt::LinearOp>(m, 1), 1.00001f); });
  EXPECT_FALSE(found.ok());
  ASSERT_EQ(found.checks.size(), 1u); // what follows is right
  EXPECT_EQ(found.checks[0].of, "linear");
  // A rounding of the constant is none.
  found = verifyWith(
      [](ModuleOp m) { fuse(nth<gpt::LinearOp>(m, 1), 1.0000001f); });
  EXPECT_TRUE(found.ok());
}

TEST_F(VerifyTest, WrongByMuchIsFoundByItsPlace) {
  Verification found = verifyWith([](ModuleOp m) {
    fuse(nth<gpt::LinearOp>(m, 0), 3);
    fuse(nth<gpt::LinearOp>(m, 0), 1); // the second one, now
  });
  EXPECT_FALSE(found.ok());
  ASSERT_EQ(found.checks.size(), 1u);
  EXPECT_EQ(found.checks[0].count, 2);
  EXPECT_EQ(found.checks[0].of, "linear");
  EXPECT_FALSE(found.checks[0].ok());
}

TEST_F(VerifyTest, DroppedEpsilon) {
  auto drop = [](ModuleOp m) {
    nth<gpt::RmsNormOp>(m, 0).setEps(APFloat(1e-12));
  };
  Verification found = verifyWith(drop);
  // No fused op, but the function's result tells.
  EXPECT_FALSE(found.ok());
  ASSERT_EQ(found.checks.size(), 1u);
  EXPECT_EQ(found.checks[0].made, "result 0");
  found = verifyWith([&](ModuleOp m) {
    drop(m);
    fuse(nth<gpt::LinearOp>(m, 0), 1);
  });
  ASSERT_EQ(found.checks.size(), 1u);
  EXPECT_EQ(found.checks[0].of, "rms_norm, linear");
  EXPECT_FALSE(found.ok());
}

TEST_F(VerifyTest, AnotherNumberOfWordsOfTheSameSize) {
  // A value that exists, but is another one.
  Verification found = verifyWith([](ModuleOp m) {
    auto last = nth<gpt::LinearOp>(m, 2);
    last.getXMutable().assign(last.getX().getDefiningOp()->getOperand(0));
  });
  EXPECT_FALSE(found.ok());
}

TEST_F(VerifyTest, PassThatFails) {
  Verification found = verifyFusions(*module, [&](OpPassManager &manager) {
    struct Fails : Change {
      Fails() : Change([](ModuleOp) {}) {}
      std::unique_ptr<Pass> clonePass() const override {
        return std::make_unique<Fails>();
      }
      void runOnOperation() override {
        getOperation().emitError("expected luck");
        signalPassFailure();
      }
    };
    manager.addPass(std::make_unique<Fails>());
  });
  EXPECT_FALSE(found.ok());
  EXPECT_EQ(found.error, "a pass failed: expected luck");
}

TEST_F(VerifyTest, WhatCannotBeRunIsSaid) {
  auto function = *module->getOps<func::FuncOp>().begin();
  OpBuilder b(function);
  auto other = func::FuncOp::create(b, function.getLoc(), "other",
                                    b.getFunctionType({b.getIndexType()}, {}));
  b.setInsertionPointToEnd(other.addEntryBlock());
  func::ReturnOp::create(b, function.getLoc());
  Verification found = verifyWith([](ModuleOp) {});
  EXPECT_TRUE(found.ok());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_EQ(found.notes[0].find("@other was left out"), 0u) << found.notes[0];
  EXPECT_NE(reportText(found).find("\n0 fused ops and results verified; "
                                   "functions left out: 1\n"),
            std::string::npos)
      << reportText(found);
}

TEST_F(VerifyTest, ReportNamesWhatFails) {
  Verification found =
      verifyWith([](ModuleOp m) { fuse(nth<gpt::LinearOp>(m, 1), 2); });
  std::string report = reportText(found);
  EXPECT_NE(report.find("FAIL"), std::string::npos) << report;
  EXPECT_NE(report.find("is above the bound"), std::string::npos) << report;
}

TEST_F(VerifyTest, DistinctLayersStay) {
  auto layers = [](ModuleOp m) {
    auto function = *m.getOps<func::FuncOp>().begin();
    keepDistinctLayers(function);
    EXPECT_TRUE(succeeded(mlir::verify(m)));
    return llvm::range_size(function.getOps<gpt::RmsNormOp>());
  };
  EXPECT_EQ(layers(*module), 1u);
  EXPECT_EQ(layers(*parse("q8_0")), 2u); // kernels of their own
  OwningOpRef<ModuleOp> other = parse("f32");
  nth<gpt::RmsNormOp>(*other, 1).setEps(APFloat(1e-6));
  EXPECT_EQ(layers(*other), 2u);
}

TEST_F(VerifyTest, VocabularyIsCut) {
  EXPECT_EQ(weightElements(*module->getOps<func::FuncOp>().begin()),
            5000 * 8 + 2 * (8 + 64));
  EXPECT_TRUE(cutVocabulary(*module, 31));
  EXPECT_EQ(weightElements(*module->getOps<func::FuncOp>().begin()),
            31 * 8 + 2 * (8 + 64));
  EXPECT_TRUE(
      verifyWith([](ModuleOp m) { fuse(nth<gpt::LinearOp>(m, 2), 1); }).ok());
  // It is small enough.
  EXPECT_FALSE(cutVocabulary(*module, 31));
}

TEST_F(VerifyTest, TheTokensOfAWrongHead) {
  module = parseSourceString<ModuleOp>(R"(
    ml_program.global private @w(#ml_program.extern<tensor<40x8xf32>>) : tensor<40x8xf32>
    func.func @f(%x: tensor<?x8xf32>) -> tensor<?xi32> {
      %w = ml_program.global_load_const @w : tensor<40x8xf32>
      %y = gpt.linear %x, %w : tensor<?x8xf32>, tensor<40x8xf32> -> tensor<?x40xf32>
      %t = gpt.argmax %y : tensor<?x40xf32> -> tensor<?xi32>
      return %t : tensor<?xi32>
    })",
                                       &context);
  // The logits times `factor`; then the argmax in blocks.
  auto verified = [&](float factor) {
    return verifyWith([=](ModuleOp m) {
      fuse(nth<gpt::LinearOp>(m, 0), factor);
      auto gemm = nth<gpt::FusedGemmOp>(m, 0);
      auto argmax = nth<gpt::ArgmaxOp>(m, 0);
      OpBuilder b(argmax);
      auto type =
          RankedTensorType::get({ShapedType::kDynamic, 3}, b.getF32Type());
      auto clone = cast<gpt::FusedGemmOp>(b.clone(*gemm));
      OperationState state(gemm.getLoc(), gemm->getName(), gemm->getOperands(),
                           {type, type.clone(b.getI32Type())},
                           clone->getAttrs());
      state.addRegion()->takeBody(clone.getEpilogues()[0]);
      auto made = cast<gpt::FusedGemmOp>(b.create(state));
      made.setArgmax(16);
      made.getProperties().resultSegmentSizes = {2, 0};
      argmax.replaceAllUsesWith(
          gpt::MergeArgmaxOp::create(b, argmax.getLoc(), argmax.getType(),
                                     made.getOutputs()[0], made.getOutputs()[1])
              .getResult());
      argmax.erase();
      clone.erase();
      gemm.erase();
      EXPECT_TRUE(succeeded(mlir::verify(m)));
    });
  };
  // A scale above 0 is another number, but the same token.
  for (float factor : {1.0F, 2.0F}) {
    Verification right = verified(factor);
    EXPECT_TRUE(right.ok()) << reportText(right);
    ASSERT_EQ(right.checks.size(), 1u);
    EXPECT_EQ(right.checks[0].made, "gpt.merge_argmax");
    EXPECT_EQ(right.checks[0].of, "linear, argmax");
  }
  EXPECT_FALSE(verified(-1.0F).ok());
}
