//===- ExplainFusion.cpp - which ops went into which kernel ---------------===//
#include "ExplainFusion.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Path.h"
#include <fmt/format.h>
#include <map>

using namespace mlir;
using namespace gptc;

namespace {
struct Row {
  std::string kernel, ops;
  Location place;
};
/// Rows [begin, begin + period), `times` times.
struct Stretch {
  size_t begin, period, times;
};
/// How often each name, in order of the first of each.
using Counts = llvm::MapVector<StringRef, unsigned>;
} // namespace

/// "gpt.linear x3, gpt.rope x2".
static std::string countText(const Counts &counts) {
  std::string text;
  for (const auto &[name, count] : counts)
    text += (text.empty() ? "" : ", ") + name.str() +
            (count > 1 ? fmt::format(" x{}", count) : "");
  return text;
}

static std::string namesOf(llvm::ArrayRef<Operation *> ops) {
  Counts counts;
  for (Operation *op : ops)
    ++counts[op->getName().getStringRef()];
  return countText(counts);
}

/// A file's name without its folder, line and column.
static std::string shortPlace(Location location) {
  std::string text = placeText(location);
  return llvm::sys::path::filename(text).str();
}

/// The longest repeated stretch at each row, so that a layer stands once.
static std::vector<Stretch> findStretches(llvm::ArrayRef<Row> rows) {
  auto equal = [&](size_t a, size_t b) {
    return rows[a].kernel == rows[b].kernel && rows[a].ops == rows[b].ops;
  };
  std::vector<Stretch> stretches;
  constexpr size_t longestLayer = 64;
  for (size_t begin = 0; begin < rows.size();) {
    Stretch best{begin, 1, 1};
    for (size_t period = 1;
         period <= longestLayer && begin + 2 * period <= rows.size();
         ++period) {
      size_t end = begin + period;
      while (end < rows.size() && equal(end, end - period))
        ++end;
      size_t times = (end - begin) / period;
      if (times > 1 && times * period > best.times * best.period)
        best = {begin, period, times};
    }
    stretches.push_back(best);
    begin += best.period * best.times;
  }
  return stretches;
}

static std::string missedText(StringRef function, const SourceOps &ops,
                              const Remarks &remarks) {
  struct Missed {
    unsigned count = 0;
    std::string place;
  };
  std::vector<std::string> order;
  std::map<std::string, Missed> grouped;
  for (const FusionRemark &remark : remarks.all()) {
    if (remark.passed || remark.function != function ||
        remark.category != "fusion")
      continue;
    std::vector<Operation *> about = ops.at(remark.location);
    std::string key =
        fmt::format("{}: {}: {}", namesOf(about), remark.fusion, remark.text);
    Missed &missed = grouped[key];
    if (missed.count++ == 0) {
      missed.place = shortPlace(remark.location);
      order.push_back(key);
    }
  }
  std::string text;
  for (const std::string &key : order)
    text += fmt::format(
        "    {}: {}{}\n", grouped[key].place, key,
        grouped[key].count > 1
            ? fmt::format(" ({} times, first here)", grouped[key].count)
            : "");
  return text.empty() ? "" : "  left alone:\n" + text;
}

std::string gptc::explainFusion(ModuleOp outlined, const SourceOps &ops,
                                const Remarks &remarks) {
  std::string text;
  for (auto entry : outlined.getOps<func::FuncOp>()) {
    StringRef name = entry.getSymName();
    std::vector<Row> rows;
    llvm::SmallPtrSet<Operation *, 32> used;
    entry.walk([&](gpt::CallOp call) {
      std::vector<Operation *> in = ops.at(call.getLoc());
      used.insert(in.begin(), in.end());
      rows.push_back({call.getKernel().str(), namesOf(in), call.getLoc()});
    });
    size_t width = 0, total = 0;
    for (const Row &row : rows)
      width = std::max(width, row.kernel.size());
    std::vector<Operation *> gone;
    for (Operation *op : ops.of(name)) {
      ++total;
      if (!used.contains(op))
        gone.push_back(op);
    }
    text += fmt::format("fusion of @{}: {} ops in {} kernel calls\n",
                        name.str(), total, rows.size());
    for (Stretch stretch : findStretches(rows)) {
      const char *indent = stretch.times > 1 ? "    " : "  ";
      if (stretch.times > 1)
        text += fmt::format("  {} times, first at {}:\n", stretch.times,
                            shortPlace(rows[stretch.begin].place));
      for (size_t i = 0; i < stretch.period; ++i) {
        const Row &row = rows[stretch.begin + i];
        text += fmt::format("{}{:<{}}  {}\n", indent, row.kernel,
                            width + (stretch.times > 1 ? 0 : 2), row.ops);
      }
    }
    if (!gone.empty())
      text += "  folded away or part of several: " + namesOf(gone) + "\n";
    text += missedText(name, ops, remarks);
  }
  return text;
}

/// Text inside a Graphviz string.
static std::string escaped(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return result;
}

/// Edges from the ops that compute operands, where they are nodes.
static void printEdges(Operation *op,
                       const llvm::DenseMap<Operation *, unsigned> &ids,
                       std::string &text) {
  llvm::SmallSetVector<Operation *, 4> sources;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); ids.contains(source))
      sources.insert(source);
  for (Operation *source : sources)
    text += fmt::format("  n{} -> n{};\n", ids.lookup(source), ids.lookup(op));
}

static std::string sourceGraph(func::FuncOp outlined, const SourceOps &ops) {
  StringRef name = outlined.getSymName();
  std::string text = fmt::format(
      "digraph \"{0}: ops in kernels\" {{\n  label=\"@{0}: ops in kernels\";\n"
      "  node [shape=box, fontname=Helvetica];\n",
      escaped(name));
  llvm::DenseMap<Operation *, unsigned> ids;
  auto node = [&](Operation *op, const char *indent) {
    if (ids.try_emplace(op, ids.size()).second)
      text += fmt::format("{}n{} [label=\"{}\"];\n", indent, ids.lookup(op),
                          escaped(opText(op)));
  };
  unsigned clusters = 0;
  outlined.walk([&](gpt::CallOp call) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n",
                        clusters++, escaped(call.getKernel()));
    for (Operation *op : ops.at(call.getLoc()))
      node(op, "    ");
    text += "  }\n";
  });
  for (Operation *op : ops.of(name))
    node(op, "  ");
  for (Operation *op : ops.of(name))
    printEdges(op, ids, text);
  return text + "}\n";
}

static std::string kernelGraph(func::FuncOp outlined) {
  std::string name = escaped(outlined.getSymName());
  std::string text =
      fmt::format("digraph \"{0}: kernels\" {{\n  label=\"@{0}: kernels\";\n"
                  "  node [shape=box, style=rounded, fontname=Helvetica];\n",
                  name);
  llvm::DenseMap<Operation *, unsigned> ids;
  outlined.walk([&](gpt::CallOp call) {
    unsigned id = ids.size();
    ids[call] = id;
    text +=
        fmt::format("  n{} [label=\"{}\"];\n", id, escaped(call.getKernel()));
  });
  outlined.walk([&](gpt::CallOp call) { printEdges(call, ids, text); });
  return text + "}\n";
}

std::string gptc::fusionGraph(ModuleOp outlined, const SourceOps &ops) {
  std::string text;
  for (auto entry : outlined.getOps<func::FuncOp>())
    text += sourceGraph(entry, ops) + kernelGraph(entry);
  return text;
}
