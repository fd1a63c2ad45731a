//===- Weights.cpp - where the evaluator's weights come from --------------===//

#include "gptc/Reference/Weights.h"
#include "Rules.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace gptc::reference;
namespace checkpoint = gptc::checkpoint;

WeightSource::~WeightSource() = default;

FailureOr<TensorRef> NamedWeights::load(ml_program::GlobalOp global) {
  auto found = tensors.find(global.getSymName().str());
  if (found == tensors.end())
    return global.emitError("expected the host to give a weight named '")
           << global.getSymName() << "', got none";
  return found->second;
}

/// Dequantises row by row. Null after an error at `global`.
static TensorRef dequantize(ml_program::GlobalOp global,
                            const checkpoint::TensorInfo &info) {
  // Another shape is refused by the evaluator, as that of any weight.
  std::vector<int64_t> shape = info.shape;
  if (auto type = dyn_cast<RankedTensorType>(global.getType());
      type && checkpoint::isShapeOf(info.shape, type.getShape().vec()))
    shape = type.getShape().vec();
  auto tensor = allocate(global, shape);
  if (!tensor)
    return nullptr;
  int64_t rows = tensor->rows(), columns = tensor->columns();
  uint64_t stride = checkpoint::rowBytes(info.storage, columns).value_or(0);
  std::vector<float> row(columns);
  for (int64_t r = 0; r < rows; ++r) {
    if (!checkpoint::dequantizeRow(info.storage, info.data + r * stride,
                                   columns, row.data())) {
      global.emitError("expected a weight format, got ")
          << checkpoint::storageName(info.storage) << " for tensor '"
          << info.name << "' in " << info.file;
      return nullptr;
    }
    std::copy(row.begin(), row.end(), tensor->data.begin() + r * columns);
  }
  return tensor;
}

FailureOr<TensorRef> CheckpointWeights::load(ml_program::GlobalOp global) {
  auto stored = global->getAttrOfType<gpt::StoredAttr>("gpt.stored");
  if (host && (!stored || stored.getFile().empty()))
    return host->load(global);
  if (!stored)
    return global.emitError("expected a gpt.stored attribute that says where "
                            "the weight lies");
  std::string name = stored.getTensor().str();

  const checkpoint::TensorInfo *info = checkpoint.find(name);
  if (!info)
    return global.emitError("expected a tensor '")
           << name << "' in " << checkpoint.path() << ", found none";
  if (llvm::sys::path::filename(info->file) !=
      llvm::sys::path::filename(stored.getFile()))
    return global.emitError("expected tensor '")
           << name << "' in file " << stored.getFile() << ", found it in "
           << info->file;
  llvm::StringRef storage = gpt::stringifyStorage(stored.getStorage());
  if (std::string_view(storage) != checkpoint::storageName(info->storage))
    return global.emitError("expected tensor '")
           << name << "' stored as " << storage << ", found "
           << checkpoint::storageName(info->storage) << " in " << info->file;
  if (auto found = loaded.find(name); found != loaded.end())
    return found->second;
  TensorRef tensor = dequantize(global, *info);
  if (!tensor)
    return failure();
  loaded.emplace(std::move(name), tensor);
  return tensor;
}
