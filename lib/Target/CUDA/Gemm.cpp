//===- Gemm.cpp - GEMM kernels and their epilogues ------------------------===//
//
// Each section becomes a struct with its weights, its operands and its epilogue
// as operator(); a function chooses the section by its column tile and calls
// the main loop of its class: few rows (gemv.cuh) or tiles (gemm_ffma.cuh for
// f32, else gemm_mma.cuh).
//
//===----------------------------------------------------------------------===//
#include "Writer.h"
#include "gptc/Kernel/KernelGemm.h"
#include "gptc/Kernel/Workspace.h"
#include "gptc/Schedule/CudaSchedule.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

namespace {

struct GemmWriter {
  KernelWriter &w;
  KernelGemm parts;
  CudaGemmSchedule schedule;

  explicit GemmWriter(KernelWriter &w)
      : w(w), parts(kernelGemm(w.kernel)),
        schedule(readCudaGemmSchedule(w.kernel)) {}

  void nameValues();
  std::string structName(unsigned section) const;
  /// The struct's members that are kernel parameters, by their names.
  Names members(unsigned section) const;
  std::string memberType(StringRef name) const;
  /// How a result of the kernel lies in memory.
  std::string resultElement(unsigned result) const {
    return elementName(elementInMemory(w.kernel, w.result(result)));
  }
  LogicalResult section(unsigned index);
  LogicalResult epilogue(unsigned index);
  void keep(const KernelGemm::Section &s);
  void partner(const KernelGemm::Section &s);
  void function(StringRef suffix, int64_t rows, bool few);
};

} // namespace

void GemmWriter::nameValues() {
  Names &names = w.values;
  names.resize(w.arguments());
  names[parts.x] = "x";
  unsigned weight = 0;
  for (const KernelGemm::Section &s : parts.sections)
    for (auto [argument, bias] : llvm::zip(s.weights, s.biases)) {
      names[argument] = fmt::format("weight{}", weight);
      if (bias >= 0)
        names[bias] = fmt::format("bias{}", weight);
      ++weight;
    }
  for (auto [i, r] : llvm::enumerate(parts.residuals))
    names[r.argument] = fmt::format("residual{}", i);
  for (auto [argument, name] : {std::pair(parts.ropeTable, "rope"),
                                {parts.positions, "positions"},
                                {parts.sequences, "sequences"},
                                {parts.cache, "cache"}})
    if (argument >= 0)
      names[argument] = name;
  for (unsigned i = 0; i < w.op->getNumResults(); ++i)
    names.push_back(fmt::format("out{}", i));
}

std::string GemmWriter::structName(unsigned section) const {
  return fmt::format("{}_section{}", w.kernel.getSymName().str(), section);
}

Names GemmWriter::members(unsigned index) const {
  const KernelGemm::Section &s = parts.sections[index];
  Names names;
  for (int bias : s.biases)
    if (bias >= 0)
      names.push_back(w.values[bias]);
  for (const KernelGemm::Residual &r : parts.residuals)
    names.push_back(w.values[r.argument]);
  if (s.rope)
    names.push_back("rope");
  if (s.append != gpt::Append::None)
    names.append({"cache", "positions", "sequences"});
  for (unsigned i = 0; i < parts.sections[index].results; ++i)
    names.push_back(w.values[w.result(s.result + i)]);
  return names;
}

/// The accumulator of the rotary partner, with its bias.
void GemmWriter::partner(const KernelGemm::Section &s) {
  const int64_t half = parts.rotary / 2;
  w.print("    const int channel = column % {};\n", parts.headDim);
  if (*s.rope == gpt::RopePairs::Half)
    w.print("    const int other = channel < {} ? {} : -{};\n", half, half,
            half);
  else
    w.print("    const int other = 1 - channel % 2 * 2;\n");
  std::string value = "tile[other]";
  if (s.biases[0] >= 0)
    value += fmt::format(" + {}[column + other]", w.values[s.biases[0]]);
  // Channels that do not rotate: its factor is 0.
  if (parts.rotary != parts.headDim)
    value = fmt::format("channel < {} ? {} : 0.0f", parts.rotary, value);
  w.print("    const float partner = {};\n"
          "    const float *angles = rope + row * {} + channel;\n"
          "    const float cos = angles[0], sin = angles[{}];\n",
          value, 2 * parts.headDim, parts.headDim);
}

/// Where the best of a block of an argmax goes.
void GemmWriter::keep(const KernelGemm::Section &s) {
  const int64_t blocks = llvm::divideCeil(s.n, parts.argmax);
  w.text += "  __device__ void keep(long long row, int block,\n"
            "                       gptc::Best best) const {\n";
  for (auto [i, member] : {std::pair(0, "value"), {1, "index"}})
    w.print("    {}[row * {} + block] = best.{};\n",
            w.values[w.result(s.result + i)], blocks, member);
  w.text += "  }\n";
}

LogicalResult GemmWriter::epilogue(unsigned index) {
  const KernelGemm::Section &s = parts.sections[index];
  std::string head = fmt::format("  __device__ {} operator()(",
                                 parts.argmax ? "float" : "void");
  w.print("  template <int Pitch>\n{}const float *tile, long long row,\n"
          "{:{}}int column) const {{\n",
          head, "", head.size());
  Names arguments;
  for (unsigned lane = 0; lane < s.weights.size(); ++lane) {
    std::string name =
        s.weights.size() == 1 ? "acc" : fmt::format("acc{}", lane);
    std::string value =
        lane ? fmt::format("tile[{} * Pitch]", lane) : "tile[0]";
    if (s.biases[lane] >= 0)
      value += fmt::format(" + {}[column]", w.values[s.biases[lane]]);
    w.print("    const float {} = {};\n", name, value);
    arguments.push_back(name);
  }
  if (s.rope) {
    partner(s);
    arguments.append({"partner", "cos", "sin"});
  }
  for (auto [i, r] : llvm::enumerate(parts.residuals)) {
    std::string name = fmt::format("r{}", i), from = w.values[r.argument];
    w.print("    const float {} = {}[{}column];\n", name, from,
            r.row ? "" : fmt::format("row * {} + ", s.n));
    arguments.push_back(name);
  }
  Names yields{arguments[0]};
  if (s.epilogue) {
    Block &block = s.epilogue->front();
    llvm::DenseMap<Value, std::string> names;
    llvm::StringSet<> used;
    for (const std::string &name : arguments)
      used.insert(name);
    for (const std::string &name : members(index))
      used.insert(name);
    for (auto [argument, name] : llvm::zip(block.getArguments(), arguments))
      names[argument] = name;
    for (Operation &op : block.without_terminator()) {
      Names in;
      for (Value v : op.getOperands())
        in.push_back(names[v]);
      std::string value = expressionOf(&op, in);
      if (value.empty())
        return failure();
      std::string name = valueName(op.getResult(0), used);
      names[op.getResult(0)] = name;
      w.print("    const {} {} = {};\n",
              scalarType(op.getResult(0).getType()).str(), name, value);
    }
    yields.clear();
    for (Value v : block.getTerminator()->getOperands())
      yields.push_back(names[v]);
  }
  if (parts.argmax) {
    w.print("    return {};\n  }}\n", yields[0]);
    keep(s);
    return success();
  }
  const bool appends = s.append != gpt::Append::None;
  if (appends)
    w.print("    {}::append<{}>(\n"
            "        cache, sequences[row], positions[row], column, {});\n",
            cacheName(parts.cacheType), s.append == gpt::Append::Keys,
            yields[0]);
  for (unsigned i = 0; i < s.results; ++i) {
    std::string element = resultElement(s.result + i), v = yields[appends + i];
    w.print("    {}[row * {} + column] = {};\n",
            w.values[w.result(s.result + i)], s.n,
            element == "float"
                ? v
                : fmt::format("gptc::narrow<{}>({})", element, v));
  }
  w.text += "  }\n";
  return success();
}

std::string GemmWriter::memberType(StringRef name) const {
  if (name == "cache")
    return "const gptc_kv_view *";
  if (name == "positions" || name == "sequences")
    return "const int *";
  for (unsigned i = 0; i < w.op->getNumResults(); ++i)
    if (name == w.values[w.result(i)])
      return resultElement(i) + " *";
  return "const float *";
}

LogicalResult GemmWriter::section(unsigned index) {
  const KernelGemm::Section &s = parts.sections[index];
  w.print("\n/// {}: {} of {} features{}.\n", w.kernel.getSymName().str(),
          parts.sections.size() == 1 ? "the section"
                                     : fmt::format("section {}", index),
          s.n,
          parts.argmax
              ? fmt::format(", of which the largest of each {} is kept",
                            parts.argmax)
          : s.append == gpt::Append::Keys   ? ", appended as keys"
          : s.append == gpt::Append::Values ? ", appended as values"
                                            : "");
  w.print("struct {} {{\n", structName(index));
  w.print("  static constexpr int k = {}, features = {}, lanes = {}, "
          "argmax = {};\n",
          parts.k, s.n, s.weights.size(), parts.argmax);
  Names formats;
  for (gpt::Storage storage : s.storage)
    formats.push_back("gptc::Format::" + formatName(storage));
  w.print("  static constexpr gptc::Format formats[] = {{{}}};\n",
          llvm::join(formats, ", "));
  w.print("  const unsigned char *weights[{}];\n", s.weights.size());
  for (const std::string &name : members(index))
    w.print("  {}{};\n", memberType(name), name);
  w.text += '\n';
  if (failed(epilogue(index)))
    return failure();
  w.text += "};\n";
  return success();
}

void GemmWriter::function(StringRef suffix, int64_t rows, bool few) {
  const bool mma = !few && w.precision != InputPrecision::F32;
  const int64_t lanes = parts.maxLanes();
  const int64_t columns = few ? schedule.fewColumns : schedule.columns;
  // Of tensor cores: a warp has 32 rows and at most 64 columns.
  const int64_t threads = mma ? rows * (columns * lanes > 128 ? 4 : 2) : 256;
  const std::string tile =
      mma   ? fmt::format("gptc::MmaTile<{}, {}, {}, {}, {}>",
                          elementName(w.precision), rows, columns, lanes,
                          schedule.stages)
      : few ? fmt::format("gptc::GemvTile<{}, {}, {}, {}>", rows, columns,
                          lanes, parts.k)
            : fmt::format("gptc::FfmaTile<{}, {}, {}>", rows, columns, lanes);
  const char *loop = few ? "gemv" : mma ? "gemm_mma" : "gemm_ffma";
  const int64_t shared = few ? cudaFewRowsShared(schedule, parts, rows)
                             : cudaGemmShared(schedule, lanes, w.precision);
  std::string name = w.begin(suffix, threads, few ? 2 : 1);
  CudaLaunch &launch = w.launch(name, threads, shared);
  launch.grid[0] = w.extent(parts.x, 1, rows);
  if (mma)
    w.product.variants.back().inputs = w.precision;
  w.declareShared();
  w.print("  using Tile = {};\n"
          "  static_assert(Tile::shared == {} && Tile::threads == {});\n"
          "  const long long rows = {}, row0 = (long long)blockIdx.x * {};\n",
          tile, shared, threads, w.count(parts.x, 1), rows);
  int64_t first = 0;
  for (auto [index, s] : llvm::enumerate(parts.sections)) {
    int64_t blocks = (s.n + columns - 1) / columns;
    std::string indent = "  ";
    if (parts.sections.size() > 1) {
      bool last = index + 1 == parts.sections.size();
      w.print("{}{}\n", index ? "  } else " : "  ",
              last ? "{"
                   : fmt::format("if (blockIdx.y < {}) {{", first + blocks));
      indent = "    ";
    }
    Names weights;
    for (unsigned argument : s.weights)
      weights.push_back(w.values[argument]);
    w.print("{}const {} section = {{{}}};\n", indent, structName(index),
            llvm::join(llvm::concat<std::string>(
                           Names{"{" + llvm::join(weights, ", ") + "}"},
                           members(index)),
                       ", "));
    w.print("{}const int column0 = int(blockIdx.y{}) * {};\n", indent,
            first ? fmt::format(" - {}", first) : "", columns);
    w.print("{}gptc::{}<Tile>(section, x, rows, row0, column0, shared);\n",
            indent, loop);
    first += blocks;
  }
  if (parts.sections.size() > 1)
    w.text += "  }\n";
  launch.grid[1].mul = first;
  w.end();
}

LogicalResult gptc::cuda::writeGemm(KernelWriter &w) {
  GemmWriter g(w);
  if (g.parts.norm)
    return w.unsupported("a norm is a kernel of its own there; compile with "
                         "--disable-fusion=fuse-norm");
  g.nameValues();
  w.blocks.insert("math");
  w.blocks.insert("gemv");
  if (g.schedule.tiled())
    w.blocks.insert(w.precision == InputPrecision::F32 ? "gemm_ffma"
                                                       : "gemm_mma");
  if (g.parts.cache >= 0)
    w.blocks.insert("kv");
  for (unsigned i = 0; i < g.parts.sections.size(); ++i)
    if (failed(g.section(i)))
      return failure();
  // Rows are the kernel's first dimension; with several dynamic dimensions, or
  // none, one class serves all.
  const int64_t rows = w.staticCount(g.parts.x, 1), few = g.schedule.fewRows;
  const bool byRows = w.rank(g.parts.x) == 2 && rows < 0;
  if (byRows) {
    w.variant(1);
    g.function("_rows1", 1, true);
    w.variant(g.schedule.tiled() ? few : INT64_MAX);
    g.function(fmt::format("_rows{}", few), few, true);
  }
  if (byRows && !g.schedule.tiled())
    return success();
  w.variant();
  bool tiled = g.schedule.tiled() && (rows < 0 || rows > few);
  g.function("", tiled ? g.schedule.rows : few, !tiled);
  return success();
}
