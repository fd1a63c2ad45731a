//===- Mlir.cpp - Fuzzes the compiler from model.mlir to kernels ----------===//
//
// Input: MLIR text. It goes through the guard, the parser and the verifier,
// then through the rooms as `gptc` runs them up to the kernels' schedule. A
// phase that fails must have said why. libMLIR itself has no sanitizers in it.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "gptc/Dialect/Gpt/CheckModel.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <memory>
#include <random>

using namespace mlir;
using namespace gptc;

namespace {
/// A context that is made anew now and then: it keeps every attribute that it
/// has seen.
struct Compiler {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  unsigned errors = 0, runs = 0;

  Compiler() {
    DialectRegistry registry;
    registry
        .insert<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                math::MathDialect, tensor::TensorDialect,
                ml_program::MLProgramDialect, vector::VectorDialect,
                scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        ++errors;
      return success();
    });
  }

  bool phase(ModuleOp module, const char *silent,
             llvm::function_ref<void(OpPassManager &)> add) {
    PassManager manager(&context);
    add(manager);
    errors = 0;
    bool good = succeeded(manager.run(module));
    fuzz::require(good || errors, silent);
    return good;
  }

  /// The lexer looks at the byte after the last: a string has a zero there.
  void run(const std::string &text) {
    ++runs;
    std::string error;
    if (!bracketDepthOk(text, defaultBracketLimit, error))
      return fuzz::requireMessage(error);
    errors = 0;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    fuzz::require(module || errors, "the parser says why it fails");
    if (!module)
      return;
    errors = 0;
    bool valid = succeeded(verify(*module));
    fuzz::require(valid || errors, "the verifier says why it fails");
    if (!valid)
      return;
    errors = 0;
    bool checked = succeeded(checkModel(*module));
    fuzz::require(checked || errors, "the check says why it fails");
    if (!checked)
      return;
    for (bool fused : {true, false}) {
      OwningOpRef<ModuleOp> copy = module->clone();
      compile(*copy, fused);
    }
  }

  void compile(ModuleOp module, bool fused) {
    bool good =
        phase(module, "stepping says why it fails", [](OpPassManager &manager) {
          manager.addNestedPass<func::FuncOp>(createRemoveDropout());
          manager.addPass(createDeriveStep());
        });
    good = good && phase(module, "fusion says why it fails",
                         [&](OpPassManager &manager) {
                           if (!fused)
                             return buildUnfusedPipeline(manager);
                           FusionOptions options;
                           options.leastNormFeatures = 1;
                           buildFusionPipeline(manager, options);
                         });
    good = good && phase(module, "outlining says why it fails",
                         [](OpPassManager &manager) {
                           manager.addPass(createOutlineKernels());
                           manager.addPass(createVerifyOutlined());
                         });
    if (good)
      phase(module, "scheduling says why it fails", [](OpPassManager &manager) {
        manager.addPass(createSelectSchedule({"x86-64-v3"}));
      });
  }
};
} // namespace

/// The words of a text: names with their sigils, numbers, types, punctuation.
static std::vector<StringRef> wordsOf(StringRef text) {
  std::vector<StringRef> words;
  auto inWord = [](char c) {
    return llvm::isAlnum(c) || StringRef("%@#!._<>?*-\"").contains(c);
  };
  while (!text.empty()) {
    size_t length = text.size() - text.drop_while(inWord).size();
    length = std::max<size_t>(length, 1);
    words.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return words;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/// Mutated bytes seldom parse. Most mutations are of words: one becomes another
/// word of the text of the same beginning (an op another op, a value another
/// value), a number becomes a telling one, a line goes or comes twice.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  auto pick = [&](size_t count) { return random() % count; };
  if (size == 0 || pick(8) == 0)
    return LLVMFuzzerMutate(data, size, most);
  StringRef text(reinterpret_cast<const char *>(data), size);
  std::string out;
  if (pick(5) == 0) {
    llvm::SmallVector<StringRef> lines;
    text.split(lines, '\n');
    size_t chosen = pick(lines.size()), times = pick(2) * 2;
    size_t moved = pick(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i != chosen)
        out += (lines[i] + "\n").str();
      if (times && i == moved)
        out += (lines[chosen] + "\n").str();
    }
  } else {
    static const std::vector<StringRef> numbers = [] {
      llvm::SmallVector<StringRef> list;
      StringRef("0 1 -1 2 3 7 64 1024 2147483647 4294967296 "
                "9223372036854775807 -9223372036854775808 ? 1.0e-5 0.0 "
                "1.0e+308 0x7FC00000 f16 bf16 f64 i32 i64 index none true")
          .split(list, ' ');
      return std::vector<StringRef>(list.begin(), list.end());
    }();
    std::vector<StringRef> words = wordsOf(text);
    for (size_t changes = 1 + pick(3); changes--;) {
      StringRef &word = words[pick(words.size())];
      if (!llvm::isAlnum(word[0]) && !StringRef("%@#!").contains(word[0]))
        continue;
      size_t digit = word.find_first_of("0123456789?", pick(word.size()));
      if (digit != StringRef::npos && pick(2)) {
        // One number of a shape, in a string that lives as long as the words.
        static std::string changed[4];
        std::string &kept = changed[changes];
        StringRef tail = word.drop_front(digit).drop_while(
            [](char c) { return llvm::isDigit(c) || c == '?'; });
        kept = (word.take_front(digit) + numbers[pick(numbers.size())] + tail)
                   .str();
        word = kept;
        continue;
      }
      for (int tries = 0; tries < 20; ++tries) {
        StringRef other = words[pick(words.size())];
        if (other != word && other[0] == word[0]) {
          word = other;
          break;
        }
      }
    }
    for (StringRef word : words)
      out += word;
  }
  size = std::min(out.size(), most);
  std::memcpy(data, out.data(), size);
  return size;
}

/// LLVM's arenas poison what they have not handed out, but only in code that is
/// built with ASan: libMLIR hands out memory and leaves it poisoned.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<Compiler> compiler;
  if (!compiler || compiler->runs == 200)
    compiler = std::make_unique<Compiler>();
  compiler->run(std::string(fuzz::text(data, size)));
  return 0;
}
