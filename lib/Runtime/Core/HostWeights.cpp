//===- HostWeights.cpp - Weights handed over by the host ------------------===//
//
// The host gives the checkpoint's tensors by name, dense and in the stored
// format; they are packed into an image laid out like the weights file's
// section, after which the host may free them. Several packed weights may come
// from one tensor. Tensors that the package does not use are ignored:
// checkpoints carry mask buffers and the like.
//
// Refuses a missing tensor, another format or shape, and a tensor whose
// capacity is given and too small.
//
//===----------------------------------------------------------------------===//

#include "Core.h"
#include "gptc/Format/WeightLayout.h"
#include <string.h>

namespace gptc::core {

static const gptc_tensor *find(const gptc_tensor *tensors, size_t count,
                               const char *name) {
  for (size_t i = 0; i < count; ++i)
    if (tensors[i].name && !strcmp(tensors[i].name, name))
      return &tensors[i];
  return nullptr;
}

static bool shapeFits(const gptc_weight_desc &weight,
                      const gptc_tensor &tensor) {
  if (tensor.rank == 2)
    return tensor.shape[0] == weight.source_rows &&
           tensor.shape[1] == weight.source_cols;
  return tensor.rank == 1 && weight.source_rows == 1 &&
         tensor.shape[0] == weight.source_cols;
}

static gptc_status checkTensor(const gptc_weight_desc &weight,
                               const gptc_tensor *tensor, size_t count) {
  if (!tensor)
    return fail(GPTC_INVALID_ARGUMENT,
                "open: weight '%.200s' is missing among the %llu tensors given",
                weight.name, static_cast<unsigned long long>(count));
  if (tensor->dtype != weight.source_dtype)
    return fail(GPTC_INVALID_ARGUMENT,
                "open: weight '%.200s': expected %s, got %s", weight.name,
                dtypeName(weight.source_dtype), dtypeName(tensor->dtype));
  if (!shapeFits(weight, *tensor)) {
    char shape[200];
    printShape(tensor->rank, tensor->shape, shape, sizeof(shape));
    if (weight.source_rows == 1)
      return fail(GPTC_INVALID_ARGUMENT,
                  "open: weight '%.200s': expected shape [%lld], got %s",
                  weight.name, static_cast<long long>(weight.source_cols),
                  shape);
    return fail(GPTC_INVALID_ARGUMENT,
                "open: weight '%.200s': expected shape [%lld, %lld], got %s",
                weight.name, static_cast<long long>(weight.source_rows),
                static_cast<long long>(weight.source_cols), shape);
  }
  uint64_t bytes = gptc_source_bytes(weight.source_dtype, weight.source_rows,
                                     weight.source_cols);
  if (!tensor->data ||
      (tensor->capacity_bytes && tensor->capacity_bytes < bytes))
    return fail(GPTC_INVALID_ARGUMENT,
                "open: weight '%.200s': expected %llu bytes of data, got %llu",
                weight.name, static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(
                    tensor->data ? tensor->capacity_bytes : 0));
  return GPTC_OK;
}

gptc_status packWeights(const gptc_tensor *tensors, size_t count,
                        Model &model) {
  const gptc_program &program = programOf(model);
  // All is checked before the memory is taken.
  for (int32_t i = 0; i < program.weight_count; ++i) {
    const gptc_weight_desc &weight = program.weights[i];
    gptc_status status =
        checkTensor(weight, find(tensors, count, weight.name), count);
    if (status != GPTC_OK)
      return status;
  }
  if (!allocate(model.host, program.weights_section_bytes, false,
                model.weights))
    return GPTC_NO_MEMORY;
  char *image = static_cast<char *>(model.weights.pointer);
  FloatMode mode;
  for (int32_t i = 0; i < program.weight_count; ++i) {
    const gptc_weight_desc &weight = program.weights[i];
    const gptc_tensor *tensor = find(tensors, count, weight.name);
    if (gptc_pack_weight(&weight, tensor->data, image + weight.offset))
      return fail(GPTC_INVALID_ARGUMENT,
                  "open: weight '%.200s' cannot be packed from %s", weight.name,
                  dtypeName(weight.source_dtype));
  }
  model.image = image;
  return GPTC_OK;
}

} // namespace gptc::core
