//===- VerifyFusions.cpp - every fusion against what it replaced ----------===//
//
// The model is copied into a context of its own: remarks, diagnostics and
// numbering of the compilation do not see what happens here. An instrumentation
// keeps the module after every pass that changed it.
//
//===----------------------------------------------------------------------===//

#include "gptc/Verify/VerifyFusions.h"
#include "LockStep.h"
#include "MadeInputs.h"
#include "Reduce.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Kernel/DimAnalysis.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::verify;
using namespace gptc::reference;

/// Weights that are evaluated as they are: half a gigabyte of double. Above it
/// equal layers are left out; above the next, words are, and then functions.
static constexpr int64_t layersAbove = int64_t(1) << 26;
static constexpr int64_t wordsAbove = int64_t(1) << 28;
static constexpr int64_t skippedAbove = int64_t(1) << 29;
/// A vocabulary no smaller than tiles, and no multiple of them.
static constexpr int64_t cutTo = 1031;

bool Verification::ok() const {
  return error.empty() &&
         llvm::all_of(checks, [](const FusionCheck &c) { return c.ok(); });
}

namespace {
struct Snapshot {
  std::string pass; // that has just run; empty: none
  OwningOpRef<ModuleOp> module;
};

class Snapshots : public PassInstrumentation {
public:
  explicit Snapshots(std::vector<Snapshot> &taken) : taken(taken) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module)
      module = op->getParentOfType<ModuleOp>();
    if (!module || pass->getArgument().empty() ||
        OperationEquivalence::isEquivalentTo(
            *taken.back().module, module,
            OperationEquivalence::IgnoreLocations))
      return;
    StringRef name = pass->getArgument();
    name.consume_front("gpt-");
    taken.push_back({name.str(), module.clone()});
  }

private:
  std::vector<Snapshot> &taken;
};

class Verifier {
public:
  explicit Verifier(ModuleOp module);
  Verification run(AddPasses passes);

private:
  void reduce();
  void follow(StringRef name);
  /// From @forward to @step: new arguments, new values.
  bool crossStep(const Evaluated &before, func::FuncOp after, StringRef pass);
  void add(const std::vector<FusionCheck> &checks);
  /// Values of `after`; empty after a failure, which is in `messages`.
  Values compareStep(const Evaluated &before, func::FuncOp after,
                     StringRef pass, ArrayRef<TensorRef> args,
                     const RunSizes &sizes);
  void skip(StringRef name, const Twine &why);
  RunSizes sizesFor(func::FuncOp function) const;

  MLIRContext context;
  std::string messages;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  std::vector<Snapshot> taken;
  MadeWeights weights;
  Verification result;
};
} // namespace

Verifier::Verifier(ModuleOp module)
    : context(module->getContext()->getDialectRegistry(),
              MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  handler = std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](Diagnostic &diagnostic) {
        if (messages.empty())
          messages = diagnostic.str();
        return success();
      });
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(module, stream)))
    return;
  ParserConfig config(&context);
  if (auto copy = parseSourceString<ModuleOp>(bytes, config))
    taken.push_back({"", std::move(copy)});
}

void Verifier::skip(StringRef name, const Twine &why) {
  ++result.leftOut;
  result.notes.push_back(("@" + name + " was left out: " + why).str());
}

void Verifier::reduce() {
  ModuleOp module = *taken.front().module;
  auto most = [&] {
    int64_t count = 0;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        count = std::max(count, weightElements(function));
    return count;
  };
  if (most() > layersAbove)
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || !function.getBody().hasOneBlock())
        continue;
      auto [dropped, all] = keepDistinctLayers(function);
      if (dropped)
        result.notes.push_back(
            fmt::format("@{}: {} of {} stretches between residuals were left "
                        "out, since they differ from others in their weights "
                        "only",
                        function.getSymName().str(), dropped, all));
    }
  if (most() > wordsAbove && cutVocabulary(module, cutTo))
    result.notes.push_back(
        fmt::format("the vocabulary was cut to {} words", cutTo));
}

RunSizes Verifier::sizesFor(func::FuncOp function) const {
  RunSizes sizes;
  // No position beyond a table of them.
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.getElementType().isInteger(32))
      continue;
    for (Operation *user : argument.getUsers())
      if (isa<gpt::PositionsOp>(user))
        if (int64_t rows = rowsChosenBy(user->getResult(0)); rows > 0)
          sizes.tokens = std::min(sizes.tokens, rows);
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      "gpt.arg");
    if (int64_t rows = rowsChosenBy(argument);
        name && name == "positions" && rows > 0) {
      sizes.tokens = std::min(sizes.tokens, rows);
      sizes.first = std::min(sizes.first, rows - sizes.tokens);
      sizes.held = std::min(sizes.held, rows);
    }
  }
  return sizes;
}

/// Equal checks of several layers are one.
void Verifier::add(const std::vector<FusionCheck> &checks) {
  for (const FusionCheck &check : checks) {
    auto like = llvm::find_if(result.checks, [&](const FusionCheck &other) {
      return other.fusion == check.fusion && other.made == check.made &&
             other.of == check.of && other.function == check.function;
    });
    if (like == result.checks.end()) {
      result.checks.push_back(check);
      continue;
    }
    int64_t count = like->count + check.count;
    if (check.worst.worseThan(like->worst))
      *like = check;
    like->count = count;
  }
}

Values Verifier::compareStep(const Evaluated &before, func::FuncOp after,
                             StringRef pass, ArrayRef<TensorRef> args,
                             const RunSizes &sizes) {
  auto isWrong = [](const FusionCheck &check) { return !check.ok(); };
  auto step =
      std::make_unique<LockStep>(before, after, weights, pass, sizes.sequence);
  if (failed(step->run(args)))
    return Values();
  if (step->blamesOthers) {
    auto again = std::make_unique<LockStep>(before, after, weights, pass,
                                            sizes.sequence);
    again->byPlace = true;
    if (succeeded(again->run(args)) && llvm::any_of(again->checks, isWrong))
      step = std::move(again);
  }
  add(step->checks);
  if (llvm::none_of(step->checks, isWrong))
    return std::move(step->after.values);
  // The next passes are compared with what there is, wrong or not.
  Evaluated fresh{after, Values()};
  return succeeded(fresh.run(args, weights)) ? std::move(fresh.values)
                                             : Values();
}

bool Verifier::crossStep(const Evaluated &before, func::FuncOp after,
                         StringRef pass) {
  RunSizes sizes = sizesFor(before.function);
  sizes.held = sizes.first = 0;
  sizes.rowsInOrder = true;
  Args args = makeArgs(after, sizes);
  func::FuncOp function = before.function;
  args.front() = before.values.lookup(function.getArgument(0));
  return !compareStep(before, after, pass, args, sizes).empty();
}

void Verifier::follow(StringRef name) {
  auto functionIn = [&](const Snapshot &snapshot, StringRef wanted) {
    return snapshot.module.get().lookupSymbol<func::FuncOp>(wanted);
  };
  auto first = functionIn(taken.front(), name);
  if (int64_t count = weightElements(first); count > skippedAbove)
    return skip(name, Twine(count) + " elements of weights, expected at most " +
                          Twine(skippedAbove));
  auto begin = [&](Evaluated &one) {
    RunSizes sizes = sizesFor(one.function);
    Args args = makeArgs(one.function, sizes);
    messages.clear();
    if (!llvm::is_contained(args, nullptr) && succeeded(one.run(args, weights)))
      return true;
    skip(name, "it cannot be run on made-up arguments of " +
                   Twine(sizes.tokens) + " in every open size: " +
                   (messages.empty() ? "an argument is no tensor" : messages));
    return false;
  };
  Evaluated before{first, Values()};
  if (!begin(before))
    return;
  RunSizes sizes = sizesFor(first);
  for (const Snapshot &snapshot : llvm::drop_begin(taken)) {
    messages.clear();
    auto after = functionIn(snapshot, before.function.getSymName());
    if (!after && before.function.getSymName() == "forward") {
      after = functionIn(snapshot, "step");
      if (after && !crossStep(before, after, snapshot.pass))
        return skip(name, snapshot.pass + ": " + messages);
      before = Evaluated{after, Values()};
      if (!after || !begin(before))
        return;
      continue;
    }
    if (!after)
      return skip(name, "it is gone after " + snapshot.pass);
    Args args;
    func::FuncOp function = before.function;
    for (Value argument : function.getArguments())
      args.push_back(before.values.lookup(argument));
    Values values = compareStep(before, after, snapshot.pass, args, sizes);
    if (values.empty())
      return skip(name, snapshot.pass + ": " + messages);
    before = Evaluated{after, std::move(values)};
  }
}

Verification Verifier::run(AddPasses passes) {
  if (taken.empty()) {
    result.error = "the model cannot be copied: " + messages;
    return std::move(result);
  }
  reduce();
  // Made-up arguments have the sizes that those of a package must have. What
  // does not agree is an error of the compilation, and left out here.
  for (auto function : taken.front().module->getOps<func::FuncOp>())
    if (!function.isExternal())
      (void)refineSizes(function);
  weights.look(*taken.front().module);
  OwningOpRef<ModuleOp> module = taken.front().module->clone();
  PassManager manager(&context);
  manager.addInstrumentation(std::make_unique<Snapshots>(taken));
  passes(manager);
  if (failed(manager.run(*module))) {
    result.error = "a pass failed: " + messages;
    return std::move(result);
  }
  std::vector<std::string> names;
  for (auto function : taken.front().module->getOps<func::FuncOp>())
    if (!function.isExternal())
      names.push_back(function.getSymName().str());
  for (const std::string &name : names)
    follow(name);
  return std::move(result);
}

Verification gptc::verify::verifyFusions(ModuleOp module, AddPasses passes) {
  return Verifier(module).run(passes);
}
