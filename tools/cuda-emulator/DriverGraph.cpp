// Driver calls: graphs. Nodes run in an order that the seed chooses among
// those that the dependencies allow, so that a missing one shows.
#include "Driver.h"

#include <algorithm>
#include <random>

using namespace emu;

namespace emu {

struct Node {
  enum Kind { Kernel, Copy, Fill, Empty } kind = Empty;
  std::vector<size_t> after;
  LaunchArguments kernel;
  uint64_t to = 0, from = 0, value = 0;
  bool toDevice = true, fromDevice = true;
  unsigned elementSize = 1;
  size_t size = 0;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<char>> handles; // of nodes
  size_t find(void *handle) const {
    for (size_t i = 0; i < handles.size(); ++i)
      if (handles[i].get() == handle)
        return i;
    return ~size_t(0);
  }
};

struct GraphExec {
  std::vector<Node> nodes;
  std::vector<void *> handles;
};

struct Graphs {
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
};

static Graphs &graphsOf(State &s) {
  if (!s.graphs)
    s.graphs = std::make_shared<Graphs>();
  return *static_cast<Graphs *>(s.graphs.get());
}

namespace {
struct KernelParams { // CUDA_KERNEL_NODE_PARAMS; its newer form only adds
  void *function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, dynamicShared;
  void **params, **extra;
};
struct MemsetParams { // CUDA_MEMSET_NODE_PARAMS
  uint64_t to;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct Copy3d { // CUDA_MEMCPY3D
  struct Side {
    size_t x, y, z, lod;
    unsigned type; // 1 host, 2 device, 4 unified
    void *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
  } from, to;
  size_t width, height, depth;
};
} // namespace

static Result gatherNode(LaunchArguments &arguments, const KernelParams &from) {
  return gather(arguments, from.function, {from.gridX, from.gridY, from.gridZ},
                {from.blockX, from.blockY, from.blockZ}, from.dynamicShared,
                from.params, from.extra);
}

static Result addNode(State &s, void **handle, void *graph,
                      void *const *dependencies, size_t count, Node node) {
  Graph *to = graphsOf(s).graphs.find(graph);
  if (!handle || !to || (count && !dependencies))
    return InvalidValue;
  for (size_t i = 0; i < count; ++i) {
    size_t at = to->find(dependencies[i]);
    if (at == ~size_t(0))
      return InvalidValue;
    node.after.push_back(at);
  }
  to->nodes.push_back(std::move(node));
  to->handles.push_back(std::make_unique<char>());
  *handle = to->handles.back().get();
  return Success;
}

} // namespace emu

EMU_API cuGraphCreate(void **graph, unsigned flags) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!graph || flags)
      return InvalidValue;
    *graph = graphsOf(s).graphs.add(std::make_unique<Graph>());
    return Success;
  });
}
EMU_API cuGraphDestroy(void *graph) {
  return driverCall(Needs::Context, [&](State &s) {
    return graphsOf(s).graphs.remove(graph) ? Success : InvalidValue;
  });
}

EMU_API cuGraphAddKernelNode_v2(void **node, void *graph, void *const *after,
                                size_t count, const KernelParams *params) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!params)
      return InvalidValue;
    Node made;
    made.kind = Node::Kernel;
    Result result = gatherNode(made.kernel, *params);
    if (result != Success)
      return result;
    return addNode(s, node, graph, after, count, std::move(made));
  });
}
EMU_API cuGraphAddKernelNode(void **node, void *graph, void *const *after,
                             size_t count, const KernelParams *params) {
  return cuGraphAddKernelNode_v2(node, graph, after, count, params);
}

EMU_API cuGraphAddEmptyNode(void **node, void *graph, void *const *after,
                            size_t count) {
  return driverCall(Needs::Context, [&](State &s) {
    return addNode(s, node, graph, after, count, Node());
  });
}

EMU_API cuGraphAddMemcpyNode(void **node, void *graph, void *const *after,
                             size_t count, const Copy3d *params, void *) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!params)
      return InvalidValue;
    // One row only.
    const Copy3d &p = *params;
    if (p.height > 1 || p.depth > 1 || p.from.y || p.from.z || p.to.y || p.to.z)
      return NotSupported;
    Node made;
    made.kind = Node::Copy;
    made.size = p.width;
    auto side = [](const Copy3d::Side &from, uint64_t &at, bool &onDevice) {
      onDevice = from.type != 1;
      at = (onDevice ? from.device : reinterpret_cast<uint64_t>(from.host)) +
           from.x;
      if (from.type == 4)
        onDevice = at >= deviceBase;
    };
    side(p.from, made.from, made.fromDevice);
    side(p.to, made.to, made.toDevice);
    return addNode(s, node, graph, after, count, std::move(made));
  });
}

EMU_API cuGraphAddMemsetNode(void **node, void *graph, void *const *after,
                             size_t count, const MemsetParams *params, void *) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!params || (params->elementSize != 1 && params->elementSize != 2 &&
                    params->elementSize != 4))
      return InvalidValue;
    if (params->height > 1)
      return NotSupported;
    Node made;
    made.kind = Node::Fill;
    made.to = params->to;
    made.value = params->value;
    made.elementSize = params->elementSize;
    made.size = params->width;
    return addNode(s, node, graph, after, count, std::move(made));
  });
}

EMU_API cuGraphAddDependencies_v2(void *graph, void *const *from,
                                  void *const *to, const void *, size_t count) {
  return driverCall(Needs::Context, [&](State &s) {
    Graph *in = graphsOf(s).graphs.find(graph);
    if (!in || (count && (!from || !to)))
      return InvalidValue;
    for (size_t i = 0; i < count; ++i) {
      size_t first = in->find(from[i]), second = in->find(to[i]);
      if (first == ~size_t(0) || second == ~size_t(0) || first == second)
        return InvalidValue;
      in->nodes[second].after.push_back(first);
    }
    return Success;
  });
}

EMU_API cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  return driverCall(Needs::Context, [&](State &s) {
    Graph *in = graphsOf(s).graphs.find(graph);
    if (!in || !count)
      return InvalidValue;
    size_t all = in->handles.size();
    if (nodes)
      for (size_t i = 0; i < *count; ++i)
        nodes[i] = i < all ? in->handles[i].get() : nullptr;
    *count = all;
    return Success;
  });
}

EMU_API cuGraphInstantiateWithFlags(void **exec, void *graph,
                                    unsigned long long) {
  return driverCall(Needs::Context, [&](State &s) {
    Graph *from = graphsOf(s).graphs.find(graph);
    if (!exec || !from)
      return InvalidValue;
    // No cycles: nodes can be taken one after the other.
    std::vector<bool> done(from->nodes.size());
    for (size_t left = done.size(); left;) {
      size_t before = left;
      for (size_t i = 0; i < done.size(); ++i) {
        const auto &after = from->nodes[i].after;
        if (!done[i] && std::all_of(after.begin(), after.end(),
                                    [&](size_t j) { return done[j]; })) {
          done[i] = true;
          --left;
        }
      }
      if (left == before)
        return InvalidValue;
    }
    auto made = std::make_unique<GraphExec>();
    made->nodes = from->nodes;
    for (auto &handle : from->handles)
      made->handles.push_back(handle.get());
    *exec = graphsOf(s).execs.add(std::move(made));
    return Success;
  });
}

EMU_API cuGraphExecKernelNodeSetParams_v2(void *exec, void *node,
                                          const KernelParams *params) {
  return driverCall(Needs::Context, [&](State &s) {
    GraphExec *in = graphsOf(s).execs.find(exec);
    if (!in || !params)
      return InvalidValue;
    for (size_t i = 0; i < in->handles.size(); ++i)
      if (in->handles[i] == node && in->nodes[i].kind == Node::Kernel) {
        LaunchArguments made;
        Result result = gatherNode(made, *params);
        if (result == Success)
          in->nodes[i].kernel = std::move(made);
        return result;
      }
    return InvalidValue;
  });
}
EMU_API cuGraphExecKernelNodeSetParams(void *exec, void *node,
                                       const KernelParams *params) {
  return cuGraphExecKernelNodeSetParams_v2(exec, node, params);
}

EMU_API cuGraphUpload(void *exec, void *stream) {
  return driverCall(Needs::Context, [&](State &s) {
    return graphsOf(s).execs.find(exec) && isStream(stream) ? Success
                                                            : InvalidValue;
  });
}

EMU_API cuGraphLaunch(void *exec, void *stream) {
  return driverCall(Needs::Context, [&](State &s) {
    GraphExec *from = graphsOf(s).execs.find(exec);
    if (!from || !isStream(stream))
      return InvalidValue;
    std::mt19937 random(setting("GPTC_EMULATOR_SEED", 1));
    const std::vector<Node> &nodes = from->nodes;
    std::vector<size_t> missing(nodes.size()), ready;
    std::vector<std::vector<size_t>> next(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      missing[i] = nodes[i].after.size();
      for (size_t before : nodes[i].after)
        next[before].push_back(i);
      if (!missing[i])
        ready.push_back(i);
    }
    while (!ready.empty() && s.sticky == Success) {
      std::swap(ready[random() % ready.size()], ready.back());
      size_t at = ready.back();
      ready.pop_back();
      const Node &node = nodes[at];
      Result result = Success;
      if (node.kind == Node::Kernel) {
        if (!s.kernels.count(node.kernel.kernel))
          return InvalidHandle; // its module was unloaded
        s.run(node.kernel);
      } else if (node.kind == Node::Copy) {
        result = copyBytes(node.to, node.toDevice, node.from, node.fromDevice,
                           node.size);
      } else if (node.kind == Node::Fill) {
        result = fillBytes(node.to, node.value, node.elementSize, node.size);
      }
      if (result != Success)
        return result;
      for (size_t after : next[at])
        if (--missing[after] == 0)
          ready.push_back(after);
    }
    return Success;
  });
}

EMU_API cuGraphExecDestroy(void *exec) {
  return driverCall(Needs::Context, [&](State &s) {
    return graphsOf(s).execs.remove(exec) ? Success : InvalidValue;
  });
}
