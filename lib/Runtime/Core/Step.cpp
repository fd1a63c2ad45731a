//===- Step.cpp - One step of a ragged batch ------------------------------===//
//
// All of a batch is checked before any state changes: after an error the cache
// and the lengths of the sequences are what they were.
//
// GPTC_ENTRY_STEP_SINGLE entries (-O0) see one sequence at a time; the batch is
// cut into its runs and the logits rows are put in their places.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "DeviceGraph.h"
#include <string.h>

namespace gptc::core {

namespace {

/// "token 3", where something is wrong, and what.
gptc_status wrongToken(gptc_status status, int64_t at, const char *what,
                       long long expected, long long got) {
  return fail(status,
              "step: token %lld of the batch: expected %s %lld, got %lld",
              static_cast<long long>(at), what, expected, got);
}

gptc_status checkCounts(const Session &session, const gptc_batch &batch,
                        const float *logits) {
  const struct {
    const char *name;
    int64_t count, limit;
  } counts[] = {{"tokens", batch.count, session.limits.tokens},
                {"rows", batch.row_count, session.limits.rows}};
  for (const auto &c : counts) {
    if (c.count < 0)
      return fail(GPTC_INVALID_ARGUMENT,
                  "step: expected 0 %s or more, got %lld", c.name,
                  static_cast<long long>(c.count));
    if (c.count > c.limit)
      return fail(GPTC_LIMIT,
                  "step: expected at most %lld %s, the session's limit, got "
                  "%lld; split the batch",
                  static_cast<long long>(c.limit), c.name,
                  static_cast<long long>(c.count));
  }
  if (batch.count && (!batch.tokens || !batch.positions))
    return fail(GPTC_INVALID_ARGUMENT, "step: batch->%s is null",
                batch.tokens ? "positions" : "tokens");
  if (batch.row_count && (!batch.rows || !logits))
    return fail(GPTC_INVALID_ARGUMENT, "step: %s is null",
                batch.rows ? "logits" : "batch->rows");
  return GPTC_OK;
}

/// Checks token i and where it may stand, given the run before it.
gptc_status checkToken(const Session &session, const gptc_batch &batch,
                       int64_t i) {
  const gptc_info &info = *programOf(*session.model).info;
  int32_t sequence = batch.sequences ? batch.sequences[i] : 0;
  if (batch.tokens[i] < 0 || batch.tokens[i] >= info.vocab)
    return wrongToken(GPTC_OUT_OF_RANGE, i, "an id from 0 to", info.vocab - 1,
                      batch.tokens[i]);
  if (sequence < 0 || sequence >= session.limits.sequences)
    return wrongToken(GPTC_OUT_OF_RANGE, i, "a sequence below",
                      session.limits.sequences, sequence);
  if (batch.positions[i] < 0 || batch.positions[i] >= info.context)
    return wrongToken(GPTC_OUT_OF_RANGE, i,
                      "a position below the context length", info.context,
                      batch.positions[i]);
  return GPTC_OK;
}

/// Fills session.runs from the batch.
gptc_status findRuns(Session &session, const gptc_batch &batch,
                     int64_t &runCount) {
  Cache &cache = session.cache;
  ++cache.batch;
  runCount = 0;
  for (int64_t i = 0; i < batch.count; ++i) {
    gptc_status status = checkToken(session, batch, i);
    if (status != GPTC_OK)
      return status;
    int32_t sequence = batch.sequences ? batch.sequences[i] : 0;
    int32_t position = batch.positions[i];
    if (runCount && session.runs[runCount - 1].sequence == sequence) {
      gptc_run_desc &run = session.runs[runCount - 1];
      if (position != run.position + run.count)
        return wrongToken(GPTC_INVALID_ARGUMENT, i, "the consecutive position",
                          static_cast<long long>(run.position) + run.count,
                          position);
      ++run.count;
      continue;
    }
    if (cache.stamps[sequence] == cache.batch)
      return fail(GPTC_INVALID_ARGUMENT,
                  "step: token %lld of the batch: expected the tokens of "
                  "sequence %d side by side, got others in between",
                  static_cast<long long>(i), sequence);
    if (position > cache.lengths[sequence])
      return fail(GPTC_OUT_OF_RANGE,
                  "step: token %lld of the batch: expected a position of at "
                  "most %lld, the length of sequence %d, got %d",
                  static_cast<long long>(i),
                  static_cast<long long>(cache.lengths[sequence]), sequence,
                  position);
    cache.stamps[sequence] = cache.batch;
    session.runs[runCount++] = {static_cast<int32_t>(i), 1, sequence, position};
  }
  for (int64_t i = 0; i < batch.row_count; ++i)
    if (batch.rows[i] < 0 || batch.rows[i] >= batch.count)
      return fail(GPTC_OUT_OF_RANGE,
                  "step: row %lld: expected an index below %lld, the tokens "
                  "of the batch, got %d",
                  static_cast<long long>(i),
                  static_cast<long long>(batch.count), batch.rows[i]);
  return GPTC_OK;
}

void setRuns(Session &session, const gptc_run_desc *runs, int64_t count) {
  for (int64_t l = 0; l < programOf(*session.model).kv.layers; ++l) {
    session.views[l].runs = forKernels(session, runs);
    session.views[l].run_count = count;
  }
}

/// Where kernels find the inputs of a step that starts at token `first`.
void placeInputs(const Session &session, int64_t first, int32_t *rows,
                 void **inputs) {
  for (int32_t i = 0; i < session.step->input_count; ++i)
    inputs[i] = forKernels(session, session.stepInputs[i] == &session.rows
                                        ? rows
                                        : *session.stepInputs[i] + first);
}

/// Runs the step entry over `count` tokens.
void runStep(Session &session, int64_t first, int64_t count, int32_t *rows,
             int64_t rowCount, int64_t keys, float *logits) {
  const gptc_entry_desc &entry = *session.step;
  int64_t dims[maxDims] = {};
  if (entry.dim_tokens >= 0)
    dims[entry.dim_tokens] = count;
  if (entry.dim_rows >= 0)
    dims[entry.dim_rows] = rowCount;
  if (entry.dim_keys >= 0)
    dims[entry.dim_keys] = keys;
  void *inputs[maxStepInputs];
  placeInputs(session, first, rows, inputs);
  if (onDevice())
    copyTables(session);
  void *outputs[] = {logits};
  Frame frame = {&entry, dims, inputs, outputs, &session.stepSpace};
  if (onDevice() && session.graphs && !session.observer)
    launchGraph(session, frame);
  else
    execute(session, frame);
}

/// One run of the batch, rows and logits by themselves.
void runSingle(Session &session, const gptc_batch &batch, gptc_run_desc run,
               float *logits) {
  if (onDevice())
    awaitTables(session); // of the run before
  const int64_t vocab = programOf(*session.model).info->vocab;
  int64_t rowCount = 0;
  for (int64_t i = 0; i < batch.row_count; ++i)
    if (batch.rows[i] >= run.first && batch.rows[i] < run.first + run.count) {
      session.runRows[rowCount] = batch.rows[i] - run.first;
      session.rowPlaces[rowCount++] = static_cast<int32_t>(i);
    }
  bool together = !onDevice();
  for (int64_t i = 1; i < rowCount; ++i)
    together &= session.rowPlaces[i] == session.rowPlaces[0] + i;
  float *out = session.logits;
  if (together && rowCount)
    out = logits + session.rowPlaces[0] * vocab;

  int64_t first = run.first;
  run.first = 0;
  *session.single = run;
  setRuns(session, session.single, 1);
  runStep(session, first, run.count, session.runRows, rowCount,
          int64_t(run.position) + run.count, out);
  for (int64_t i = 0; i < rowCount && !together; ++i) {
    float *to = logits + session.rowPlaces[i] * vocab;
    if (onDevice())
      copyOut(session.queue, to, out + i * vocab, vocab * sizeof(float));
    else
      memcpy(to, out + i * vocab, vocab * sizeof(float));
  }
}

/// Whether kernels may write logits where the host wants them: in the GPU's
/// memory, and where an f32 may lie.
bool isForKernels(const Session &session, const float *logits) {
  return isOnDevice(session.queue, logits) &&
         reinterpret_cast<uintptr_t>(logits) % sizeof(float) == 0;
}

/// The batch as one, its logits in the session's memory first unless kernels
/// may write the host's.
void runRagged(Session &session, const gptc_batch &batch, int64_t runCount,
               float *logits) {
  if (batch.row_count)
    memcpy(session.rows, batch.rows, batch.row_count * sizeof(int32_t));
  setRuns(session, session.runs, runCount);
  float *out = logits;
  if (onDevice() && !isForKernels(session, logits))
    out = session.logits;
  runStep(session, 0, batch.count, session.rows, batch.row_count, 0, out);
  if (out != logits)
    copyOut(session.queue, logits, out,
            batch.row_count * programOf(*session.model).info->vocab *
                sizeof(float));
}

} // namespace

gptc_status prepareGraphs(Session &session) {
  if (!session.step || session.step->kind != GPTC_ENTRY_STEP)
    return GPTC_OK;
  int64_t dims[maxDims] = {};
  void *inputs[maxStepInputs];
  placeInputs(session, 0, session.rows, inputs);
  void *outputs[] = {session.logits};
  return makeGraphs(
      session, {session.step, dims, inputs, outputs, &session.stepSpace}, dims);
}

gptc_status step(Session &session, const gptc_batch &batch, float *logits) {
  if (!session.step)
    return fail(GPTC_INVALID_ARGUMENT,
                "step: package %.200s has no stepping entry; use run",
                programOf(*session.model).info->name);
  gptc_status status = checkCounts(session, batch, logits);
  if (status != GPTC_OK)
    return status;
  OnDevice current(session.model->device);
  if (onDevice())
    awaitTables(session);
  int64_t runCount;
  status = findRuns(session, batch, runCount);
  if (status == GPTC_OK)
    status = prepareRuns(session.cache, session.runs, runCount);
  if (status != GPTC_OK || !batch.count)
    return status;

  uint64_t bytes = batch.count * sizeof(int32_t);
  memcpy(session.tokens, batch.tokens, bytes);
  memcpy(session.positions, batch.positions, bytes);
  if (batch.sequences)
    memcpy(session.sequences, batch.sequences, bytes);
  else
    memset(session.sequences, 0, bytes);

  if (session.step->kind == GPTC_ENTRY_STEP_SINGLE)
    for (int64_t r = 0; r < runCount; ++r)
      runSingle(session, batch, session.runs[r], logits);
  else
    runRagged(session, batch, runCount, logits);
  return onDevice() ? finish(session.queue, !isOnDevice(session.queue, logits))
                    : GPTC_OK;
}

} // namespace gptc::core
