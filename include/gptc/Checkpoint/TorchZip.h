//===- TorchZip.h - What torch.save writes ----------------------*- C++ -*-===//
//
// A zip archive of stored entries: NAME/data.pkl, a pickle of the structure,
// and NAME/data/KEY, the bytes of each storage. Tensors are views of the file.
// The state dict is the root itself (torch.save(model.state_dict())), or its
// entry `model`, `state_dict` or `model_state_dict`. Names lose the prefixes
// `_orig_mod.` (torch.compile) and `module.` (data parallel) where all of them
// have one.
//
// Refuses: files older than PyTorch 1.6 (no zip), TorchScript archives, big-
// endian ones, whatever Zip.h refuses (compressed, overlapping, truncated
// entries) and Pickle.h refuses (any other object, by name), tensors that are
// not contiguous (a transposed view) or leave their storage, names that are
// empty. Tensors may share a storage, and lie at an offset of it. Checksums are
// not computed. Source: torch/serialization.py.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_CHECKPOINT_TORCHZIP_H
#define GPTC_CHECKPOINT_TORCHZIP_H

#include "gptc/Checkpoint/Json.h"
#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Checkpoint/Tensor.h"
#include <vector>

namespace gptc::checkpoint {

struct TorchContents {
  /// Of the state dict, in its order. They point into the file's mapping.
  std::vector<TensorInfo> tensors;
  /// What lies beside the state dict as JSON would write it ({"model_args":
  /// {...}, "iter_num": 5}), without tensors, dicts of the optimizer and other
  /// members that are not under a string. Null where the root is the state
  /// dict.
  json::Value config;
};

/// Whether the file begins as a zip archive does.
bool looksLikeZip(const MappedFile &file);

Expected<TorchContents> readTorchZip(const MappedFile &file);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_TORCHZIP_H
