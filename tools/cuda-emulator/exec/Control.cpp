// Branches, calls, returns, barriers of the block, fences and traps.
#include "Lanes.h"

#include <fmt/format.h>

namespace emu::EMU_LEVEL {

namespace {

Flow branch(Warp &w, const Op &op, uint32_t mask) {
  if (mask == w.active)
    w.pc = op.imm;
  else
    w.split(mask, op.imm);
  return Flow::Jump;
}

Flow branchIndexed(Warp &w, const Op &op, uint32_t mask) {
  const auto &table = w.code->tables[op.shape];
  const uint32_t *index = w.in<uint32_t>(op.a);
  if (uint32_t rest = w.active & ~mask)
    w.groups.push_back({rest, w.pc + 1, w.node, false});
  forLanes(mask, [&](uint32_t i) {
    if (index[i] >= table.size())
      w.fault(op, i, LaunchFailed,
              fmt::format("expected an index below {}, got {}", table.size(),
                          index[i]));
    w.groups.push_back({1u << i, table[index[i]], w.node, false});
  });
  w.active = 0;
  return Flow::Jump;
}

Flow returns(Warp &w, const Op &op, uint32_t mask) {
  w.ret(mask);
  return Flow::Jump;
}
Flow exits(Warp &w, const Op &op, uint32_t mask) {
  w.leave(mask);
  return Flow::Jump;
}
Flow calls(Warp &w, const Op &op, uint32_t mask) {
  // Arguments: places in the caller's local memory, and in the callee's.
  uint32_t callee = w.local + (w.code->localBytes + 15) / 16 * 16;
  for (size_t i = 0; i + 2 < op.regs.size(); i += 3)
    forLanes(mask, [&](uint32_t lane) {
      uint64_t base = uint64_t(lane) * w.localStride;
      uint64_t from = base + w.local + op.regs[i],
               to = base + callee + op.regs[i + 1];
      if (callee + op.callee->localBytes > w.localStride)
        return; // call() says so
      std::memcpy(&w.localData[to], &w.localData[from], op.regs[i + 2]);
      std::memcpy(&w.localSet[to], &w.localSet[from], op.regs[i + 2]);
    });
  w.call(op, mask);
  // What the function before left there is no more.
  const Function &function = *op.callee->function;
  for (const auto *list : {&function.results, &function.locals})
    for (const auto &variable : *list)
      if (variable->space == Space::Local || variable->space == Space::Param)
        forLanes(mask, [&](uint32_t lane) {
          std::memset(&w.localSet[uint64_t(lane) * w.localStride + w.local +
                                  variable->address],
                      0, variable->size);
        });
  return Flow::Jump;
}
// The op after a call: takes the results out of the callee's local memory.
Flow results(Warp &w, const Op &op, uint32_t mask) {
  uint32_t callee = w.local + (w.code->localBytes + 15) / 16 * 16;
  for (size_t i = 0; i + 2 < op.regs.size(); i += 3)
    forLanes(mask, [&](uint32_t lane) {
      uint64_t base = uint64_t(lane) * w.localStride;
      uint64_t to = base + w.local + op.regs[i],
               from = base + callee + op.regs[i + 1];
      std::memcpy(&w.localData[to], &w.localData[from], op.regs[i + 2]);
      std::memcpy(&w.localSet[to], &w.localSet[from], op.regs[i + 2]);
    });
  return Flow::Next;
}

Flow traps(Warp &w, const Op &op, uint32_t mask) {
  w.fault(op, __builtin_ctz(mask), LaunchFailed,
          "expected no trap to be reached");
}
Flow asserts(Warp &w, const Op &op, uint32_t mask) {
  // The first argument: the text of the condition.
  uint32_t lane = __builtin_ctz(mask);
  uint64_t address = 0;
  std::memcpy(
      &address,
      &w.localData[uint64_t(lane) * w.localStride + w.local + op.regs[0]], 8);
  Arena &arena = *w.block->launch->arena;
  std::string text;
  while (text.size() < 200 && arena.contains(address, 1) &&
         *arena.host(address))
    text += *arena.host(address++);
  w.fault(op, lane, Assert,
          fmt::format("expected the assertion '{}' to hold", text));
}
Flow nothing(Warp &, const Op &, uint32_t) { return Flow::Next; }
Flow fence(Warp &w, const Op &op, uint32_t) {
  w.block->fenced = true;
  return Flow::Next;
}

// --- barriers ---

// Lanes for which the guard is false go on.
bool leaveOthers(Warp &w, uint32_t mask) {
  if (mask == w.active)
    return false;
  w.groups.push_back({w.active & ~mask, w.pc + 1, w.node, false});
  w.active = mask;
  return true;
}

enum BarrierKind : uint8_t { And, Or, Popc, Sync, Arrive };

Flow barrier(Warp &w, const Op &op, uint32_t mask) {
  if (leaveOthers(w, mask))
    return Flow::Jump;
  if (w.live & ~mask)
    return Flow::Wait;
  uint32_t lane = __builtin_ctz(mask);
  uint32_t id = w.in<uint32_t>(op.a)[lane];
  uint32_t threads = op.hasBase ? w.in<uint32_t>(op.b)[lane] : 0;
  if (id > 15)
    w.fault(op, lane, LaunchFailed,
            fmt::format("expected a barrier from 0 to 15, got {}", id));
  if (op.hasBase && (threads == 0 || threads % 32))
    w.fault(op, lane, LaunchFailed,
            fmt::format("expected a multiple of 32 threads at a barrier, got "
                        "{}",
                        threads));
  if (op.mode < Sync) {
    uint32_t p = w.pred(op.c) ^ (op.negate ? allLanes : 0);
    Barrier &at = w.block->barriers[id];
    at.all &= (p & mask) == mask;
    at.any |= (p & mask) != 0;
    at.sum += __builtin_popcount(p & mask);
    w.reduction = op.d;
  }
  if (op.mode == Arrive) {
    w.block->arrive(w, op, id, threads, false);
    return Flow::Next;
  }
  w.block->arrive(w, op, id, threads, true);
  return Flow::Barrier;
}

bool buildBarrier(Builder &b, const Statement &s, Op &op) {
  op.run = barrier;
  size_t first = 0;
  if (s.has("red")) {
    op.mode = s.has("and") ? And : s.has("or") ? Or : Popc;
    op.d = op.mode == Popc ? b.out(0, Ty::U32) : b.outPred(b.operand(0));
    const Operand &p = b.operand(s.operands.size() - 1);
    op.c = b.inPred(p);
    op.negate = p.negated;
    first = 1;
    b.expectCount(3, 4);
    op.hasBase = s.operands.size() == 4;
  } else {
    op.mode = s.has("arrive") ? Arrive : Sync;
    b.expectCount(1, 2);
    op.hasBase = s.operands.size() == 2;
  }
  op.a = b.in(first, Ty::U32);
  if (op.hasBase)
    op.b = b.in(first + 1, Ty::U32);
  return true;
}

// --- calls ---

bool buildCall(Builder &b, const Statement &s, Op &op) {
  // call (results), name, (arguments)
  size_t at = 0;
  const Operand *returned = nullptr, *arguments = nullptr;
  if (b.operand(0).kind == Operand::List) {
    returned = &b.operand(0);
    at = 1;
  }
  const Operand &name = b.operand(at);
  if (name.kind != Operand::Symbol || name.var)
    b.fail("expected the name of a function: calls through pointers are not "
           "emulated");
  if (s.operands.size() > at + 1)
    arguments = &b.operand(at + 1);
  if (arguments && arguments->kind != Operand::List)
    b.fail("expected a list of arguments");
  auto places = [&](const Operand *list) {
    std::vector<const Variable *> variables;
    if (list)
      for (const Operand &elem : list->elems) {
        if (elem.kind != Operand::Symbol || !elem.var)
          b.fail("expected arguments in .param space");
        variables.push_back(elem.var);
      }
    return variables;
  };
  auto given = places(arguments), wanted = places(returned);
  if (name.text == "__assertfail") {
    if (given.empty() || given[0]->size != 8)
      b.fail("expected the condition's text as the first argument");
    op.regs = {int32_t(given[0]->address)};
    op.run = asserts;
    return true;
  }
  const Code *callee = b.callee(name.text);
  if (!callee)
    b.fail(fmt::format(
        "expected a function that the module defines, got {}{}", name.text,
        name.text == "vprintf" ? ": printf is not emulated" : ""));
  op.callee = callee;
  b.code.hasCalls = true;
  auto match = [&](const std::vector<const Variable *> &here,
                   const std::vector<std::unique_ptr<Variable>> &there,
                   std::vector<int32_t> &regs) {
    if (here.size() != there.size())
      b.fail(fmt::format("expected {} arguments or results, got {}",
                         there.size(), here.size()));
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i]->size != there[i]->size || b.isKernelParam(*here[i]))
        b.fail(fmt::format("expected {} bytes for {}, got {}", there[i]->size,
                           there[i]->name, here[i]->size));
      regs.push_back(here[i]->address);
      regs.push_back(there[i]->address);
      regs.push_back(here[i]->size);
    }
  };
  match(given, callee->function->params, op.regs);
  op.run = calls;
  if (!wanted.empty()) {
    Op after;
    after.statement = &s;
    match(wanted, callee->function->results, after.regs);
    after.run = results;
    b.after = std::move(after);
  }
  return true;
}

} // namespace

bool buildControl(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  if (name == "bra") {
    b.expectCount(1);
    op.imm = b.target(b.operand(0));
    op.isJump = true;
    op.run = branch;
  } else if (name == "brx") {
    b.expectCount(2);
    op.a = b.in(0, Ty::U32);
    for (const BranchTable &table : b.function.branchTables)
      if (table.name == b.operand(1).text) {
        std::vector<uint32_t> targets;
        for (const Operand &target : table.targets)
          targets.push_back(b.target(target));
        if (b.code.tables.size() > 254)
          b.fail("expected fewer branch tables");
        op.shape = b.code.tables.size();
        b.code.tables.push_back(std::move(targets));
        op.run = branchIndexed;
        return true;
      }
    b.fail("expected a table of branch targets");
  } else if (name == "ret") {
    op.run = returns;
  } else if (name == "exit") {
    op.run = exits;
  } else if (name == "call") {
    return buildCall(b, s, op);
  } else if (name == "trap" || name == "brkpt") {
    op.run = traps;
  } else if (name == "nanosleep" || name == "pmevent") {
    op.run = nothing;
  } else if (name == "membar" || name == "fence") {
    if (s.has("proxy") || s.has("mbarrier_init"))
      return false;
    op.run = fence;
  } else if (name == "bar" || name == "barrier") {
    if (s.has("warp") || s.has("cluster"))
      return false;
    return buildBarrier(b, s, op);
  } else {
    return false;
  }
  return true;
}

} // namespace emu::EMU_LEVEL
