// How a block runs: its warps in random order, and its barriers.
#include "Machine.h"

#include <fmt/format.h>

namespace emu {

void Block::start(Launch &from, uint64_t number) {
  launch = &from;
  linear = number;
  id[0] = number % from.grid[0];
  id[1] = number / from.grid[0] % from.grid[1];
  id[2] = number / from.grid[0] / from.grid[1];
  ownStamp = from.stampBase + 1 + number;
  acquired = fenced = false;
  barriers = {};
  random.seed(static_cast<uint32_t>(from.seed * 0x9e3779b97f4a7c15ull >> 32) ^
              static_cast<uint32_t>(number * 2654435761u));
  uint32_t threads = from.threads(), count = (threads + 31) / 32;
  shared.start(from.sharedVariables, from.sharedBytes, count);
  warps.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    Warp &warp = warps[i];
    uint32_t lanes = std::min(32u, threads - i * 32);
    warp.block = this;
    warp.index = i;
    warp.pool = from.pool;
    warp.started = warp.live = warp.active =
        lanes == 32 ? allLanes : (1u << lanes) - 1;
    warp.code = from.code;
    warp.pc = 0;
    warp.groups.clear();
    warp.nodes.assign(1, {from.code, -1, 0, 0, 0, 0});
    warp.node = 0;
    warp.local = 0;
    warp.joinPc = ~0u;
    warp.state = Warp::Ready;
    warp.copies.clear();
    warp.carry = 0;
    warp.executed = 0;
    std::fill(warp.copyGroup, warp.copyGroup + 32, 0);
    if (warp.registers.size() < from.code->frameBytes)
      warp.registers.resize(from.code->frameBytes);
    warp.frame = warp.registers.data();
    warp.localStride = from.localStride;
    warp.localData.resize(from.localStride * 32);
    warp.localSet.assign(from.localStride * 32, 0);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t thread = i * 32 + lane;
      warp.tid[0][lane] = thread % from.block[0];
      warp.tid[1][lane] = thread / from.block[0] % from.block[1];
      warp.tid[2][lane] = thread / from.block[0] / from.block[1];
    }
  }
}

void Block::run() {
  std::vector<uint32_t> ready;
  uint64_t budget = launch->limit;
  while (true) {
    ready.clear();
    bool done = true;
    for (Warp &warp : warps) {
      if (warp.state == Warp::Ready)
        ready.push_back(warp.index);
      done &= warp.state == Warp::Done;
    }
    if (done)
      break;
    if (ready.empty())
      stuck();
    Warp &warp = warps[ready[random() % ready.size()]];
    uint64_t quantum = ready.size() == 1 ? 100000 : 1 + random() % 400;
    quantum = std::min(quantum, budget);
    budget -= quantum;
    if (!quantum)
      warp.fault(warp.code->ops[warp.pc], 0, LaunchTimeout,
                 fmt::format("expected a block to end within {} warp "
                             "instructions (GPTC_EMULATOR_LIMIT); blocks run "
                             "one after the other and cannot wait for others",
                             launch->limit));
    warp.run(quantum);
    budget += quantum;
  }
}

bool Block::arrive(Warp &warp, const Op &op, uint32_t number, uint32_t threads,
                   bool blocks) {
  Barrier &barrier = barriers[number];
  if (warp.live != warp.started)
    warp.fault(op, __builtin_ctz(warp.active), LaunchFailed,
               fmt::format("expected every thread of the warp at the barrier, "
                           "got 0x{:08x} of 0x{:08x}; the others have exited",
                           warp.live, warp.started));
  if (barrier.arrived && barrier.count != threads)
    warp.fault(op, __builtin_ctz(warp.active), LaunchFailed,
               fmt::format("expected {} threads at barrier {}, as the warps "
                           "that wait there say, got {}",
                           barrier.count, number, threads));
  barrier.count = threads;
  barrier.warps |= 1u << warp.index;
  barrier.arrived += threads ? 32 : __builtin_popcount(warp.started);
  barrier.expected = threads ? threads : launch->threads();
  warp.barrier = number;
  if (blocks) {
    warp.state = Warp::AtBarrier;
    ++warp.pc;
  }
  if (barrier.arrived > barrier.expected)
    warp.fault(op, __builtin_ctz(warp.active), LaunchFailed,
               fmt::format("expected {} threads at barrier {}, got {}",
                           barrier.expected, number, barrier.arrived));
  if (barrier.arrived == barrier.expected)
    complete(number);
  return warp.state == Warp::AtBarrier;
}

void Block::complete(uint32_t number) {
  Barrier done = barriers[number];
  barriers[number] = {};
  shared.syncWarps(done.warps);
  for (Warp &warp : warps)
    if (warp.state == Warp::AtBarrier && warp.barrier == number) {
      warp.state = Warp::Ready;
      if (warp.reduction >= 0) {
        // The op before pc says which reduction it was.
        const Op &op = warp.code->ops[warp.pc - 1];
        if (op.mode == 2)
          std::fill_n(warp.out<uint32_t>(warp.reduction), 32, done.sum);
        else
          *warp.out<uint32_t>(warp.reduction) =
              (op.mode == 0 ? done.all : done.any) ? allLanes : 0;
        warp.reduction = -1;
      }
    }
}

void Block::stuck() {
  std::string text;
  const Warp *waits = nullptr;
  for (const Warp &warp : warps) {
    if (warp.state == Warp::Done) {
      text += fmt::format(" warp {} has exited;", warp.index);
      continue;
    }
    const Op &op = warp.code->ops[warp.pc - 1];
    std::string where = launch->source->where(op.statement->loc);
    text += fmt::format(" warp {} waits at barrier {} ({}{}PTX line {});",
                        warp.index, warp.barrier, where,
                        where.empty() ? "" : ", ", op.statement->line);
    if (!waits)
      waits = &warp;
  }
  text.pop_back();
  waits->fault(waits->code->ops[waits->pc - 1], __builtin_ctz(waits->active),
               LaunchFailed,
               "expected every thread of the block at the barrier, got:" +
                   text);
}

} // namespace emu
