//===- Safetensors.h - The safetensors format -------------------*- C++ -*-===//
//
// A safetensors file is a little-endian u64 header length, a JSON header
// {name: {dtype, shape, data_offsets}}, and the tensors' bytes without holes.
// Refuses, naming the tensor and the rule: a header that does not fit or is
// above 100 MB, unknown dtypes, a span that is not what shape and dtype take,
// spans that overlap, leave a hole or bytes at the end, duplicate names.
// Accepts tensors of no elements, empty metadata and spaces after the header.
// Spec: https://github.com/huggingface/safetensors
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_SAFETENSORS_H
#define GPTC_CHECKPOINT_SAFETENSORS_H

#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Checkpoint/Tensor.h"
#include <map>
#include <string>
#include <vector>

namespace gptc::checkpoint {

/// The tensors of `file`, in the order of the header. They point into its
/// mapping.
Expected<std::vector<TensorInfo>> readSafetensors(const MappedFile &file);

/// The `weight_map` of a `model.safetensors.index.json`: tensor name to the
/// file name of its shard. Refuses names that leave the folder.
Expected<std::map<std::string, std::string>>
readShardIndex(const std::string &path);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_SAFETENSORS_H
