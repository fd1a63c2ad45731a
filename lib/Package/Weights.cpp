//===- Weights.cpp - from the checkpoint to <name>.weights ----------------===//
//
// Tensors are mapped; each is packed into a buffer of its packed size, written
// and its pages given back: no more than one is in memory, twice where its
// format is one that kernels do not read (checkpoint::packedFrom).
// Every packed weight starts at a multiple of 64 bytes and the gaps
// are zeros, so that the file and its checksum depend on nothing else. Each
// level has its section with all weights in its own layout.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "Progress.h"
#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "gptc/Format/WeightLayout.h"
#include "gptc/Package/WritePackage.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;

static LogicalResult checkWeight(const PackedWeight &weight,
                                 const checkpoint::Checkpoint &checkpoint) {
  ml_program::GlobalOp global = weight.view.global;
  const checkpoint::TensorInfo *tensor = checkpoint.find(weight.name);
  if (!tensor) {
    StringRef nearest = nearestName(
        weight.name, llvm::map_range(checkpoint.tensors(),
                                     [](const checkpoint::TensorInfo &other) {
                                       return StringRef(other.name);
                                     }));
    InFlightDiagnostic diagnostic = global.emitOpError("expected a tensor ")
                                    << checkpoint::quote(weight.name) << " in "
                                    << checkpoint.path() << ", which has "
                                    << checkpoint.tensors().size() << " others";
    if (!nearest.empty())
      diagnostic << "; did you mean " << checkpoint::quote(nearest) << "?";
    return diagnostic;
  }
  auto type = cast<RankedTensorType>(global.getType());
  std::vector<int64_t> shape(type.getShape().begin(), type.getShape().end());
  if (!checkpoint::isShapeOf(tensor->shape, shape))
    return global.emitOpError("expected tensor ")
           << checkpoint::quote(weight.name) << " of shape "
           << checkpoint::shapeText(shape) << ", got "
           << checkpoint::shapeText(tensor->shape) << " in " << tensor->file;
  auto stored = global->getAttrOfType<gpt::StoredAttr>("gpt.stored");
  StringRef expected =
      stringifyStorage(stored ? stored.getStorage() : gpt::Storage::F32);
  std::string_view got = checkpoint::storageName(tensor->storage);
  if (expected != StringRef(got))
    return global.emitOpError("expected tensor ")
           << checkpoint::quote(weight.name) << " stored as " << expected
           << ", got " << got << " in " << tensor->file;
  return success();
}

LogicalResult gptc::checkWeights(const PackageModel &package,
                                 const checkpoint::Checkpoint &checkpoint) {
  LogicalResult result = success();
  Operation *reported = nullptr; // sections of one global speak once
  unsigned errors = 0;
  for (const PackedWeight &weight : package.weights) {
    ml_program::GlobalOp global = weight.view.global;
    if (global == reported || succeeded(checkWeight(weight, checkpoint)))
      continue;
    reported = global;
    result = failure();
    if (++errors == 10) // the rest will be alike
      break;
  }
  return result;
}

/// The elements of `tensor` in the format that packers read, in `buffer` if
/// that is not the tensor's own. Null if rows are no whole blocks.
static const uint8_t *elementsOf(const checkpoint::TensorInfo &tensor,
                                 checkpoint::Storage packed,
                                 std::vector<uint8_t> &buffer) {
  if (packed == tensor.storage)
    return tensor.data;
  size_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  auto from = checkpoint::rowBytes(tensor.storage, columns);
  auto to = checkpoint::rowBytes(packed, columns);
  if (!from || !to || *from == 0)
    return nullptr;
  uint64_t rows = tensor.bytes / *from;
  buffer.resize(rows * *to);
  for (uint64_t row = 0; row < rows; ++row)
    if (!checkpoint::convertRow(tensor.storage, tensor.data + row * *from,
                                columns, buffer.data() + row * *to))
      return nullptr;
  return buffer.data();
}

llvm::Error gptc::writeWeights(llvm::ArrayRef<PackageModel> levels,
                               const checkpoint::Checkpoint *checkpoint,
                               StringRef path) {
  const PackageModel &package = levels.front();
  std::error_code code;
  llvm::raw_fd_ostream out(path, code, llvm::sys::fs::OF_None);
  if (code)
    return llvm::createFileError(path, code);
  gptc_weights_header header = {};
  out.write(reinterpret_cast<const char *>(&header), sizeof(header));

  uint64_t sum = 0, written = sizeof(header);
  std::vector<char> buffer;
  std::vector<uint8_t> converted;
  Progress progress("packing weights", package.weightsFileBytes);
  auto write = [&](size_t bytes) {
    sum = gptc_checksum(sum, buffer.data(), bytes);
    out.write(buffer.data(), bytes);
    written += bytes;
  };
  auto fillTo = [&](uint64_t offset) {
    buffer.assign(offset - written, 0);
    write(buffer.size());
  };
  for (const PackageModel &level : levels) {
    fillTo(level.sectionBegin + sizeof(header));
    for (const PackedWeight &weight : level.weights) {
      const checkpoint::TensorInfo *tensor = checkpoint->find(weight.name);
      uint64_t expected =
          gptc_source_bytes(weight.desc.source_dtype, weight.desc.source_rows,
                            weight.desc.source_cols);
      uint64_t bytes = llvm::alignTo(weight.desc.bytes, 64);
      buffer.assign(bytes, 0);
      const uint8_t *elements = nullptr;
      if (tensor) {
        auto packed = checkpoint::packedFrom(tensor->storage);
        auto size = checkpoint::tensorBytes(packed, tensor->shape);
        if (size && *size == expected)
          elements = elementsOf(*tensor, packed, converted);
      }
      if (!elements || gptc_pack_weight(&weight.desc, elements, buffer.data()))
        return llvm::createStringError("weight '" + weight.name +
                                       "' cannot be packed");
      write(bytes);
      progress.advance(bytes);
      checkpoint::releasePages(tensor->data, tensor->bytes);
    }
    fillTo(level.sectionBegin + level.sectionBytes);
  }

  memcpy(header.magic, GPTC_WEIGHTS_MAGIC, sizeof(header.magic));
  header.package_hash = package.packageHash;
  header.file_bytes = package.weightsFileBytes;
  header.checksum = sum;
  out.seek(0);
  out.write(reinterpret_cast<const char *>(&header), sizeof(header));
  out.close();
  if (out.has_error()) {
    std::error_code failed = out.error();
    out.clear_error();
    return llvm::createFileError(path, failed);
  }
  return llvm::Error::success();
}
