//===- CudaSchedule.cpp - tile sizes of CUDA kernels ----------------------===//
#include "gptc/Schedule/CudaSchedule.h"
#include "gptc/Schedule/Schedule.h"
#include <numeric>

using namespace mlir;
using namespace gptc;

/// The widest tile, over all lanes: 256 columns by 64 rows are 64 accumulators
/// for each of 256 threads, as many as 128 by 128.
static constexpr int64_t mostColumns = 256;

/// Whether tensor cores take weights as they are stored.
static bool isCopied(gpt::Storage storage, InputPrecision precision) {
  return (precision == InputPrecision::BF16 && storage == gpt::Storage::BF16) ||
         (precision == InputPrecision::F16 && storage == gpt::Storage::F16);
}

/// Columns that a tile holds whole multiples of: panels, and heads, where a
/// rotary partner is in the same tile, or blocks of an argmax, which a block of
/// threads finds alone.
static int64_t unitOf(const KernelGemm &gemm) {
  int64_t whole = gemm.argmax ? gemm.argmax : gemm.headDim;
  return std::lcm(cudaPanel, std::max<int64_t>(whole, 1));
}

/// Columns of a block for few rows. The more panels it has, the fewer of its
/// eight warps share one and have to bring their sums together; but blocks
/// should be enough for two rounds of two on each SM (108 of an A100, 128 of an
/// RTX 4090).
static int64_t fewColumnsOf(const KernelGemm &gemm, int64_t unit) {
  auto blocks = [&](int64_t columns) {
    int64_t n = 0;
    for (const KernelGemm::Section &section : gemm.sections)
      n += llvm::divideCeil(section.n, columns);
    return n;
  };
  int64_t columns = unit;
  while (2 * columns * gemm.maxLanes() <= 8 * cudaPanel &&
         blocks(2 * columns) >= 432)
    columns *= 2;
  return columns;
}

CudaGemmSchedule gptc::scheduleCudaGemm(const KernelGemm &gemm,
                                        InputPrecision precision,
                                        const CudaTarget &target) {
  CudaGemmSchedule s;
  const int64_t lanes = gemm.maxLanes();
  const int64_t unit = unitOf(gemm);
  // A lane keeps a sum for each row and each of up to eight features: 64
  // registers.
  s.fewRows = 8;
  s.fewColumns = fewColumnsOf(gemm, unit);
  // Odd heads make wide units, whose rows may be too many for a block.
  while (s.fewRows > 1 &&
         cudaFewRowsShared(s, gemm, s.fewRows) > target.sharedPerBlock)
    s.fewRows /= 2;
  // 64 columns: each row that is loaded meets 64 features. Half of that for
  // each of two lanes would leave half the threads without a column.
  s.columns = unit * std::max<int64_t>(1, (64 + unit - 1) / unit);
  if (s.columns * lanes > mostColumns)
    s.columns = mostColumns / lanes / unit * unit;
  if (!s.columns) {
    s.columns = unit;
    s.rows = s.fewRows;
  } else {
    s.rows = s.columns * lanes > 128 ? 64 : 128;
  }
  if (precision == InputPrecision::F32) {
    // A tile of x is two vectors a thread, the next one in registers.
    s.depth = 16;
    s.stages = 1;
    return s;
  }
  // Two steps of the tensor cores, rows of 64 bytes.
  s.depth = is16Bit(precision) ? 32 : 16;
  // Weights that are copied have a stage more under way; what goes through
  // registers has one there.
  s.stages = 2;
  for (const KernelGemm::Section &section : gemm.sections)
    for (gpt::Storage storage : section.storage)
      if (isCopied(storage, precision))
        s.stages = 3;
  // 512 tokens are four tiles of 128 rows: fewer than 27 of columns would leave
  // some of 108 SMs (A100) without a block.
  int64_t tiles = 0;
  for (const KernelGemm::Section &section : gemm.sections)
    tiles += (section.n + s.columns - 1) / s.columns;
  if (s.tiled() && tiles < 27)
    s.rows = 64;
  return s;
}

CudaAttentionSchedule gptc::scheduleCudaAttention(gpt::FlashAttentionOp op,
                                                  InputPrecision precision,
                                                  const CudaTarget &) {
  CudaAttentionSchedule s;
  gpt::KVCacheType cache;
  if (op.getCache())
    cache = op.getCache().getType();
  int64_t head =
      cache ? cache.getHeadDim() : op.getQ().getType().getShape().back();
  const bool f32 = !is16Bit(precision);
  // f32: queries [D][rows] and scores [keys][rows] fit two blocks into 100 KB
  // up to a head of 128, one beyond. Tensor cores: four warps of 16 rows.
  s.rows = f32 && head > 128 ? 32 : 64;
  // Two keys for each thread of a warp in the softmax. Keys and values of a
  // large head fit with half of that.
  s.keys = !f32 && head > 128 ? 32 : 64;
  if (cache)
    s.keys = std::min(s.keys, cache.getPage());
  // A batch of single tokens leaves a tile of rows mostly empty; for more
  // tokens than this, tiles read the keys less often.
  s.fewTokens = 64;
  s.splitHeads = std::min<int64_t>(8, op.getGroups());
  // One token should occupy about 128 SMs, whatever the number of KV heads; 32
  // splits are 2048 keys, more would be empty for most.
  int64_t heads = cache ? cache.getHeads() : 1;
  s.splits =
      std::clamp<int64_t>(llvm::PowerOf2Ceil((128 + heads - 1) / heads), 4, 32);
  return s;
}

int64_t gptc::scheduleCudaRow(int64_t n) {
  // Four numbers a thread hide the latency of a load; fewer threads meet
  // cheaper.
  return std::clamp<int64_t>(llvm::PowerOf2Ceil((n + 3) / 4), 64, 512);
}

bool gptc::canBeNarrow(gpt::KernelOp kernel, unsigned value) {
  Operation *op = kernel.kernelOp();
  const unsigned arguments = kernel.getArgumentTypes().size();
  if (value >= arguments &&
      isa<gpt::KVCacheType>(kernel.getResultTypes()[value - arguments]))
    return false;
  if (isa<gpt::LayerNormOp, gpt::RmsNormOp>(op))
    return value >= arguments;
  if (auto gemm = dyn_cast<gpt::FusedGemmOp>(op);
      gemm && (gemm.getNorm() || (gemm.getArgmax() && value >= arguments)))
    return false;
  // The activation of a GEMM and the queries come first.
  return isa<gpt::LinearOp, gpt::FusedGemmOp, gpt::FlashAttentionOp>(op) &&
         (value == 0 || value >= arguments);
}

// FfmaTile::shared of gemm_ffma.cuh and MmaTile::shared of gemm_mma.cuh.
int64_t gptc::cudaGemmShared(const CudaGemmSchedule &s, int64_t lanes,
                             InputPrecision precision) {
  int64_t width = lanes * s.columns;
  if (precision != InputPrecision::F32) {
    int64_t weights =
        is16Bit(precision) ? s.depth * width * 2 : s.depth * (width + 8) * 4;
    return std::max(s.stages * (s.rows * 64 + weights), 32 * (width + 8) * 4);
  }
  return 4 * std::max(s.depth * (s.rows + 4 + width), 16 * (width + 1));
}

// GemvTile::shared of gemv.cuh.
int64_t gptc::cudaFewRowsShared(const CudaGemmSchedule &s,
                                const KernelGemm &gemm, int64_t rows) {
  const int64_t warps = 8;
  int64_t chunk = std::min((gemm.k + 63) / 64 * 64, 8192 / rows);
  return 4 * rows *
         (chunk + gemm.maxLanes() * s.fewColumns + 2 * warps * cudaPanel);
}

// AttentionTile::shared of attention.cuh, MmaAttentionTile::shared of
// attention_mma.cuh.
int64_t gptc::cudaAttentionShared(const CudaAttentionSchedule &s, int64_t head,
                                  InputPrecision precision) {
  if (is16Bit(precision)) {
    int64_t channels = (head + 15) / 16 * 16, pitch = channels * 2 + 16;
    return s.rows * pitch + channels * (s.keys * 2 + 16) + s.keys * pitch;
  }
  return 4 * (head * s.rows + 32 * (s.keys + 1) + s.keys * (s.rows + 4) +
              3 * s.rows);
}

// DecodeTile::shared of decode.cuh.
int64_t gptc::cudaSplitShared(const CudaAttentionSchedule &s, int64_t head) {
  const int64_t threads = 128;
  int64_t channels = head < 128 ? (head + 31) / 32 * 32 : 128;
  return 4 * s.splitHeads *
         (head + threads / s.keys * s.keys + threads / channels * head + 3);
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

namespace {
struct NamedSize {
  StringRef name;
  int64_t value;
};
} // namespace

static SmallVector<NamedSize> sizesOf(const CudaGemmSchedule &s) {
  return {{"columns", s.columns},
          {"depth", s.depth},
          {"few_columns", s.fewColumns},
          {"few_rows", s.fewRows},
          {"rows", s.rows},
          {"stages", s.stages}};
}
static SmallVector<NamedSize> sizesOf(const CudaAttentionSchedule &s) {
  return {{"few_tokens", s.fewTokens},
          {"keys", s.keys},
          {"rows", s.rows},
          {"split_heads", s.splitHeads},
          {"splits", s.splits}};
}

DictionaryAttr gptc::cudaScheduleOf(gpt::KernelOp kernel,
                                    InputPrecision precision,
                                    const CudaTarget &target) {
  Operation *op = kernel.kernelOp();
  SmallVector<NamedSize> sizes;
  if (isa<gpt::LinearOp, gpt::FusedGemmOp>(op))
    sizes = sizesOf(scheduleCudaGemm(kernelGemm(kernel), precision, target));
  else if (auto attention = dyn_cast<gpt::FlashAttentionOp>(op))
    sizes = sizesOf(scheduleCudaAttention(attention, precision, target));
  else
    return {};
  Builder b(kernel.getContext());
  SmallVector<NamedAttribute> attributes;
  for (NamedSize size : sizes)
    attributes.push_back(
        b.getNamedAttr(size.name, b.getI64IntegerAttr(size.value)));
  return b.getDictionaryAttr(attributes);
}

static int64_t sizeOf(gpt::KernelOp kernel, StringRef name) {
  return kernel.getScheduleAttr().getAs<IntegerAttr>(name).getInt();
}

CudaGemmSchedule gptc::readCudaGemmSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "rows"),   sizeOf(k, "columns"),  sizeOf(k, "depth"),
          sizeOf(k, "stages"), sizeOf(k, "few_rows"), sizeOf(k, "few_columns")};
}

CudaAttentionSchedule gptc::readCudaAttentionSchedule(gpt::KernelOp k) {
  return {sizeOf(k, "rows"), sizeOf(k, "keys"), sizeOf(k, "few_tokens"),
          sizeOf(k, "splits"), sizeOf(k, "split_heads")};
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {
struct Checker {
  gpt::KernelOp kernel;
  const CudaTarget &target;

  bool size(StringRef name, bool ok, const Twine &what) {
    if (!ok)
      kernel.emitOpError("schedule: expected '")
          << name << "' " << what << ", got " << sizeOf(kernel, name);
    return ok;
  }
  bool shared(StringRef what, int64_t bytes) {
    if (bytes > target.sharedPerBlock)
      kernel.emitOpError("schedule: expected ")
          << what << " to take at most " << target.sharedPerBlock
          << " bytes of shared memory of a block of " << target.name << ", got "
          << bytes;
    return bytes <= target.sharedPerBlock;
  }
  bool grid(StringRef what, int64_t blocks) {
    if (blocks > target.gridYZ)
      kernel.emitOpError("schedule: expected at most ")
          << target.gridYZ << " blocks of " << what << " in a grid, got "
          << blocks;
    return blocks <= target.gridYZ;
  }
  bool gemm(InputPrecision precision);
  bool attention(gpt::FlashAttentionOp op, InputPrecision precision);
};
} // namespace

bool Checker::gemm(InputPrecision precision) {
  KernelGemm parts = kernelGemm(kernel);
  CudaGemmSchedule s = readCudaGemmSchedule(kernel);
  const int64_t lanes = parts.maxLanes();
  const int64_t unit = unitOf(parts);
  const bool f32 = precision == InputPrecision::F32;
  const int64_t depth = is16Bit(precision) ? 32 : 16;
  std::string heads =
      "to hold whole heads or blocks of an argmax, and panels of 16, whose "
      "rows are copied 16 bytes at a time: a multiple of " +
      std::to_string(unit);
  if (!size("columns", s.columns % unit == 0, heads) ||
      !size("few_columns", s.fewColumns % unit == 0, heads) ||
      !size("few_rows",
            s.fewRows > 1 && s.fewRows <= 8 && llvm::isPowerOf2_64(s.fewRows),
            "to be 2, 4 or 8, whose sums take at most half of a thread's " +
                Twine(target.registersPerThread) + " registers") ||
      !size("depth", s.depth == depth, "to be " + Twine(depth)) ||
      !size("stages", f32 ? s.stages == 1 : s.stages >= 2 && s.stages <= 8,
            f32 ? "to be 1" : "to be 2 to 8") ||
      !shared("few rows", cudaFewRowsShared(s, parts, s.fewRows)))
    return false;
  int64_t columns =
      s.tiled() ? std::min(s.columns, s.fewColumns) : s.fewColumns;
  int64_t blocks = 0;
  for (const KernelGemm::Section &section : parts.sections)
    blocks += (section.n + columns - 1) / columns;
  if (!grid("'columns'", blocks))
    return false;
  return !s.tiled() || (size("rows", s.rows % 64 == 0 && s.rows <= 128,
                             "to be 64 or 128, or 'few_rows'") &&
                        size("columns", s.columns * lanes * s.rows <= 128 * 128,
                             "to leave a thread 64 sums: at most " +
                                 Twine(128 * 128 / s.rows / lanes)) &&
                        shared("a tile", cudaGemmShared(s, lanes, precision)));
}

bool Checker::attention(gpt::FlashAttentionOp op, InputPrecision precision) {
  CudaAttentionSchedule s = readCudaAttentionSchedule(kernel);
  const bool f32 = !is16Bit(precision);
  auto cache = op.getCache() ? op.getCache().getType() : gpt::KVCacheType();
  int64_t page = cache ? cache.getPage() : 64;
  int64_t head =
      cache ? cache.getHeadDim() : op.getQ().getType().getShape().back();
  if (head > 256) {
    kernel.emitOpError("expected a head size of at most 256 for the CUDA "
                       "target, got ")
        << head;
    return false;
  }
  return size("keys",
              llvm::isPowerOf2_64(s.keys) && s.keys <= 64 && s.keys >= 16,
              "to be 16, 32 or 64") &&
         size("keys", page % s.keys == 0,
              "to divide the cache's page of " + Twine(page)) &&
         size("rows", s.rows == 64 || (f32 && s.rows == 32),
              f32 ? "to be 32 or 64" : "to be 64") &&
         size("split_heads", s.splitHeads <= 8, "to be at most 8") &&
         size("splits", s.splits <= target.gridYZ,
              "to be at most " + Twine(target.gridYZ)) &&
         shared("a tile", cudaAttentionShared(s, head, precision)) &&
         shared("a split", cudaSplitShared(s, head)) &&
         grid("KV heads", cache ? cache.getHeads() * op.getGroups() : 1);
}

LogicalResult gptc::verifyCudaSchedule(gpt::KernelOp kernel,
                                       InputPrecision precision,
                                       const CudaTarget &target) {
  DictionaryAttr wanted = cudaScheduleOf(kernel, precision, target);
  if (!wanted)
    return success();
  if (failed(expectSizes(kernel, wanted)))
    return failure();
  Checker check{kernel, target};
  auto attention = dyn_cast<gpt::FlashAttentionOp>(kernel.kernelOp());
  return success(attention ? check.attention(attention, precision)
                           : check.gemm(precision));
}
