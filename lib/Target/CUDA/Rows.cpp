//===- Rows.cpp - norms, tables, argmax: a block a row --------------------===//
#include "Writer.h"
#include "gptc/Schedule/CudaSchedule.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

static void writeNorm(KernelWriter &w, gpt::NormKind kind, bool hasBeta,
                      double eps) {
  const int64_t n = w.shape(0).back(), threads = scheduleCudaRow(n);
  const bool layer = kind != gpt::NormKind::Rms;
  w.blocks.insert("norm");
  w.nameValues({"x", "gamma", "beta"});
  w.beginRows(0, threads);
  w.print("  gptc::{}<{}, {}>(x, gamma, {}{}, out);\n",
          kind == gpt::NormKind::Rms      ? "rms_norm"
          : kind == gpt::NormKind::Sample ? "sample_norm"
                                          : "layer_norm",
          threads, n,
          !layer    ? ""
          : hasBeta ? "beta, "
                    : "nullptr, ",
          number(float(eps)));
  w.end();
}

/// softmax or log_softmax.
static void writeSoftmax(KernelWriter &w, const char *function) {
  const int threads = 128;
  w.blocks.insert("scores");
  w.nameValues({"x"});
  w.beginRows(0, threads);
  w.print("  gptc::{}<{}>(x, out, {});\n", function, threads,
          w.size(0, w.rank(0) - 1));
  w.end();
}

static void writeArgmax(KernelWriter &w) {
  const int threads = 512;
  w.blocks.insert("argmax");
  w.nameValues({"x"});
  w.beginRows(0, threads);
  w.print("  gptc::argmax<{}>(x, out, {});\n", threads,
          w.size(0, w.rank(0) - 1));
  w.end();
}

static void writeMergeArgmax(KernelWriter &w) {
  // 384 blocks of a row are three a thread.
  const int threads = 128;
  w.blocks.insert("argmax");
  w.nameValues({"values", "columns"});
  w.beginRows(0, threads);
  w.print("  gptc::merge_argmax<{}>(values, columns, out, {});\n", threads,
          w.size(0, 1));
  w.end();
}

static LogicalResult writeEmbedding(KernelWriter &w) {
  const int64_t rows = w.shape(0)[0], n = w.shape(0)[1],
                threads = scheduleCudaRow(n);
  std::optional<gpt::Storage> storage = w.storage(0);
  if (!storage)
    return w.unsupported("expected the table to be a weight");
  w.blocks.insert("rows");
  w.nameValues({"table", "ids"});
  w.beginRows(1, threads, 0);
  w.print("  gptc::embedding<{}, gptc::Format::{}, {}, {}>(table, ids, out);\n",
          threads, formatName(*storage), rows, n);
  w.end();
  return success();
}

static void writeSelectRows(KernelWriter &w) {
  const int64_t n = w.shape(0).back(), threads = scheduleCudaRow(n);
  w.blocks.insert("rows");
  w.nameValues({"x", "rows"});
  w.beginRows(1, threads, 0);
  w.print("  gptc::select_rows<{}, {}>(x, rows, out);\n", threads, n);
  w.end();
}

static void writeRopeTable(KernelWriter &w, gpt::RopeTableOp op) {
  gpt::RopeAttr rope = op.getRope();
  const int64_t d = rope.getDim(), threads = scheduleCudaRow(d);
  w.blocks.insert("rows");
  w.nameValues({"positions"});
  std::string frequencies = w.name + "_frequencies";
  printArray<double>(w, frequencies, rope.inverseFrequencies());
  w.beginRows(0, threads, 0);
  w.print("  gptc::rope_table<{}, {}, {}, {}>(positions, {}, out);\n", threads,
          d, rope.getRotary(), rope.getPairs() == gpt::RopePairs::Half,
          frequencies);
  w.end();
}

LogicalResult gptc::cuda::writeRows(KernelWriter &w) {
  LogicalResult ok = success();
  TypeSwitch<Operation *>(w.op)
      .Case([&](gpt::LayerNormOp o) {
        writeNorm(w, o.kind(), !!o.getBeta(), o.getEps().convertToDouble());
      })
      .Case([&](gpt::RmsNormOp o) {
        writeNorm(w, gpt::NormKind::Rms, false, o.getEps().convertToDouble());
      })
      .Case([&](gpt::SoftmaxOp) { writeSoftmax(w, "softmax"); })
      .Case([&](gpt::LogSoftmaxOp) { writeSoftmax(w, "log_softmax"); })
      .Case([&](gpt::ArgmaxOp) { writeArgmax(w); })
      .Case([&](gpt::MergeArgmaxOp) { writeMergeArgmax(w); })
      .Case([&](gpt::EmbeddingOp) { ok = writeEmbedding(w); })
      .Case([&](gpt::SelectRowsOp) { writeSelectRows(w); })
      .Case([&](gpt::RopeTableOp o) { writeRopeTable(w, o); });
  return ok;
}
