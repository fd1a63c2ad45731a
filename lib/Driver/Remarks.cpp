//===- Remarks.cpp - what the passes say about their work -----------------===//
#include "Remarks.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gptc;

/// The places that a location is fused of; a name belongs to its place.
static void collectPlaces(Location location,
                          llvm::SetVector<Location> &places) {
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      collectPlaces(part, places);
  else if (auto site = dyn_cast<CallSiteLoc>(location))
    collectPlaces(site.getCallee(), places);
  else
    places.insert(location);
}

SourceOps::SourceOps(ModuleOp module) {
  module.walk([&](func::FuncOp function) {
    function.getBody().walk([&](Operation *op) {
      if (op->hasTrait<OpTrait::ConstantLike>() ||
          op->hasTrait<OpTrait::IsTerminator>() ||
          isa<ml_program::GlobalLoadConstOp>(op))
        return;
      order.try_emplace(op, order.size());
      functions[function.getSymName()].push_back(op);
      llvm::SetVector<Location> places;
      collectPlaces(op->getLoc(), places);
      for (Location place : places)
        ops[place].push_back(op);
    });
  });
}

llvm::ArrayRef<Operation *> SourceOps::of(StringRef function) const {
  auto found = functions.find(function);
  return found == functions.end() ? llvm::ArrayRef<Operation *>()
                                  : llvm::ArrayRef(found->second);
}

std::vector<Operation *> SourceOps::at(Location location,
                                       StringRef function) const {
  llvm::SetVector<Location> places;
  collectPlaces(location, places);
  llvm::SetVector<Operation *> found;
  for (Location place : places)
    if (auto at = ops.find(place); at != ops.end())
      for (Operation *op : at->second)
        if (function.empty() ||
            op->getParentOfType<func::FuncOp>().getSymName() == function)
          found.insert(op);
  std::vector<Operation *> sorted(found.begin(), found.end());
  llvm::sort(sorted, [&](Operation *a, Operation *b) {
    return order.lookup(a) < order.lookup(b);
  });
  return sorted;
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
                       std::move(text), remark.getLocation()});
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
    return at ? std::pair(at.getLine(), at.getColumn()) : std::pair(0u, 0u);
  };
  for (auto begin = remarks.begin(); begin != remarks.end();) {
    auto end = std::find_if(begin, remarks.end(), [&](const auto &remark) {
      return remark.fusion != begin->fusion;
    });
    std::stable_sort(begin, end, [&](const auto &a, const auto &b) {
      return place(a) < place(b);
    });
    begin = end;
  }
}

static std::string opsText(const FusionRemark &remark, const SourceOps &ops) {
  std::string text;
  for (Operation *op : ops.at(remark.location, remark.function))
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
    for (Operation *op : ops.at(remark.location, remark.function))
      text += fmt::format("  - Op:              {}\n", quoted(opText(op)));
    text += "...\n";
  }
  return text;
}
