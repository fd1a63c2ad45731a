//===- Elements.cpp - the unfused path and elementwise ops ----------------===//
//
// A thread does one element. Elementwise ops take operands of the result's
// shape or splat constants.
//
//===----------------------------------------------------------------------===//
#include "Writer.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

static constexpr int threads = 256;

static Names shapeOf(KernelWriter &w, unsigned value) {
  Names shape;
  for (unsigned i = 0; i < w.rank(value); ++i)
    shape.push_back(w.size(value, i));
  return shape;
}

/// The element of this type at an expression; i1 lies in memory as i32.
static std::string loaded(Type type, const std::string &at) {
  return getElementTypeOrSelf(type).isInteger(1) ? at + " != 0" : at;
}

static LogicalResult writeMap(KernelWriter &w) {
  auto type = dyn_cast<RankedTensorType>(w.op->getResult(0).getType());
  if (!type || w.op->getNumResults() != 1)
    return w.unsupported("expected one tensor as the result of an elementwise "
                         "op");
  w.blocks.insert("math");
  w.nameValues({"x", "y", "z"});
  Names in;
  std::string loads;
  for (auto [i, v] : llvm::enumerate(w.op->getOperands())) {
    std::string value;
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      if (w.storage(arg.getArgNumber()))
        return w.unsupported(
            "expected activations, got a stored weight: matrices are packed "
            "for linear and embedding only");
      value = loaded(v.getType(), w.values[arg.getArgNumber()] + "[e]");
    } else if (auto constant = v.getDefiningOp<arith::ConstantOp>()) {
      value = expressionOf(constant, {});
    }
    if (value.empty())
      return w.unsupported("expected operands that are tensors of the result's "
                           "shape or splat constants");
    in.push_back(fmt::format("v{}", i));
    loads += fmt::format("  const {} v{} = {};\n",
                         scalarType(v.getType()).str(), i, value);
  }
  std::string value = expressionOf(w.op, in);
  if (value.empty())
    return failure();
  w.beginElements(w.result(0));
  w.text += loads;
  w.print("  out[e] = {};\n", value);
  w.end();
  return success();
}

static void writeMatmul(KernelWriter &w, gpt::MatmulOp op) {
  const unsigned rank = w.rank(0);
  w.blocks.insert("scores");
  w.nameValues({"a", "b"});
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] =
      w.extent(w.result(0), 0, threads);
  w.print("  gptc::matmul<{}, {}>(a, b, out, {}, {}, {}, {}, {});\n", threads,
          op.getTransposeB(), w.count(0, 2), w.size(0, rank - 2),
          w.size(0, rank - 1), w.size(w.result(0), rank - 1), op.getGroups());
  w.end();
}

/// A function of one score: begins it with `s`, `row` (through all matrices),
/// `query` and `key` (within one).
static void beginScores(KernelWriter &w) {
  const unsigned rank = w.rank(0);
  w.blocks.insert("math");
  w.beginElements(0);
  w.print("  const long long sq = {}, sk = {}, row = e / sk;\n"
          "  const long long query = row % sq, key = e % sk;\n"
          "  const float v = s[e];\n",
          w.size(0, rank - 2), w.size(0, rank - 1));
}

static void writeCausalMask(KernelWriter &w, gpt::CausalMaskOp op) {
  w.nameValues({"s"});
  beginScores(w);
  w.print("  const long long ahead = key - (query + sk - sq);\n"
          "  const bool seen = ahead <= 0{};\n"
          "  out[e] = seen ? v : -gptc::infinity();\n",
          op.getWindow() ? fmt::format(" && ahead > -{}ll", *op.getWindow())
                         : "");
  w.end();
}

static void writeAlibi(KernelWriter &w, gpt::AlibiOp op) {
  std::string slopes = w.name + "_slopes";
  SmallVector<float> rounded(op.getSlopes().begin(), op.getSlopes().end());
  printArray<float>(w, slopes, rounded);
  w.nameValues({"s"});
  beginScores(w);
  w.print("  const long long ahead = key - (query + sk - sq);\n"
          "  out[e] = fmaf({}[row / sq % {}], float(int(ahead)), v);\n",
          slopes, rounded.size());
  w.end();
}

static void writeMask(KernelWriter &w, gpt::MaskOp op) {
  w.nameValues({"s", "mask"});
  Repeated mask(w, op.getMask());
  beginScores(w);
  w.text += mask.rowOffset(shapeOf(w, 0), "  ");
  std::string m = mask.at("offset", "key");
  if (!mask.words)
    w.print("  out[e] = v + {};\n", m);
  else
    w.print("  out[e] = {} ? v : {};\n", m,
            op.getFill() ? number(float(op.getFill()->convertToDouble()))
                         : "-gptc::infinity()");
  w.end();
}

static void writeBroadcast(KernelWriter &w, gpt::BroadcastOp op) {
  const unsigned result = w.result(0);
  w.blocks.insert("common");
  w.nameValues({"x", "like"});
  if (!isa<BlockArgument>(op.getX()))
    w.nameValues({"like"});
  Repeated x(w, op.getX());
  w.beginElements(result);
  Names shape = shapeOf(w, result);
  if (shape.empty()) {
    w.print("  out[e] = {}[0];\n", x.base);
  } else {
    w.print("  const long long row = e / {0}, column = e % {0};\n",
            shape.back());
    w.text += x.rowOffset(shape, "  ");
    w.print("  out[e] = {};\n", x.at("offset", "column"));
  }
  w.end();
}

static void writeRotate(KernelWriter &w, gpt::RotateOp op) {
  const int64_t d = w.shape(0).back();
  w.blocks.insert("layout");
  w.nameValues({"x", "table"});
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] = w.extent(0, 0, threads);
  w.print("  gptc::rotate<{}, {}, {}, {}>(x, table, out, {}, {});\n", threads,
          d, op.getRotary() ? int64_t(*op.getRotary()) : d,
          op.getPairs() == gpt::RopePairs::Half, w.count(0, 1),
          w.size(0, w.rank(0) - 2));
  w.end();
}

static void writeHeads(KernelWriter &w, bool split) {
  const unsigned heads = split ? w.result(0) : 0, rank = w.rank(heads);
  w.blocks.insert("layout");
  w.nameValues({"x"});
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] = w.extent(0, 0, threads);
  w.print("  gptc::move_heads<{}, {}>(x, out, {}, {}, {}, {});\n", threads,
          split, w.count(heads, 3), w.size(heads, rank - 3),
          w.size(heads, rank - 2), w.size(heads, rank - 1));
  w.end();
}

static void writeSplit(KernelWriter &w) {
  const int64_t n = w.shape(0).back();
  w.blocks.insert("layout");
  w.nameValues({"x"});
  // A thread does one element of each part.
  unsigned widest = w.result(0);
  for (unsigned i = 1; i < w.op->getNumResults(); ++i)
    if (w.shape(w.result(i)).back() > w.shape(widest).back())
      widest = w.result(i);
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] =
      w.extent(widest, 0, threads);
  int64_t from = 0;
  for (unsigned i = 0; i < w.op->getNumResults(); ++i) {
    int64_t part = w.shape(w.result(i)).back();
    w.print("  gptc::split_part<{}>(x, {}, {}, {}, {}, {});\n", threads,
            w.values[w.result(i)], w.count(0, 1), n, from, part);
    from += part;
  }
  w.end();
}

static void writeKVAppend(KernelWriter &w, gpt::KVAppendOp op) {
  w.blocks.insert("layout");
  w.nameValues({"cache", "keys", "values", "positions", "sequences"});
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] = w.extent(1, 0, threads);
  w.print("  gptc::kv_append<{}, {}>(\n"
          "      cache, keys, values, positions, sequences, {});\n",
          threads, cacheName(op.getCache().getType()), w.size(3, 0));
  w.end();
}

static void writeKVRead(KernelWriter &w, gpt::KVReadOp op) {
  const unsigned keys = w.result(0);
  w.blocks.insert("layout");
  w.values = {"cache", "keys", "values"};
  w.variant();
  w.launch(w.begin("", threads), threads).grid[0] = w.extent(keys, 0, threads);
  w.print("  gptc::kv_read<{}, {}>(cache, keys, values, {});\n", threads,
          cacheName(op.getCache().getType()), w.size(keys, 1));
  w.end();
}

static void writeCopy(KernelWriter &w) {
  w.blocks.insert("common");
  w.nameValues({"x"});
  w.beginElements(w.result(0));
  w.text += "  out[e] = x[e];\n";
  w.end();
}

static void writePositions(KernelWriter &w) {
  w.nameValues({"ids"});
  w.beginElements(0);
  w.text += "  out[e] = int(e);\n";
  w.end();
}

LogicalResult gptc::cuda::writeElements(KernelWriter &w) {
  LogicalResult ok = success();
  TypeSwitch<Operation *>(w.op)
      .Case([&](gpt::MatmulOp o) { writeMatmul(w, o); })
      .Case([&](gpt::CausalMaskOp o) { writeCausalMask(w, o); })
      .Case([&](gpt::AlibiOp o) { writeAlibi(w, o); })
      .Case([&](gpt::MaskOp o) { writeMask(w, o); })
      .Case([&](gpt::BroadcastOp o) { writeBroadcast(w, o); })
      .Case([&](gpt::RotateOp o) { writeRotate(w, o); })
      .Case([&](gpt::SplitHeadsOp) { writeHeads(w, true); })
      .Case([&](gpt::MergeHeadsOp) { writeHeads(w, false); })
      .Case([&](gpt::SplitOp) { writeSplit(w); })
      .Case([&](gpt::KVAppendOp o) { writeKVAppend(w, o); })
      .Case([&](gpt::KVReadOp o) { writeKVRead(w, o); })
      .Case([&](gpt::PositionsOp) { writePositions(w); })
      .Case([&](tensor::ExpandShapeOp) { writeCopy(w); })
      .Default([&](Operation *) { ok = writeMap(w); });
  return ok;
}
