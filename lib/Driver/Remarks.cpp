//===- Remarks.cpp - what the passes say about their work -----------------===//
#include "Remarks.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include <set>

using namespace mlir;
using namespace gptc;

/// The numbers in a location.
static void collectNumbers(Location location, std::set<int64_t> &numbers) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    if (auto number = dyn_cast_or_null<IntegerAttr>(fused.getMetadata()))
      numbers.insert(number.getInt());
    for (Location part : fused.getLocations())
      collectNumbers(part, numbers);
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    collectNumbers(name.getChildLoc(), numbers);
  } else if (auto site = dyn_cast<CallSiteLoc>(location)) {
    collectNumbers(site.getCallee(), numbers);
  }
}

static void
forEachOp(ModuleOp module,
          llvm::function_ref<void(func::FuncOp, Operation *)> body) {
  module.walk([&](func::FuncOp function) {
    function.getBody().walk([&](Operation *op) {
      if (!op->hasTrait<OpTrait::ConstantLike>() &&
          !op->hasTrait<OpTrait::IsTerminator>() &&
          !isa<ml_program::GlobalLoadConstOp>(op))
        body(function, op);
    });
  });
}

void SourceOps::number(ModuleOp module) {
  Builder builder(module.getContext());
  int64_t next = 0;
  forEachOp(module, [&](func::FuncOp, Operation *op) {
    // Within the name, by which the op's value is called.
    auto name = dyn_cast<NameLoc>(op->getLoc());
    Location place = name ? name.getChildLoc() : op->getLoc();
    Location marked = FusedLoc::get(builder.getContext(), {place},
                                    builder.getI64IntegerAttr(next++));
    op->setLoc(name ? NameLoc::get(name.getName(), marked) : marked);
  });
}

SourceOps::SourceOps(ModuleOp module) {
  forEachOp(module, [&](func::FuncOp function, Operation *op) {
    std::set<int64_t> numbers;
    collectNumbers(op->getLoc(), numbers);
    for (int64_t number : numbers)
      ops[number] = op;
    functions[function.getSymName()].push_back(op);
  });
}

llvm::ArrayRef<Operation *> SourceOps::of(StringRef function) const {
  auto found = functions.find(function);
  return found == functions.end() ? llvm::ArrayRef<Operation *>()
                                  : llvm::ArrayRef(found->second);
}

std::vector<Operation *> SourceOps::at(Location location) const {
  std::set<int64_t> numbers;
  collectNumbers(location, numbers);
  std::vector<Operation *> found;
  for (int64_t number : numbers)
    if (Operation *op = ops.lookup(number))
      found.push_back(op);
  return found;
}

std::string gptc::opText(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    text += (" %" + name.getName().getValue()).str();
  return text;
}

std::string gptc::placeText(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  return place ? fmt::format("{}:{}:{}", place.getFilename().str(),
                             place.getLine(), place.getColumn())
               : "";
}

namespace {
struct Collector : remark::detail::MLIRRemarkStreamerBase {
  explicit Collector(std::vector<FusionRemark> &remarks) : remarks(remarks) {}
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    bool passed = remark.getRemarkType() == llvm::remarks::Type::Passed;
    std::string text;
    for (const auto &arg : remark.getArgs())
      text += arg.val;
    remarks.push_back({passed, remark.getCategoryName().str(),
                       remark.getRemarkName().str(), remark.getFunction().str(),
                       std::move(text), remark.getLocation(), remarks.size()});
  }
  std::vector<FusionRemark> &remarks;
};
} // namespace

void Remarks::collect(MLIRContext &context) {
  remark::RemarkCategories every;
  every.passed = every.missed = ".*";
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<Collector>(remarks),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), every);
}

void Remarks::sort() {
  auto place = [](const FusionRemark &remark) {
    auto at = remark.location->findInstanceOf<FileLineColLoc>();
    return std::tuple(at ? at.getLine() : 0u, at ? at.getColumn() : 0u,
                      remark.number);
  };
  for (auto begin = remarks.begin(); begin != remarks.end();) {
    auto end = std::find_if(begin, remarks.end(), [&](const auto &remark) {
      return remark.fusion != begin->fusion;
    });
    std::sort(begin, end, [&](const auto &a, const auto &b) {
      return place(a) < place(b);
    });
    begin = end;
  }
}

static std::string opsText(const FusionRemark &remark, const SourceOps &ops) {
  std::string text;
  for (Operation *op : ops.at(remark.location))
    text += (text.empty() ? "" : ", ") + opText(op);
  return text;
}

std::string Remarks::lines(StringRef category, const SourceOps &ops) const {
  std::string text;
  for (const FusionRemark &remark : remarks) {
    if (remark.category != category)
      continue;
    std::string about = opsText(remark, ops);
    text += fmt::format("{}: remark: {}: {}: {}{}{} in @{}\n",
                        placeText(remark.location), remark.fusion,
                        remark.passed ? "passed" : "missed", remark.text,
                        about.empty() ? "" : "; ", about, remark.function);
  }
  return text;
}

/// Plain text as a YAML scalar.
static std::string quoted(StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? "''" : c == '\n' ? " " : std::string(1, c);
  return result + "'";
}

std::string Remarks::yaml(const SourceOps &ops) const {
  std::string text;
  for (const FusionRemark &remark : remarks) {
    text += fmt::format("--- !{}\nPass:            {}\nName:            {}\n",
                        remark.passed ? "Passed" : "Missed", remark.category,
                        remark.fusion);
    if (auto place = remark.location->findInstanceOf<FileLineColLoc>())
      text += fmt::format("DebugLoc:        {{ File: {}, Line: {}, Column: {} "
                          "}}\n",
                          quoted(place.getFilename()), place.getLine(),
                          place.getColumn());
    text += fmt::format("Function:        {}\nArgs:\n  - Remark:          {}\n",
                        quoted(remark.function), quoted(remark.text));
    for (Operation *op : ops.at(remark.location))
      text += fmt::format("  - Op:              {}\n", quoted(opText(op)));
    text += "...\n";
  }
  return text;
}
