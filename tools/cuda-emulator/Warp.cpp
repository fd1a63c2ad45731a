// How a warp runs: the loop over ops, and lanes that go different ways. The
// group of lanes that is deepest in calls and then lowest in the code runs
// first, so that lanes meet again wherever their ways do.
#include "Machine.h"

#include <fmt/format.h>

namespace emu {

void Warp::run(uint64_t &quantum) {
  while (quantum) {
    const Op &op = code->ops[pc];
    uint32_t mask = active;
    if (op.guard >= 0) {
      uint32_t guard = *reinterpret_cast<uint32_t *>(frame + op.guard);
      mask &= op.guardNegated ? ~guard : guard;
    }
    ++executed;
    --quantum;
    if (mask) {
      Flow flow = op.run(*this, op, mask);
      if (flow != Flow::Next) [[unlikely]] {
        if (flow == Flow::Barrier)
          return;
        if (flow == Flow::Wait) {
          groups.push_back({active, pc, node, true, live});
          active = 0;
        }
        if (active == 0 || !groups.empty())
          regroup();
        if (state != Ready)
          return;
        continue;
      }
    }
    if (++pc >= joinPc) [[unlikely]]
      regroup();
  }
}

void Warp::regroup() {
  if (active)
    groups.push_back({active, pc, node, false});
  active = 0;
  joinPc = ~0u;
  if (groups.empty()) {
    state = Done;
    return;
  }
  // Lanes at one place are one group; whoever comes wakes those who wait.
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = i + 1; j < groups.size();) {
      if (groups[i].pc == groups[j].pc && groups[i].node == groups[j].node) {
        groups[i].mask |= groups[j].mask;
        groups[i].waiting = groups[i].waiting && groups[j].waiting;
        groups.erase(groups.begin() + j);
      } else {
        ++j;
      }
    }
  size_t best = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].waiting)
      continue;
    if (best == groups.size()) {
      best = i;
      continue;
    }
    uint32_t depth = nodes[groups[i].node].depth,
             bestDepth = nodes[groups[best].node].depth;
    if (depth > bestDepth ||
        (depth == bestDepth && groups[i].pc < groups[best].pc))
      best = i;
  }
  if (best == groups.size()) {
    // All wait. One is tried again if it is alone or lanes have exited since;
    // the op says whether that is an error.
    if (releaseWarpBarrier())
      return regroup();
    best = 0;
    while (groups.size() > 1 && groups[best].live == live)
      if (++best == groups.size())
        stuck();
  }
  Group chosen = groups[best];
  groups.erase(groups.begin() + best);
  active = chosen.mask;
  pc = chosen.pc;
  node = chosen.node;
  const CallNode &at = nodes[node];
  code = at.code;
  frame = registers.data() + at.frame;
  local = at.local;
  for (const Group &group : groups)
    if (group.node == node && group.pc > pc)
      joinPc = std::min(joinPc, group.pc);
}

// bar.warp.sync may be several instructions, where the compiler has copied it.
bool Warp::releaseWarpBarrier() {
  uint32_t here = 0, named = 0;
  for (const Group &group : groups) {
    const CallNode &at = nodes[group.node];
    const Op &op = at.code->ops[group.pc];
    if (!op.statement || !op.statement->has("warp"))
      return false;
    frame = registers.data() + at.frame;
    named |= in<uint32_t>(op.a)[__builtin_ctz(group.mask)];
    here |= group.mask;
  }
  if (groups.size() < 2 || named & live & ~here)
    return false;
  for (Group &group : groups) {
    ++group.pc;
    group.waiting = false;
  }
  block->syncWarp(index);
  return true;
}

void Warp::split(uint32_t mask, uint32_t target) {
  uint32_t rest = active & ~mask;
  if (rest)
    groups.push_back({rest, pc + 1, node, false});
  active = mask;
  pc = target;
}

void Warp::call(const Op &op, uint32_t mask) {
  uint32_t rest = active & ~mask;
  if (rest)
    groups.push_back({rest, pc + 1, node, false});
  // The same call by other lanes has the same node, so that they can join.
  int32_t found = -1;
  for (size_t i = 1; i < nodes.size() && found < 0; ++i)
    if (nodes[i].parent == node && nodes[i].returnTo == pc + 1)
      found = i;
  CallNode made{op.callee,
                node,
                pc + 1,
                nodes[node].depth + 1,
                nodes[node].frame + code->frameBytes,
                local + (code->localBytes + 15) / 16 * 16};
  if (made.local + op.callee->localBytes > localStride || made.depth > 10000)
    fault(op, __builtin_ctz(mask), LaunchFailed,
          fmt::format("expected calls that need at most {} bytes of stack",
                      localStride));
  if (found < 0) {
    found = nodes.size();
    nodes.push_back(made);
  } else {
    nodes[found] = made;
  }
  if (registers.size() < made.frame + op.callee->frameBytes)
    registers.resize(made.frame + op.callee->frameBytes + 4096);
  node = found;
  active = mask;
  pc = 0;
  code = op.callee;
  frame = registers.data() + made.frame;
  local = made.local;
}

void Warp::ret(uint32_t mask) {
  const CallNode &from = nodes[node];
  if (from.parent < 0)
    return leave(mask);
  uint32_t rest = active & ~mask;
  if (rest)
    groups.push_back({rest, pc + 1, node, false});
  active = mask;
  pc = from.returnTo;
  node = from.parent;
  const CallNode &to = nodes[node];
  code = to.code;
  frame = registers.data() + to.frame;
  local = to.local;
}

void Warp::leave(uint32_t mask) {
  live &= ~mask;
  active &= ~mask;
  ++pc; // of those that stay
}

void Warp::fault(const Op &op, uint32_t lane, Result result,
                 const std::string &text) const {
  const Launch &launch = *block->launch;
  std::string where, statement = "ret";
  uint32_t line = 0;
  if (op.statement) {
    where = launch.source->where(op.statement->loc);
    line = op.statement->line;
    statement.clear();
    for (char c : op.statement->text)
      if (c != '\n' && c != '\t' && c != ' ')
        statement += c;
      else if (!statement.empty() && statement.back() != ' ')
        statement += ' ';
  }
  throw Error(result,
              fmt::format("kernel {}, block ({},{},{}), thread ({},{},{}), "
                          "{}{}PTX line {} '{}': {}",
                          launch.code->function->name, block->id[0],
                          block->id[1], block->id[2], tid[0][lane],
                          tid[1][lane], tid[2][lane], where,
                          where.empty() ? "" : ", ", line, statement, text));
}

void Warp::stuck() {
  std::string text = "expected every lane of the warp at one barrier or warp "
                     "op, got lanes that wait in different places:";
  for (const Group &group : groups) {
    const Op &at = nodes[group.node].code->ops[group.pc];
    std::string where = block->launch->source->where(at.statement->loc);
    text += fmt::format(" 0x{:08x} at {}{}PTX line {} '{}';", group.mask, where,
                        where.empty() ? "" : ", ", at.statement->line,
                        at.statement->text);
  }
  text.pop_back();
  const Group &first = groups[0];
  fault(nodes[first.node].code->ops[first.pc], __builtin_ctz(first.mask),
        LaunchFailed, text);
}

} // namespace emu
