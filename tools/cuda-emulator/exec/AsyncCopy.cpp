// cp.async. The bytes are read when it is issued; they arrive in shared memory
// only when their thread waits for them, and until then are nobody's to read
// or write.
#include "Memory.h"

#include <fmt/format.h>

namespace emu::EMU_LEVEL {

namespace {

Flow copy(Warp &w, const Op &op, uint32_t mask) {
  uint64_t to[32], from[32];
  addresses(w, op, op.a, mask, to);
  Op source = {};
  source.imm = op.imm2;
  source.hasBase = op.regs[1];
  source.wideBase = op.regs[2];
  addresses(w, source, op.regs[0], mask, from);
  SharedMemory &shared = w.block->shared;
  uint32_t bytes = op.bytes;
  const uint32_t *sizes = op.count == 2 ? w.in<uint32_t>(op.c) : nullptr;
  uint32_t ignored =
      op.count == 3 ? w.pred(op.c) ^ (op.negate ? allLanes : 0) : 0;
  bool quick = !sizes && !ignored && quickStamps(w, from, mask, bytes, false);
  const uint8_t *data = w.block->launch->arena->data;
  w.copies.emplace_back();
  PendingCopy &pending = w.copies.back();
  pending.mask = mask;
  pending.bytes = bytes;
  forLanes(mask, [&](uint32_t i) {
    if (to[i] % bytes)
      faultAlignment(w, op, i, to[i], bytes);
    if (from[i] % bytes)
      faultAlignment(w, op, i, from[i], bytes);
    Conflict found = to[i] + bytes > shared.size()
                         ? Conflict::Outside
                         : shared.beginCopy(to[i], bytes, w.index * 32 + i);
    if (found != Conflict::None)
      faultShared(w, op, i, to[i], bytes, found, Access::Store);
    pending.to[i] = to[i];
    pending.group[i] = w.copyGroup[i];
    uint32_t size = sizes ? sizes[i] : ignored >> i & 1 ? 0 : bytes;
    if (size > bytes)
      w.fault(op, i, LaunchFailed,
              fmt::format("expected to copy at most {} bytes, got {}", bytes,
                          size));
    uint8_t *into = pending.data[i];
    if (quick) {
      std::memcpy(into, data + (from[i] - deviceBase), bytes);
      return;
    }
    std::memset(into, 0, bytes);
    if (size == bytes) {
      std::memcpy(into,
                  checkGlobal(w, op, i, from[i], bytes, Access::Load, false),
                  bytes);
      return;
    }
    for (uint32_t k = 0; k < size; ++k)
      into[k] = *checkGlobal(w, op, i, from[i] + k, 1, Access::Load, false);
  });
  if (w.block->launch->countAccesses) {
    KernelStats &stats = w.block->stats;
    stats.copyCycles += bankConflicts(to, mask, bytes);
    stats.copyRequests += 1;
    stats.copySectors += sectorsOf(from, mask);
  }
  return Flow::Next;
}

Flow commit(Warp &w, const Op &op, uint32_t mask) {
  for (int i = 0; i < 32; ++i)
    w.copyGroup[i] += mask >> i & 1;
  return Flow::Next;
}

// All groups but the last op.imm, or all copies.
Flow wait(Warp &w, const Op &op, uint32_t mask) {
  SharedMemory &shared = w.block->shared;
  for (PendingCopy &pending : w.copies)
    forLanes(pending.mask & mask, [&](uint32_t i) {
      if (!op.mode && uint64_t(pending.group[i]) + op.imm >= w.copyGroup[i])
        return;
      std::memcpy(shared.data() + pending.to[i], pending.data[i],
                  pending.bytes);
      shared.endCopy(pending.to[i], pending.bytes, w.index * 32 + i);
      pending.mask &= ~(1u << i);
    });
  std::erase_if(w.copies, [](const PendingCopy &at) { return !at.mask; });
  return Flow::Next;
}

} // namespace

bool buildCopy(Builder &b, const Statement &s, Op &op) {
  if (s.name() != "cp" || s.parts.size() < 3 || s.parts[1] != "async")
    return false;
  std::string_view what = s.parts[2];
  if (what == "commit_group") {
    op.run = commit;
    return true;
  }
  if (what == "wait_group") {
    b.expectCount(1);
    op.imm = b.immediate(0);
    op.run = wait;
    return true;
  }
  if (what == "wait_all") {
    op.mode = 1;
    op.run = wait;
    return true;
  }
  if ((what != "ca" && what != "cg") || !s.has("global") || s.has("mbarrier"))
    return false;
  b.expectCount(3, 5);
  Op source;
  b.address(b.operand(1), source, Space::Global);
  b.address(b.operand(0), op, Space::Shared);
  op.imm2 = source.imm;
  op.regs = {source.a, source.hasBase, source.wideBase};
  uint64_t bytes = b.immediate(2);
  if (what == "cg" ? bytes != 16 : bytes != 4 && bytes != 8 && bytes != 16)
    b.fail("expected to copy 4, 8 or 16 bytes (.cg: 16)");
  op.bytes = bytes;
  op.count = 1;
  if (s.operands.size() > 3) {
    const Operand &fourth = b.operand(3);
    bool policy = s.has("L2::cache_hint") && s.operands.size() == 4;
    if (policy) {
    } else if (b.registerType(fourth) == Ty::Pred) {
      op.count = 3;
      op.c = b.inPred(fourth);
      op.negate = fourth.negated;
    } else {
      op.count = 2;
      op.c = b.in(3, Ty::U32);
    }
  }
  op.run = copy;
  return true;
}

} // namespace emu::EMU_LEVEL
