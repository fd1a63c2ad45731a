//===- Run.cpp - Entries with named tensors -------------------------------===//
//
// Inputs and outputs are matched by name. Sizes of dynamic dimensions follow
// from the inputs. Memory of the session, for values between kernels and for
// copies (RunTensors.h), grows with the sizes; nothing else allocates.
//
// Refuses names, formats and shapes that do not fit, dimensions of 0, integers
// and dimensions outside the range that the entry declares, and outputs without
// room.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "RunTensors.h"
#include <string.h>

namespace gptc::core {

namespace {

/// A dynamic dimension that no input has given a size yet.
constexpr int64_t unbound = -1;

/// One call of run, and the sizes that its inputs give.
struct Run {
  const gptc_entry_desc &entry;
  int64_t dims[maxDims];

  gptc_status bindInput(const gptc_value_desc &desc, const gptc_tensor *tensor);
  gptc_status checkValues(const Queue &queue, const gptc_value_desc &desc,
                          const gptc_tensor &tensor) const;
  gptc_status checkDim(int32_t dim) const;
  gptc_status shapeOutput(const gptc_value_desc &desc, gptc_tensor &tensor);
};

/// A size or bound as gptc_value_desc writes it.
int64_t resolve(int64_t size, const int64_t *dims) {
  return size < 0 ? dims[-1 - size] : size;
}

int64_t sizeOf(const gptc_value_desc &desc, int32_t i, const int64_t *dims) {
  return resolve(desc.shape[i], dims);
}

/// Both formats of values have elements of four bytes.
uint64_t bytesOf(const gptc_value_desc &desc, const int64_t *dims) {
  uint64_t bytes = 4;
  for (int32_t i = 0; i < desc.rank; ++i)
    bytes = saturatingMul(bytes, sizeOf(desc, i, dims));
  return bytes;
}

gptc_tensor *find(gptc_tensor *tensors, size_t count, const char *name) {
  for (size_t i = 0; i < count; ++i)
    if (tensors[i].name && !strcmp(tensors[i].name, name))
      return &tensors[i];
  return nullptr;
}

gptc_status checkNames(const gptc_entry_desc &entry, const char *what,
                       const gptc_value_desc *known, int32_t knownCount,
                       const gptc_tensor *tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    bool found = false;
    for (int32_t k = 0; k < knownCount && tensors[i].name; ++k)
      found |= !strcmp(tensors[i].name, known[k].name);
    if (!found)
      return fail(GPTC_INVALID_ARGUMENT,
                  "run: entry '%.100s' has no %s '%.100s'; it has %d, the "
                  "first is '%.100s'",
                  entry.name, what, tensors[i].name ? tensors[i].name : "",
                  knownCount, knownCount ? known[0].name : "");
    for (size_t j = 0; j < i; ++j)
      if (!strcmp(tensors[i].name, tensors[j].name))
        return fail(GPTC_INVALID_ARGUMENT, "run: %s '%.200s' is given twice",
                    what, tensors[i].name);
  }
  return GPTC_OK;
}

gptc_status Run::bindInput(const gptc_value_desc &desc,
                           const gptc_tensor *tensor) {
  if (!tensor)
    return fail(GPTC_INVALID_ARGUMENT, "run: input '%.200s' is missing",
                desc.name);
  if (tensor->dtype != desc.dtype)
    return fail(GPTC_INVALID_ARGUMENT,
                "run: input '%.200s': expected %s, got %s", desc.name,
                dtypeName(desc.dtype), dtypeName(tensor->dtype));
  bool fits = tensor->rank == desc.rank;
  for (int32_t i = 0; fits && i < desc.rank; ++i) {
    int64_t got = tensor->shape[i];
    int64_t &want = desc.shape[i] < 0 ? dims[-1 - desc.shape[i]] : got;
    // A size that no tensor can have stays unbound: the message says "any".
    if (got <= 0)
      fits = false;
    else if (desc.shape[i] >= 0)
      fits = got == desc.shape[i];
    else if (want == unbound)
      want = got;
    else
      fits = got == want;
  }
  if (!fits) {
    int64_t expected[8];
    bool open = false;
    for (int32_t i = 0; i < desc.rank; ++i) {
      expected[i] = sizeOf(desc, i, dims);
      open |= expected[i] < 0;
    }
    char got[100], want[100];
    printShape(tensor->rank, tensor->shape, got, sizeof(got));
    printShape(desc.rank, expected, want, sizeof(want), /*anyBelow0=*/true);
    return fail(GPTC_INVALID_ARGUMENT,
                "run: input '%.200s': expected shape %s%s, got %s", desc.name,
                want, open ? " (any: a size of 1 or more)" : "", got);
  }
  if (!tensor->data)
    return fail(GPTC_INVALID_ARGUMENT, "run: input '%.200s': data is null",
                desc.name);
  uint64_t size = bytesOf(desc, dims);
  if (tensor->capacity_bytes && tensor->capacity_bytes < size)
    return fail(GPTC_INVALID_ARGUMENT,
                "run: input '%.200s': expected %llu bytes of data, got %llu",
                desc.name, static_cast<unsigned long long>(size),
                static_cast<unsigned long long>(tensor->capacity_bytes));
  return GPTC_OK;
}

/// Every dynamic dimension has its size by now.
gptc_status Run::checkValues(const Queue &queue, const gptc_value_desc &desc,
                             const gptc_tensor &tensor) const {
  if (desc.dtype != GPTC_I32 || desc.rank >= 8 || !desc.shape[7])
    return GPTC_OK;
  if (onDevice() && isOnDevice(queue, tensor.data))
    return fail(GPTC_INVALID_ARGUMENT,
                "run: input '%.200s': expected the host's memory, since its "
                "values are checked, got the GPU's",
                desc.name);
  const int64_t bound = resolve(desc.shape[7], dims);
  const char *data = static_cast<const char *>(tensor.data);
  for (uint64_t i = 0; i < bytesOf(desc, dims) / 4; ++i) {
    int32_t value;
    memcpy(&value, data + i * 4, 4);
    if (value < 0 || value >= bound)
      return fail(GPTC_OUT_OF_RANGE,
                  "run: input '%.200s': element %llu: expected 0 or more and "
                  "below %lld, got %d",
                  desc.name, static_cast<unsigned long long>(i),
                  static_cast<long long>(bound), value);
  }
  return GPTC_OK;
}

gptc_status Run::checkDim(int32_t dim) const {
  if (dims[dim] == unbound)
    return fail(GPTC_INVALID_ARGUMENT,
                "run: entry '%.200s': no input gives its dynamic dimension %d "
                "a size",
                entry.name, dim);
  if (!entry.dim_limits || !entry.dim_limits[dim] ||
      dims[dim] <= resolve(entry.dim_limits[dim], dims))
    return GPTC_OK;
  for (int32_t i = 0; i < entry.input_count; ++i)
    for (int32_t axis = 0; axis < entry.inputs[i].rank; ++axis)
      if (entry.inputs[i].shape[axis] == -1 - dim)
        return fail(
            GPTC_OUT_OF_RANGE,
            "run: input '%.200s': expected at most %lld in dimension "
            "%d, the rows that its positions index, got %lld",
            entry.inputs[i].name,
            static_cast<long long>(resolve(entry.dim_limits[dim], dims)), axis,
            static_cast<long long>(dims[dim]));
  return GPTC_OK;
}

gptc_status Run::shapeOutput(const gptc_value_desc &desc, gptc_tensor &tensor) {
  tensor.dtype = static_cast<gptc_dtype>(desc.dtype);
  tensor.rank = desc.rank;
  for (int32_t i = 0; i < desc.rank; ++i)
    tensor.shape[i] = sizeOf(desc, i, dims);
  uint64_t size = bytesOf(desc, dims);
  if (tensor.data && tensor.capacity_bytes < size)
    return fail(GPTC_INVALID_ARGUMENT,
                "run: output '%.200s': expected room for %llu bytes, got %llu",
                desc.name, static_cast<unsigned long long>(size),
                static_cast<unsigned long long>(tensor.capacity_bytes));
  return GPTC_OK;
}

gptc_status findEntry(const gptc_program &program, const char *name,
                      const gptc_entry_desc *&entry) {
  for (int32_t i = 0; i < program.entry_count; ++i) {
    if (strcmp(program.entries[i].name, name))
      continue;
    entry = &program.entries[i];
    if (entry->kind != GPTC_ENTRY_PLAIN)
      return fail(GPTC_INVALID_ARGUMENT,
                  "run: entry '%.200s' works on the session's sequences; call "
                  "step",
                  name);
    return GPTC_OK;
  }
  return fail(GPTC_INVALID_ARGUMENT,
              "run: package %.100s has no entry '%.100s'; it has %d, the first "
              "is '%.100s'",
              program.info->name, name, program.entry_count,
              program.entry_count ? program.entries[0].name : "");
}

} // namespace

/// Checks every tensor; sets run.dims and the shapes of outputs.
static gptc_status checkTensors(const Queue &queue, Run &run,
                                const gptc_tensor *inputs, size_t inputCount,
                                gptc_tensor *outputs, size_t outputCount) {
  const gptc_entry_desc &entry = run.entry;
  gptc_status status = checkNames(entry, "input", entry.inputs,
                                  entry.input_count, inputs, inputCount);
  if (status == GPTC_OK)
    status = checkNames(entry, "output", entry.outputs, entry.output_count,
                        outputs, outputCount);
  for (int32_t i = 0; i < entry.input_count && status == GPTC_OK; ++i)
    status =
        run.bindInput(entry.inputs[i], find(const_cast<gptc_tensor *>(inputs),
                                            inputCount, entry.inputs[i].name));
  for (int32_t d = 0; d < entry.dim_count && status == GPTC_OK; ++d)
    status = run.checkDim(d);
  for (int32_t i = 0; i < entry.input_count && status == GPTC_OK; ++i)
    status = run.checkValues(queue, entry.inputs[i],
                             *find(const_cast<gptc_tensor *>(inputs),
                                   inputCount, entry.inputs[i].name));
  for (int32_t i = 0; i < entry.output_count && status == GPTC_OK; ++i)
    if (gptc_tensor *out = find(outputs, outputCount, entry.outputs[i].name))
      status = run.shapeOutput(entry.outputs[i], *out);
  return status;
}

gptc_status runEntry(Session &session, const char *name,
                     const gptc_tensor *inputs, size_t inputCount,
                     gptc_tensor *outputs, size_t outputCount) {
  const gptc_entry_desc *found;
  gptc_status status = findEntry(programOf(*session.model), name, found);
  if (status != GPTC_OK)
    return status;
  const gptc_entry_desc &entry = *found;
  Run run = {entry, {}};
  for (int64_t &dim : run.dims)
    dim = unbound;
  OnDevice current(session.model->device);
  Queue &queue = session.queue;
  status = checkTensors(queue, run, inputs, inputCount, outputs, outputCount);
  if (status != GPTC_OK)
    return status;
  bool wanted = false;
  for (size_t i = 0; i < outputCount; ++i)
    wanted |= outputs[i].data != nullptr;
  if (!wanted)
    return GPTC_OK; // only the shapes were asked for

  const gptc_host &host = session.model->host;
  const uint64_t count = entry.input_count + entry.output_count;
  const uint64_t tableBytes = count * (sizeof(RunTensor) + sizeof(void *));
  if (session.pointers.bytes < padded(tableBytes)) {
    release(host, session.pointers);
    if (!allocate(host, tableBytes, false, session.pointers))
      return GPTC_NO_MEMORY;
  }
  auto *table = static_cast<RunTensor *>(session.pointers.pointer);
  RunTensors tensors = {table, reinterpret_cast<void **>(table + count),
                        entry.input_count, entry.output_count};
  for (int32_t i = 0; i < entry.input_count; ++i)
    table[i] = {static_cast<char *>(find(const_cast<gptc_tensor *>(inputs),
                                         inputCount, entry.inputs[i].name)
                                        ->data),
                bytesOf(entry.inputs[i], run.dims),
                entry.inputs[i].dtype != GPTC_F32};
  for (int32_t i = 0; i < entry.output_count; ++i) {
    gptc_tensor *out = find(outputs, outputCount, entry.outputs[i].name);
    table[entry.input_count + i] = {out ? static_cast<char *>(out->data)
                                        : nullptr,
                                    bytesOf(entry.outputs[i], run.dims), false};
  }
  if (!placeTensors(session, tensors) ||
      !placeBuffers(host, queue, entry, run.dims, session.runSpace) ||
      !growScratch(session, scratchAt(entry, run.dims)))
    return allocationFailed(queue);

  copyInputs(session, tensors);
  execute(session, {&entry, run.dims, tensors.places,
                    tensors.places + entry.input_count, &session.runSpace});
  copyOutputs(session, tensors);
  return onDevice() ? finish(queue, true) : GPTC_OK;
}

} // namespace gptc::core
