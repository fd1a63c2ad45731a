//===- Attention.cpp - flash attention kernels ----------------------------===//
//
// A struct says what becomes of a score (softcap, alibi, mask); the loops are
// attention.cuh or, on tensor cores, attention_mma.cuh; for few tokens over the
// cache decode.cuh. In tf32 too attention is f32: tiles of 32-bit keys and
// values of large heads do not fit the shared memory of sm_86, and up to a few
// thousand tokens attention is a small part of a prefill.
//
//===----------------------------------------------------------------------===//
#include "Writer.h"
#include "gptc/Schedule/CudaSchedule.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

namespace {

struct AttentionWriter {
  KernelWriter &w;
  gpt::FlashAttentionOp op;
  CudaAttentionSchedule schedule;
  SmallVector<Repeated> masks;
  int64_t head = 0; // channels of one
  gpt::KVCacheType cache;

  AttentionWriter(KernelWriter &w, gpt::FlashAttentionOp op)
      : w(w), op(op), schedule(readCudaAttentionSchedule(w.kernel)) {
    if (op.getCache())
      cache = op.getCache().getType();
    head = cache ? cache.getHeadDim() : op.getQ().getType().getShape().back();
  }

  std::string structName() const {
    return w.kernel.getSymName().str() + "_scores";
  }
  bool mma() const { return is16Bit(w.precision); }
  std::string tile() const;
  void scores();
  void maskRow();
  Names maskMembers();
  /// The dynamic sizes, which a row of the mask is found by.
  Names dimNames() const;
  void declareScores();
  void tiles();
  void splits();
  void dense();
};

} // namespace

std::string AttentionWriter::tile() const {
  if (mma())
    return fmt::format("gptc::MmaAttentionTile<{}, {}, {}>",
                       elementName(w.precision), schedule.keys, head);
  return fmt::format("gptc::AttentionTile<{}, {}, {}>", schedule.rows,
                     schedule.keys, head);
}

/// Where the row of each mask lies that belongs to a row of q.
void AttentionWriter::maskRow() {
  w.text += "  struct MaskRow {";
  for (size_t i = 0; i < masks.size(); ++i)
    w.print("{}mask{}", i ? ", " : " long long ", i);
  w.text += masks.empty() ? "};\n" : "; };\n";
  w.text += "  __device__ MaskRow mask_row(long long row) const {\n"
            "    MaskRow at = {};\n";
  Names shape;
  for (unsigned i = 0; i + 1 < w.rank(0); ++i)
    shape.push_back(w.size(0, i));
  if (!masks.empty())
    shape.push_back(w.size(1, w.rank(1) - 2));
  for (auto [i, mask] : llvm::enumerate(masks)) {
    w.text += "    {\n" + mask.rowOffset(shape, "      ");
    w.print("      at.mask{} = offset;\n    }}\n", i);
  }
  w.text += "    return at;\n  }\n";
}

/// The masks that are arguments of the kernel.
Names AttentionWriter::maskMembers() {
  Names names;
  for (auto [operand, mask] : llvm::zip(op.getMasks(), masks))
    if (isa<BlockArgument>(operand))
      names.push_back(mask.base);
  return names;
}

void AttentionWriter::scores() {
  std::string slopes = w.name + "_slopes";
  int64_t heads = 1;
  if (op.getAlibi()) {
    SmallVector<float> rounded(op.getAlibi()->begin(), op.getAlibi()->end());
    printArray<float>(w, slopes, rounded);
    heads = rounded.size();
  }
  for (Value mask : op.getMasks())
    masks.emplace_back(w, mask);
  w.print("\n/// {}: what becomes of a score.\nstruct {} {{\n",
          w.kernel.getSymName().str(), structName());
  w.print("  static constexpr int groups = {}, heads = {}, splits = {};\n",
          op.getGroups(), heads, schedule.splits);
  w.print("  static constexpr bool causal = {};\n", op.getCausal());
  w.print("  static constexpr long long window = {};\n",
          op.getWindow().value_or(0));
  w.print("  static constexpr float scale = {};\n",
          number(float(op.getScale().convertToDouble())));
  for (auto [operand, mask] : llvm::zip(op.getMasks(), masks))
    if (isa<BlockArgument>(operand))
      w.print("  const {} *{};\n", mask.words ? "int" : "float", mask.base);
  if (!masks.empty())
    for (const std::string &dim : dimNames())
      w.print("  long long {};\n", dim);
  w.text += '\n';
  maskRow();
  w.text += "  __device__ float score(float s, int head, long long query,\n"
            "                         long long key, MaskRow at) const {\n";
  if (op.getSoftcap())
    w.print("    s = gptc::softcap(s, {});\n",
            number(float(op.getSoftcap()->convertToDouble())));
  if (op.getAlibi())
    w.print("    s = fmaf({}[head], float(int(key - query)), s);\n", slopes);
  for (auto [i, mask] : llvm::enumerate(masks)) {
    std::string m = mask.at(fmt::format("at.mask{}", i), "key");
    if (mask.words)
      w.print("    s = {} ? s : {};\n", m,
              op.getFill() ? number(float(op.getFill()->convertToDouble()))
                           : "-gptc::infinity()");
    else
      w.print("    s += {};\n", m);
  }
  w.text += "    return s;\n  }\n};\n";
}

/// The struct within a function.
void AttentionWriter::declareScores() {
  Names members = maskMembers();
  if (!masks.empty())
    members.append(dimNames());
  w.print("  const {} scores = {{{}}};\n", structName(),
          llvm::join(members, ", "));
}

Names AttentionWriter::dimNames() const {
  int64_t count = 0;
  for (ArrayRef<int64_t> sizes : w.dims)
    for (int64_t n : sizes)
      count = std::max(count, -n);
  Names names;
  for (int64_t i = 0; i < count; ++i)
    names.push_back(fmt::format("d{}", i));
  return names;
}

/// Over the cache, rows of the packed batch against one KV head.
void AttentionWriter::tiles() {
  const int threads = mma() ? 128 : 256;
  const int64_t shared = cudaAttentionShared(schedule, head, w.precision);
  w.blocks.insert(mma() ? "attention_mma" : "attention");
  w.variant().inputs = mma() ? w.precision : InputPrecision::F32;
  std::string name = w.begin("", threads, 1);
  CudaLaunch &launch = w.launch(name, threads, shared);
  launch.grid[0] = w.extent(0, 1, schedule.rows);
  launch.grid[0].mul *= op.getGroups();
  launch.grid[1].mul = cache.getHeads();
  w.declareShared();
  w.print("  using Tile = {};\n"
          "  static_assert(Tile::shared == {} && Tile::threads == {});\n",
          tile(), shared, threads);
  declareScores();
  w.print("  gptc::attention_paged<Tile, {}>(\n"
          "      scores, q, cache, out, {}, shared);\n",
          cacheName(cache), w.count(0, 1));
  w.end();
}

/// Over the cache, few tokens: partial results, then their sum.
void AttentionWriter::splits() {
  const int threads = 128;
  const int64_t heads = cache.getHeads() * op.getGroups();
  const int64_t shared = cudaSplitShared(schedule, head);
  w.blocks.insert("decode");
  w.usesScratch = true;
  w.product.scratchBytes =
      schedule.fewTokens * heads * schedule.splits * (head + 2) * 4;
  w.variant(schedule.fewTokens);
  std::string name = w.begin("_split", threads);
  CudaLaunch &launch = w.launch(name, threads, shared);
  launch.grid[0] = w.extent(0, 1);
  launch.grid[1].mul =
      cache.getHeads() * ((int64_t(op.getGroups()) + schedule.splitHeads - 1) /
                          schedule.splitHeads);
  launch.grid[2].mul = schedule.splits;
  w.guardRows(0, 1);
  w.declareShared();
  w.print("  using Tile = gptc::DecodeTile<{}, {}, {}>;\n"
          "  static_assert(Tile::shared == {} && Tile::threads == {});\n",
          schedule.splitHeads, schedule.keys, head, shared, threads);
  declareScores();
  w.print("  gptc::decode_split<Tile, {}>(\n"
          "      scores, q, cache, positions, sequences,\n"
          "      static_cast<float *>(scratch), shared);\n",
          cacheName(cache));
  w.end();
  const int combining = head <= 64 ? 64 : 128;
  name = w.begin("_combine", combining);
  CudaLaunch &combine = w.launch(name, combining);
  combine.grid[0] = w.extent(0, 1);
  combine.grid[0].mul *= heads;
  w.print("  if (blockIdx.x >= {} * {})\n    return;\n", w.count(0, 1), heads);
  w.print("  gptc::decode_combine<{}, {}, {}>(\n"
          "      static_cast<const float *>(scratch), out);\n",
          combining, head, schedule.splits);
  w.end();
}

void AttentionWriter::dense() {
  const int threads = mma() ? 128 : 256;
  const unsigned rank = w.rank(0);
  const int64_t shared = cudaAttentionShared(schedule, head, w.precision);
  w.blocks.insert(mma() ? "attention_mma" : "attention");
  w.variant().inputs = mma() ? w.precision : InputPrecision::F32;
  std::string name = w.begin("", threads, 1);
  CudaLaunch &launch = w.launch(name, threads, shared);
  int64_t sq = w.shape(0)[rank - 2];
  launch.grid[0] = {int64_t(op.getGroups()) * std::max<int64_t>(sq, 1),
                    {sq < 0 ? int(-1 - sq) : -1, -1, -1},
                    schedule.rows};
  launch.grid[1] = w.extent(1, 2);
  w.declareShared();
  w.print("  using Tile = {};\n"
          "  static_assert(Tile::shared == {} && Tile::threads == {});\n",
          tile(), shared, threads);
  declareScores();
  w.print("  gptc::attention_dense<Tile>(\n"
          "      scores, q, k, v, out, {}, {}, shared);\n",
          w.size(0, rank - 2), w.size(1, rank - 2));
  w.end();
}

LogicalResult gptc::cuda::writeAttention(KernelWriter &w,
                                         gpt::FlashAttentionOp op) {
  AttentionWriter a(w, op);
  w.blocks.insert("math");
  if (!a.cache) {
    SmallVector<StringRef> names{"q", "k", "v", "mask"};
    if (op.getMasks().size() > 1)
      names.pop_back(); // they are numbered
    w.nameValues(names);
    a.scores();
    a.dense();
    return success();
  }
  w.nameValues({"q", "cache", "positions", "sequences"});
  a.scores();
  a.splits();
  a.tiles();
  return success();
}
