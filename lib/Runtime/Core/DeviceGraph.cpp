//===- DeviceGraph.cpp - A step as CUDA graphs ----------------------------===//
//
// T tokens, R logits rows: the dynamic sizes of a step.
//
//===----------------------------------------------------------------------===//

#include "DeviceGraph.h"
#include "DeviceDriver.h"
#include <string.h>

namespace gptc::core {

/// The steps of T in (the smaller graph's, tokens] and R likewise, or R = 0.
struct StepGraph {
  int64_t tokens, rows;
  void *graph, *exec;
  void **nodes; ///< [nodeCount]
  int32_t nodeCount;
  /// What the nodes' parameters were made of.
  int64_t currentTokens, currentRows;
  const void *logits, *scratch;
};

namespace {

/// Sizes at which a call's launches change, in ascending order; the last one is
/// the session's limit.
struct Sizes {
  static constexpr int32_t most = 8;
  int64_t values[most];
  int32_t count = 0;

  void insert(int64_t value) {
    int32_t at = 0;
    while (at < count && values[at] < value)
      ++at;
    if ((at < count && values[at] == value) || count == most)
      return;
    memmove(values + at + 1, values + at, (count - at) * sizeof(*values));
    values[at] = value;
    ++count;
  }
};

/// Calls f(call, launch, dims) for every launch of a step.
template <typename F>
void forEachLaunch(Session &session, const Frame &frame, F f) {
  for (int32_t i = 0; i < frame.entry->call_count; ++i) {
    const gptc_call_desc &call = frame.entry->calls[i];
    int64_t dims[maxCallDims];
    if (!bindCall(session, frame, call, dims))
      continue;
    const gptc_variant &variant = variantOf(call, dims);
    for (int64_t l = 0; l < variant.launch_count; ++l)
      f(call, variant.launches[l], dims);
  }
}

int32_t countLaunches(Session &session, const Frame &frame) {
  int32_t count = 0;
  forEachLaunch(
      session, frame,
      [&](const gptc_call_desc &, const gptc_launch &, int64_t *) { ++count; });
  return count;
}

/// A chain: each kernel reads what the one before it wrote.
Result build(Session &session, const Frame &frame, StepGraph &step) {
  const Driver &driver = session.queue.device->driver;
  Result error = driver.GraphCreate(&step.graph, 0);
  int32_t count = 0;
  forEachLaunch(session, frame,
                [&](const gptc_call_desc &call, const gptc_launch &launch,
                    int64_t *dims) {
                  KernelNode node = nodeOf(session, call, launch, dims);
                  if (!error)
                    error = driver.GraphAddKernelNode(
                        &step.nodes[count], step.graph,
                        count ? &step.nodes[count - 1] : nullptr, count != 0,
                        &node);
                  count += !error;
                });
  return error ? error : driver.GraphInstantiate(&step.exec, step.graph, 0);
}

/// Gives the nodes the parameters of this frame.
void update(Session &session, const Frame &frame, StepGraph &step) {
  Queue &queue = session.queue;
  int32_t count = 0;
  forEachLaunch(session, frame,
                [&](const gptc_call_desc &call, const gptc_launch &launch,
                    int64_t *dims) {
                  KernelNode node = nodeOf(session, call, launch, dims);
                  if (!queue.error)
                    note(queue, call.name,
                         queue.device->driver.GraphExecKernelNodeSetParams(
                             step.exec, step.nodes[count++], &node));
                });
}

int64_t sizeOf(const Frame &frame, int32_t dim) {
  return dim < 0 ? 0 : frame.dims[dim];
}

void setCurrent(const Session &session, const Frame &frame, StepGraph &step) {
  step.currentTokens = sizeOf(frame, frame.entry->dim_tokens);
  step.currentRows = sizeOf(frame, frame.entry->dim_rows);
  step.logits = frame.outputs[0];
  step.scratch = session.scratch.pointer;
}

bool isCurrent(const Session &session, const Frame &frame,
               const StepGraph &step) {
  return step.currentTokens == sizeOf(frame, frame.entry->dim_tokens) &&
         step.currentRows == sizeOf(frame, frame.entry->dim_rows) &&
         step.logits == frame.outputs[0] &&
         step.scratch == session.scratch.pointer;
}

} // namespace

gptc_status makeGraphs(Session &session, const Frame &frame, int64_t *dims) {
  const gptc_entry_desc &entry = *frame.entry;
  Sizes tokens, rows;
  for (int32_t i = 0; i < entry.call_count; ++i) {
    const gptc_call_desc &call = entry.calls[i];
    bool ofRows = call.dim_count && call.dims[0] == entry.dim_rows;
    int64_t limit = ofRows ? session.limits.rows : session.limits.tokens;
    for (int32_t v = 0; v < call.variant_count; ++v)
      if (call.variants[v].most_rows < limit)
        (ofRows ? rows : tokens).insert(call.variants[v].most_rows);
  }
  tokens.insert(session.limits.tokens);
  rows.insert(0);
  rows.insert(session.limits.rows);

  // The graphs, then their nodes, at most those of a step with all rows each.
  const int32_t count = tokens.count * rows.count;
  int64_t nodes = 0;
  auto forEachClass = [&](auto f) {
    for (int32_t t = 0; t < tokens.count; ++t)
      for (int32_t r = 0; r < rows.count; ++r) {
        if (entry.dim_tokens >= 0)
          dims[entry.dim_tokens] = tokens.values[t];
        if (entry.dim_rows >= 0)
          dims[entry.dim_rows] = rows.values[r];
        f(tokens.values[t], rows.values[r]);
      }
  };
  forEachClass(
      [&](int64_t, int64_t) { nodes += countLaunches(session, frame); });
  if (!allocate(session.model->host,
                count * sizeof(StepGraph) + nodes * sizeof(void *), true,
                session.graphMemory))
    return GPTC_NO_MEMORY;
  session.graphs = static_cast<StepGraph *>(session.graphMemory.pointer);
  session.graphCount = count;
  void **node = reinterpret_cast<void **>(session.graphs + count);
  Result error = 0;
  StepGraph *step = session.graphs;
  forEachClass([&](int64_t t, int64_t r) {
    step->tokens = t;
    step->rows = r;
    step->nodes = node;
    step->nodeCount = countLaunches(session, frame);
    node += step->nodeCount;
    if (!error)
      error = build(session, frame, *step);
    setCurrent(session, frame, *step++);
  });
  return error ? session.queue.device->failed("session: the step as a graph",
                                              error)
               : GPTC_OK;
}

void launchGraph(Session &session, const Frame &frame) {
  const int64_t tokens = sizeOf(frame, frame.entry->dim_tokens),
                rows = sizeOf(frame, frame.entry->dim_rows);
  StepGraph *step = session.graphs;
  while (tokens > step->tokens || rows > step->rows)
    ++step;
  if (!isCurrent(session, frame, *step)) {
    update(session, frame, *step);
    setCurrent(session, frame, *step);
  }
  Queue &queue = session.queue;
  if (!queue.error)
    note(queue, "the step",
         queue.device->driver.GraphLaunch(step->exec, queue.stream));
}

void dropGraphs(Session &session) {
  for (int32_t i = 0; i < session.graphCount; ++i) {
    const Driver &driver = session.queue.device->driver;
    if (session.graphs[i].exec)
      driver.GraphExecDestroy(session.graphs[i].exec);
    if (session.graphs[i].graph)
      driver.GraphDestroy(session.graphs[i].graph);
  }
  session.graphCount = 0;
  release(session.model->host, session.graphMemory);
}

} // namespace gptc::core
