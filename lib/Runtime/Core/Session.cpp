//===- Session.cpp - Limits, and all the memory that they need ------------===//
//
// Everything that a step touches is allocated here. Entries with named tensors
// have no limits to plan with; their memory grows in run.
//
// Refuses limits that are negative or need more memory than there is.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "DeviceGraph.h"
#include <string.h>

namespace gptc::core {

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static gptc_status checkLimit(const char *name, int64_t value, int64_t most) {
  if (value < 0)
    return fail(GPTC_INVALID_ARGUMENT,
                "session: expected %s of 0 (default) or more, got %lld", name,
                static_cast<long long>(value));
  if (value > most)
    return fail(GPTC_LIMIT, "session: expected at most %lld %s, got %lld",
                static_cast<long long>(most), name,
                static_cast<long long>(value));
  return GPTC_OK;
}

static gptc_status resolveLimits(const gptc_program &program,
                                 const gptc_limits *given,
                                 gptc_limits &limits) {
  limits = {};
  if (given)
    memcpy(&limits, given,
           given->size < sizeof(limits) ? given->size : sizeof(limits));
  // Batch indices and page numbers are 32 bits wide.
  const int64_t most = INT32_MAX / 2, mostThreads = 1024;
  const struct {
    const char *name;
    int64_t value, most;
  } checks[] = {{"tokens", limits.tokens, most},
                {"sequences", limits.sequences, most},
                {"pages", limits.pages, most},
                {"rows", limits.rows, most},
                {"threads", limits.threads, mostThreads}};
  for (const auto &check : checks) {
    gptc_status status = checkLimit(check.name, check.value, check.most);
    if (status != GPTC_OK)
      return status;
  }
  int64_t context = program.info->context;
  if (!limits.tokens)
    limits.tokens = smaller(context, 512);
  if (!limits.sequences)
    limits.sequences = 1;
  if (!limits.rows)
    limits.rows = limits.tokens;
  if (!limits.threads)
    limits.threads = cpuCount();
  if (program.kv.page > 0 && !limits.pages) {
    int64_t each = (context + program.kv.page - 1) / program.kv.page;
    uint64_t pages = saturatingMul(each, limits.sequences);
    if (pages > static_cast<uint64_t>(most))
      return fail(GPTC_LIMIT,
                  "session: %lld sequences of %lld pages are more than %lld "
                  "pages; give a limit on pages",
                  static_cast<long long>(limits.sequences),
                  static_cast<long long>(each), static_cast<long long>(most));
    limits.pages = static_cast<int64_t>(pages);
  }
  return GPTC_OK;
}

namespace {
/// Cuts one block into arrays: the first pass measures, the second assigns.
struct Carver {
  char *base = nullptr;
  uint64_t bytes = 0;

  template <typename T> void array(T *&out, int64_t count) {
    if (base)
      out = reinterpret_cast<T *>(base + bytes);
    bytes = saturatingAdd(bytes, padded(saturatingMul(count, sizeof(T))));
  }
};
} // namespace

/// Of gptc_kv_view::partials: only threads of the CPU have parts to put together.
static int64_t partialBytes(const Session &session) {
  const gptc_kv_desc &kv = programOf(*session.model).kv;
  if (!session.step || onDevice() || session.limits.threads < 2 ||
      !kv.partial_bytes)
    return 0;
  return saturatingAdd(GPTC_KV_COUNTERS * sizeof(int32_t),
                       saturatingMul(session.limits.pages, kv.partial_bytes));
}

static void carve(Session &session, Carver &carver) {
  const gptc_program &program = programOf(*session.model);
  const gptc_limits &limits = session.limits;
  int64_t args = 0;
  for (int32_t e = 0; e < program.entry_count; ++e)
    for (int32_t c = 0; c < program.entries[e].call_count; ++c)
      if (program.entries[e].calls[c].arg_count > args)
        args = program.entries[e].calls[c].arg_count;
  Cache &cache = session.cache;
  if (session.step) {
    // What kernels read comes first.
    carver.array(session.tokens, limits.tokens);
    carver.array(session.positions, limits.tokens);
    carver.array(session.sequences, limits.tokens);
    carver.array(session.rows, limits.rows);
    carver.array(session.runs, smaller(limits.tokens, limits.sequences));
    if (session.step->kind == GPTC_ENTRY_STEP_SINGLE) {
      carver.array(session.single, 1);
      carver.array(session.runRows, limits.rows);
    }
    carver.array(session.views, program.kv.layers);
    carver.array(cache.table, saturatingMul(cache.sequences, cache.maxPages));
  }
  session.mirroredBytes = carver.bytes;
  carver.array(session.partials, partialBytes(session));
  carver.array(session.args, args);
  // Beside the arguments a launch takes scratch memory and dimensions.
  carver.array(session.params, args + 1 + maxCallDims);
  if (!session.step)
    return;
  if (session.step->kind == GPTC_ENTRY_STEP_SINGLE)
    carver.array(session.rowPlaces, limits.rows);
  carver.array(cache.owners, cache.pages);
  carver.array(cache.free, cache.pages);
  carver.array(cache.lengths, cache.sequences);
  carver.array(cache.stamps, cache.sequences);
  carver.array(cache.copies, cache.sequences);
}

/// The tables, the KV pool and the workspace of the step entry.
static bool allocateStep(Session &session) {
  const gptc_program &program = programOf(*session.model);
  const gptc_host &host = session.model->host;
  const gptc_limits &limits = session.limits;
  Cache &cache = session.cache;
  cache.page = program.kv.page > 0 ? program.kv.page : 1;
  cache.pages = limits.pages;
  cache.sequences = limits.sequences;
  cache.maxPages = (program.info->context + cache.page - 1) / cache.page;
  cache.pageBytes =
      program.kv.layers * program.kv.heads * program.kv.block_bytes;

  Carver measure;
  carve(session, measure);
  if (!allocate(host, measure.bytes, true, session.tables))
    return false;
  Carver assign{static_cast<char *>(session.tables.pointer), 0};
  carve(session, assign);
  if (!session.step)
    return true;
  if (onDevice() && !allocateOnDevice(session.queue, session.mirroredBytes,
                                      false, session.mirror))
    return false;

  if (!allocateForKernels(host, session.queue,
                          saturatingMul(cache.pageBytes, cache.pages), true,
                          session.cachePool))
    return false;
  cache.pool = static_cast<char *>(session.cachePool.pointer);
  cache.queue = &session.queue;
  resetCache(cache);
  for (int64_t l = 0; l < program.kv.layers; ++l)
    session.views[l] = {cache.pool +
                            l * program.kv.heads * program.kv.block_bytes,
                        forKernels(session, cache.table), cache.maxPages,
                        forKernels(session, session.runs),
                        0,
                        session.partials,
                        partialBytes(session)};

  const gptc_entry_desc &step = *session.step;
  bool single = step.kind == GPTC_ENTRY_STEP_SINGLE;
  int64_t dims[maxDims];
  for (int64_t &dim : dims)
    dim = 1;
  if (step.dim_tokens >= 0)
    dims[step.dim_tokens] =
        single ? smaller(limits.tokens, program.info->context) : limits.tokens;
  if (step.dim_rows >= 0)
    dims[step.dim_rows] = limits.rows;
  // No sequence is longer than the context, nor than all pages.
  if (step.dim_keys >= 0)
    dims[step.dim_keys] =
        smaller(program.info->context, cache.pages * cache.page);
  if (single || onDevice()) {
    uint64_t row = saturatingMul(program.info->vocab, sizeof(float));
    if (!allocateForKernels(host, session.queue,
                            saturatingMul(limits.rows, row), false,
                            session.logitsMemory))
      return false;
    session.logits = static_cast<float *>(session.logitsMemory.pointer);
  }
  return placeBuffers(host, session.queue, step, dims, session.stepSpace) &&
         growScratch(session, scratchAt(step, dims));
}

/// The inputs of the step entry by their names.
static gptc_status bindStepInputs(Session &session) {
  const gptc_entry_desc &step = *session.step;
  const struct {
    const char *name;
    int32_t **values;
  } known[maxStepInputs] = {{"tokens", &session.tokens},
                            {"positions", &session.positions},
                            {"sequences", &session.sequences},
                            {"rows", &session.rows}};
  for (int32_t i = 0; i < step.input_count; ++i) {
    for (const auto &candidate : known)
      if (i < maxStepInputs && !strcmp(step.inputs[i].name, candidate.name))
        session.stepInputs[i] = candidate.values;
    if (i >= maxStepInputs || !session.stepInputs[i])
      return fail(GPTC_INVALID_ARGUMENT,
                  "session: entry '%.100s' has input '%.100s', expected "
                  "tokens, positions, sequences or rows",
                  step.name, step.inputs[i].name);
  }
  return GPTC_OK;
}

gptc_status openSession(Model *model, const gptc_limits *given,
                        Session **session) {
  gptc_limits limits;
  const gptc_program &program = programOf(*model);
  gptc_status status = resolveLimits(program, given, limits);
  if (status != GPTC_OK)
    return status;
  for (int32_t i = 0; i < program.entry_count; ++i)
    if (program.entries[i].dim_count > maxDims)
      return fail(GPTC_INVALID_ARGUMENT,
                  "session: entry '%.200s' has %d dynamic dimensions, expected "
                  "at most %d",
                  program.entries[i].name, program.entries[i].dim_count,
                  maxDims);

  Block memory;
  if (!allocate(model->host, sizeof(Session), true, memory))
    return GPTC_NO_MEMORY;
  Session *opened = static_cast<Session *>(memory.pointer);
  opened->kind = Kind::Session;
  opened->self = memory;
  opened->model = model;
  opened->limits = limits;
  __atomic_add_fetch(&model->references, 1, __ATOMIC_RELAXED);
  for (int32_t i = 0; i < program.entry_count && !opened->step; ++i)
    if (program.entries[i].kind != GPTC_ENTRY_PLAIN)
      opened->step = &program.entries[i];

  OnDevice current(model->device);
  if (opened->step)
    status = bindStepInputs(*opened);
  if (status == GPTC_OK && onDevice())
    status = openQueue(*model, opened->queue);
  if (status != GPTC_OK) {
    dropSession(opened);
    return status;
  }
  bool good = true;
  if (limits.threads > 1 && !model->host.parallel && !onDevice()) {
    opened->pool = openPool(model->host, limits.threads);
    good = opened->pool != nullptr;
    if (good)
      opened->limits.threads = poolThreads(opened->pool);
  }
  if (!good || !allocateStep(*opened)) {
    status = allocationFailed(opened->queue);
    dropSession(opened);
    return status;
  }
  if (onDevice()) {
    status = prepareGraphs(*opened);
    if (status == GPTC_OK)
      status = finish(opened->queue, true);
    if (status != GPTC_OK) {
      dropSession(opened);
      return status;
    }
  }
  *session = opened;
  return GPTC_OK;
}

void dropSession(Session *session) {
  Model *model = session->model;
  closePool(model->host, session->pool);
  Block *const kernels[] = {&session->stepSpace.memory,
                            &session->runSpace.memory,
                            &session->scratch,
                            &session->mirror,
                            &session->cachePool,
                            &session->logitsMemory,
                            &session->values};
  {
    OnDevice current(model->device);
    if (onDevice()) {
      synchronize(session->queue);
      dropGraphs(*session);
    }
    for (Block *block : kernels)
      releaseForKernels(model->host, session->queue, *block);
    if (onDevice())
      closeQueue(session->queue);
  }
  Block *const blocks[] = {&session->stepSpace.slotMemory,
                           &session->runSpace.slotMemory, &session->tables,
                           &session->pointers};
  for (Block *block : blocks)
    release(model->host, *block);
  Block memory = session->self;
  release(model->host, memory);
  dropModel(model);
}

} // namespace gptc::core
