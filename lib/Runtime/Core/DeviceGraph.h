//===- DeviceGraph.h - A step as CUDA graphs ------------------------------===//
//
// A decoded token is some hundred short kernels; as a graph they are one call
// of the driver. There is a graph for each class of sizes whose launches
// differ, made when the session opens; its nodes are given new parameters when
// the sizes change, which between decoded tokens they do not.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_CORE_DEVICEGRAPH_H
#define GPTC_RUNTIME_CORE_DEVICEGRAPH_H

#include "Core.h"

namespace gptc::core {

/// Makes the graphs of the session's step entry. The frame's sizes are set by
/// this; the rest of it is what every step has.
gptc_status makeGraphs(Session &session, const Frame &frame, int64_t *dims);
/// Queues the graph for the frame's sizes.
void launchGraph(Session &session, const Frame &frame);
void dropGraphs(Session &session);

} // namespace gptc::core

#endif // GPTC_RUNTIME_CORE_DEVICEGRAPH_H
