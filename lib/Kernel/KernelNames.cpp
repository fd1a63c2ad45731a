//===- KernelNames.cpp - what a kernel is called --------------------------===//
//
// Names are part of the package's interface: they depend on the op alone, never
// on how many kernels there are.
//
//===----------------------------------------------------------------------===//
#include "KernelNames.h"
#include "gptc/Kernel/KernelKind.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

StringRef gptc::kernelKind(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<LinearOp, FusedGemmOp>([](auto) { return "gemm"; })
      .Case([](FlashAttentionOp) { return "attention"; })
      .Case([](MatmulOp) { return "matmul"; })
      .Case<LayerNormOp, RmsNormOp>([](auto) { return "norm"; })
      .Case([](EmbeddingOp) { return "embedding"; })
      .Case<RopeOp, RotateOp, RopeTableOp>([](auto) { return "rope"; })
      .Case<SoftmaxOp, LogSoftmaxOp>([](auto) { return "softmax"; })
      .Case<ArgmaxOp, MergeArgmaxOp>([](auto) { return "argmax"; })
      .Case<MaskOp, CausalMaskOp, AlibiOp>([](auto) { return "mask"; })
      .Case<KVAppendOp, KVReadOp>([](auto) { return "kv_cache"; })
      .Case<SelectRowsOp, SplitOp, SplitHeadsOp, MergeHeadsOp, PositionsOp,
            BroadcastOp, tensor::ExpandShapeOp>([](auto) { return "layout"; })
      .Default([](Operation *) { return "elementwise"; });
}

/// "addf" of arith and "tanh" of math, without the type letter.
static StringRef plainName(Operation *op) {
  StringRef name = op->getName().stripDialect();
  if (isa<arith::ArithDialect>(op->getDialect()))
    name.consume_back("f");
  return name;
}

/// Static sizes of a tensor by meaning: _t4_c64, _h9_d64, _r2 and so on.
static std::string sizes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "";
  static constexpr const char *letters[] = {"", "c", "tc", "htd", "bhtd"};
  std::string text;
  int64_t rank = tensor.getRank();
  for (auto [axis, extent] : llvm::enumerate(tensor.getShape()))
    if (!ShapedType::isDynamic(extent))
      text += rank < 5 ? fmt::format("_{}{}", letters[rank][axis], extent)
                       : fmt::format("_{}", extent);
  return text;
}

/// Names of the functions that an epilogue applies, in order, each once.
static void addEpilogue(llvm::SetVector<StringRef> &words, Region &region,
                        bool lanes) {
  for (Operation &op : region.front().without_terminator()) {
    if (auto gelu = dyn_cast<GeluOp>(op)) {
      words.insert(StringSwitch<StringRef>(stringifyGeluKind(gelu.getKind()))
                       .Case("erf", "gelu_erf")
                       .Case("tanh", "gelu_tanh")
                       .Default("gelu_quick"));
      continue;
    }
    // Sums are residuals and products gates, which have their own words.
    if (isa<arith::ConstantOp, arith::AddFOp>(op))
      continue;
    if (isa<arith::MulFOp>(op) && (lanes || region.getNumArguments() > 1))
      continue;
    words.insert(plainName(&op));
  }
}

static std::string gemmName(FusedGemmOp op) {
  std::string name = fmt::format("gemm_k{}", op.inFeatures());
  unsigned count = op.getWeights().size();
  if (op.getLanes() && count > 1) {
    name += fmt::format("_n{}x{}", count, op.outFeatures(0));
  } else {
    name += fmt::format("_n{}", op.allOutFeatures());
  }
  if (op.getNorm())
    name += *op.getNorm() == NormKind::Rms      ? "_rms"
            : *op.getNorm() == NormKind::Sample ? "_samplenorm"
                                                : "_layernorm";
  if (!op.getBiases().empty())
    name += "_bias";
  if (op.getRopeTable())
    name += "_rope";
  if (op.getCache())
    name += "_kvappend";
  if (op.getLanes() && count > 1)
    name += "_gate";
  llvm::SetVector<StringRef> words;
  // A section with a rope has nothing but the rotation in its region.
  for (auto [section, region] : llvm::enumerate(op.getEpilogues()))
    if (op.getLanes() || !op.ropeOf(section))
      addEpilogue(words, region, op.getLanes());
  for (StringRef word : words)
    name += ("_" + word).str();
  if (!op.getResiduals().empty())
    name += "_residual";
  // Values beside the one that each section has.
  int64_t values = 0;
  for (int64_t i = 0; i < op.numSections(); ++i)
    values += op.numYields(i);
  if (values > op.numSections())
    name += fmt::format("_and{}", values - op.numSections());
  if (op.getArgmax())
    name += "_argmax";
  return name;
}

static std::string attentionName(FlashAttentionOp op) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  int64_t heads = ShapedType::kDynamic, size = ShapedType::kDynamic;
  if (auto cache = op.getCache()) {
    size = cache.getType().getHeadDim();
    heads = cache.getType().getHeads() * op.getGroups();
  } else {
    heads = q.getDimSize(q.getRank() - 3);
    size = q.getDimSize(q.getRank() - 1);
  }
  std::string name = "attention";
  if (!ShapedType::isDynamic(heads))
    name += fmt::format("_h{}", heads);
  if (!ShapedType::isDynamic(size))
    name += fmt::format("_d{}", size);
  if (op.getCausal())
    name += "_causal";
  if (op.getWindow())
    name += fmt::format("_window{}", *op.getWindow());
  if (op.getSoftcap())
    name += "_softcap";
  if (op.getAlibi())
    name += "_alibi";
  if (!op.getMasks().empty())
    name += "_mask";
  if (op.getMasks().size() > 1)
    name += std::to_string(op.getMasks().size());
  return name;
}

std::string gptc::kernelName(Operation *op, ArrayRef<Storage> storages) {
  std::string name =
      TypeSwitch<Operation *, std::string>(op)
          .Case([](FusedGemmOp op) { return gemmName(op); })
          .Case([](LinearOp op) {
            return fmt::format("gemm_k{}_n{}{}", op.inFeatures(),
                               op.outFeatures(), op.getBias() ? "_bias" : "");
          })
          .Case([](FlashAttentionOp op) { return attentionName(op); })
          .Case([](GeluOp op) {
            return "gelu_" + stringifyGeluKind(op.getKind()).str() +
                   sizes(op.getType());
          })
          .Case([](LayerNormOp op) {
            return (op.getSample() ? "layer_norm_sample" : "layer_norm") +
                   sizes(op.getType());
          })
          .Case(
              [](ArgmaxOp op) { return "argmax" + sizes(op.getX().getType()); })
          .Case([](MergeArgmaxOp op) {
            return "merge_argmax" + sizes(op.getValues().getType());
          })
          .Case([](MatmulOp op) {
            return (op.getTransposeB() ? "matmul_bt" : "matmul") +
                   sizes(op.getA().getType()) + sizes(op.getType());
          })
          .Case([](KVAppendOp op) {
            return "kv_append" + sizes(op.getKeys().getType());
          })
          .Case([](KVReadOp op) {
            return "kv_read" + sizes(op.getKeys().getType());
          })
          .Case<SplitOp, SplitHeadsOp>([](Operation *op) {
            return op->getName().stripDialect().str() +
                   sizes(op->getOperand(0).getType()) +
                   sizes(op->getResult(0).getType());
          })
          .Default([](Operation *op) {
            return plainName(op).str() + sizes(op->getResult(0).getType());
          });
  llvm::SetVector<StringRef> formats;
  for (Storage storage : storages)
    if (storage != Storage::F32)
      formats.insert(stringifyStorage(storage));
  for (StringRef format : formats)
    name += ("_" + format).str();
  return name;
}
