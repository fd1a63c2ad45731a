//===- FuzzFusion.cpp - random graphs, respelled, fused, compared ---------===//
//
//   gptc-fuzz-fusion [--first SEED] [--count N] [--seed SEED] [--caught]
//
// A seed makes a graph, respells it, and compiles it with all fusions and with
// none; all four are evaluated and must agree, and no GEMM may be computed
// twice. On failure the respellings that are not needed are left out, and the
// graph is printed. --seed runs one graph and prints it. --caught expects a
// failure: for builds with a planted bug.
//
//===----------------------------------------------------------------------===//

#include "Agreement.h"
#include "Respell.h"
#include "gptc/Verify/VerifyFusions.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstring>

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;
namespace verify = gptc::verify;

namespace {
struct Counts {
  int64_t graphs = 0, steps = 0, respellings = 0, gemms = 0, attentions = 0,
          leftMatmuls = 0, leftLinears = 0, checks = 0;
  std::map<llvm::StringRef, int64_t> rules;
};

struct Case {
  Recipe recipe;
  std::vector<Respelling> respellings;
  bool proof = false; // by --verify-fusions, too
};

class Fuzzer {
public:
  Fuzzer();
  /// Whether the graph of `seed` agrees; else it is reported.
  bool run(uint64_t seed, bool print);
  Counts counts;

private:
  std::string check(const Case &input, bool count);
  OwningOpRef<ModuleOp> respelled(const Case &input, ModuleOp base,
                                  Weights &weights, bool count);

  MLIRContext context;
  std::string messages;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  std::string text; // of the respelled graph
};
} // namespace

Fuzzer::Fuzzer()
    : context(
          [] {
            DialectRegistry registry;
            registry
                .insert<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                        math::MathDialect, tensor::TensorDialect,
                        ml_program::MLProgramDialect>();
            return registry;
          }(),
          MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  handler = std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](Diagnostic &diagnostic) {
        messages += diagnostic.str() + "\n";
        return success();
      });
}

static Case caseOf(uint64_t seed) {
  Choice choice(seed);
  Case made{randomRecipe(choice), {}, seed % 4 == 0};
  int64_t count = choice.between(0, 14);
  for (int64_t i = 0; i < count; ++i)
    made.respellings.push_back(randomRespelling(choice));
  return made;
}

/// Multiplications of the GEMMs for one row.
static int64_t gemmWork(ModuleOp module) {
  int64_t work = 0;
  auto add = [&](Value weight) {
    work += cast<RankedTensorType>(weight.getType()).getNumElements();
  };
  module->walk([&](Operation *op) {
    if (auto linear = dyn_cast<gpt::LinearOp>(op))
      add(linear.getWeight());
    else if (auto gemm = dyn_cast<gpt::FusedGemmOp>(op))
      llvm::for_each(gemm.getWeights(), add);
  });
  return work;
}

OwningOpRef<ModuleOp> Fuzzer::respelled(const Case &input, ModuleOp base,
                                        Weights &weights, bool count) {
  OwningOpRef<ModuleOp> module = base.clone();
  for (const Respelling &each : input.respellings)
    if (respell(functionOf(*module), weights, each) && count) {
      ++counts.respellings;
      ++counts.rules[nameOf(each)];
    }
  return module;
}

std::string Fuzzer::check(const Case &input, bool count) {
  messages.clear();
  text.clear();
  Weights weights;
  OwningOpRef<ModuleOp> base = buildBase(context, input.recipe, weights);
  if (failed(mlir::verify(*base)))
    return "the base graph is not valid";
  Expected expected;
  std::string wrong = expectedOf(*base, input.recipe, weights, expected);
  if (!wrong.empty())
    return wrong;
  OwningOpRef<ModuleOp> module = respelled(input, *base, weights, count);
  llvm::raw_string_ostream(text) << *module;
  if (failed(mlir::verify(*module)))
    return "the respelled graph is not valid";
  wrong = compareWith(expected, *module, weights, "respelled");
  if (!wrong.empty())
    return wrong;
  for (bool fuse : {true, false}) {
    llvm::StringRef name = fuse ? "fused" : "unfused";
    OwningOpRef<ModuleOp> compiled = module->clone();
    if (failed(compile(*compiled, fuse)))
      return (name + ": a pass failed").str();
    wrong = compareWith(expected, *compiled, weights, name);
    if (!wrong.empty())
      return wrong;
    if (gemmWork(*compiled) > gemmWork(*module))
      return (name + ": a GEMM is computed twice").str();
    if (!fuse)
      continue;
    // Nothing right is called wrong.
    if (input.proof) {
      verify::Verification found = verify::verifyFusions(
          *module, [](OpPassManager &manager) { addPasses(manager, true); });
      counts.checks += count ? found.checks.size() : 0;
      if (!found.ok() || !found.notes.empty())
        return "--verify-fusions:\n" + verify::reportText(found);
    }
    if (!count)
      continue;
    ++counts.graphs;
    counts.steps += bool(compiled->lookupSymbol("step"));
    compiled->walk([&](Operation *op) {
      counts.gemms += isa<gpt::FusedGemmOp>(op);
      counts.attentions += isa<gpt::FlashAttentionOp>(op);
      counts.leftMatmuls += isa<gpt::MatmulOp>(op);
      counts.leftLinears += isa<gpt::LinearOp>(op);
    });
  }
  return "";
}

bool Fuzzer::run(uint64_t seed, bool print) {
  Case input = caseOf(seed);
  std::string wrong = check(input, true);
  if (wrong.empty()) {
    if (print)
      llvm::outs() << "// seed " << seed << ": " << describe(input.recipe)
                   << '\n'
                   << text << '\n';
    return true;
  }
  // Without the respellings that do not matter.
  for (size_t i = input.respellings.size(); i-- > 0;) {
    Case fewer = input;
    fewer.respellings.erase(fewer.respellings.begin() + i);
    if (std::string still = check(fewer, false); !still.empty()) {
      input = std::move(fewer);
      wrong = std::move(still);
    }
  }
  wrong = check(input, false);
  llvm::outs() << "seed " << seed << ": " << wrong << '\n'
               << messages << "graph: " << describe(input.recipe)
               << "\nrespelled by:";
  for (const Respelling &each : input.respellings)
    llvm::outs() << ' ' << nameOf(each);
  llvm::outs() << '\n' << text << '\n';
  return false;
}

static int usage(llvm::StringRef message) {
  llvm::errs() << "gptc-fuzz-fusion: error: " << message
               << "; usage: gptc-fuzz-fusion [--first SEED] [--count N] "
                  "[--seed SEED] [--caught]\n";
  return 2;
}

int main(int argc, char **argv) {
  uint64_t first = 1, count = 1000;
  bool one = false, caught = false;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef arg = argv[i];
    if (arg == "--caught") {
      caught = true;
      continue;
    }
    uint64_t number;
    if (++i == argc || llvm::StringRef(argv[i]).getAsInteger(10, number))
      return usage("expected a number after '" + arg.str() + "'");
    if (arg == "--first" || arg == "--seed")
      first = number;
    else if (arg == "--count")
      count = number;
    else
      return usage("unknown option '" + arg.str() + "'");
    if (arg == "--seed") {
      count = 1;
      one = true;
    }
  }

  auto begin = std::chrono::steady_clock::now();
  Counts total;
  uint64_t failures = 0;
  auto fuzzer = std::make_unique<Fuzzer>();
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    // A context keeps every attribute that it has seen.
    if (seed % 500 == 0) {
      Counts kept = std::move(fuzzer->counts);
      fuzzer = std::make_unique<Fuzzer>();
      fuzzer->counts = std::move(kept);
    }
    if (!fuzzer->run(seed, one)) {
      ++failures;
      if (caught) {
        llvm::outs() << "caught by graph " << seed - first + 1 << '\n';
        return 0;
      }
    }
  }
  const Counts &counts = fuzzer->counts;
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  // Behind one graph as comments: what is printed can be compiled.
  llvm::StringRef mark = one ? "// " : "";
  llvm::outs()
      << mark
      << fmt::format("{} of {} graphs agree ({} with @step; {} fused_gemm, {} "
                     "flash_attention, {} matmul and {} linear left) in {:.1f} "
                     "s\n",
                     counts.graphs, counts.graphs + failures, counts.steps,
                     counts.gemms, counts.attentions, counts.leftMatmuls,
                     counts.leftLinears, seconds)
      << mark << counts.checks << " checks of --verify-fusions\n"
      << mark << counts.respellings << " respellings:";
  for (auto [name, number] : counts.rules)
    llvm::outs() << ' ' << name << ' ' << number;
  llvm::outs() << '\n';
  if (caught) {
    llvm::outs() << "expected a failure, since a bug is planted\n";
    return 1;
  }
  return failures ? 1 : 0;
}
