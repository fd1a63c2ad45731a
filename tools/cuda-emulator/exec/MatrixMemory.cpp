// ldmatrix, stmatrix and movmatrix: matrices of 8 rows of 16 bytes each. A
// lane gives the address of a row: lane 8 m + r of row r of matrix m.
#include "Gather.h"
#include "Memory.h"

namespace emu::EMU_LEVEL {

namespace {

bool allHere(Warp &w, const Op &op, uint32_t mask, Flow &flow) {
  if (!gathered(w, op, mask, w.started, flow))
    return false;
  if (mask != allLanes)
    w.fault(op, __builtin_ctz(mask), LaunchFailed,
            "expected all 32 lanes at a matrix op");
  return true;
}

void transpose(const uint16_t *from, uint16_t *to) {
  for (int row = 0; row < 8; ++row)
    for (int col = 0; col < 8; ++col)
      to[row * 8 + col] = from[col * 8 + row];
}

uint8_t *rowAt(Warp &w, const Op &op, uint32_t lane, uint64_t at, bool store,
               const void *value) {
  SharedMemory &shared = w.block->shared;
  Access access = store ? Access::Store : Access::Load;
  if (at % 16)
    faultAlignment(w, op, lane, at, 16);
  uint32_t thread = w.index * 32 + lane;
  Conflict found = at + 16 > shared.size() ? Conflict::Outside
                   : store                 ? shared.store(at, 16, thread, value)
                                           : shared.load(at, 16, thread);
  if (found != Conflict::None) [[unlikely]]
    faultShared(w, op, lane, at, 16, found, access);
  return shared.data() + at;
}

void resolve(const Op &op, uint32_t rows, uint64_t *at) {
  if (op.space == Space::Generic)
    for (uint32_t i = 0; i < rows; ++i)
      if (spaceOf(at[i]) != Space::Shared)
        at[i] = ~0ull - 15; // no address of shared memory
}

template <bool trans> Flow load(Warp &w, const Op &op, uint32_t mask) {
  Flow flow = Flow::Next;
  if (!allHere(w, op, mask, flow))
    return flow;
  uint64_t at[32];
  addresses(w, op, op.a, mask, at);
  resolve(op, op.count * 8, at);
  for (uint32_t m = 0; m < op.count; ++m) {
    uint16_t rows[64];
    for (uint32_t r = 0; r < 8; ++r)
      std::memcpy(rows + r * 8,
                  rowAt(w, op, m * 8 + r, at[m * 8 + r], false, nullptr), 16);
    uint16_t *d = w.out<uint16_t>(op.regs[m]);
    if (trans)
      transpose(rows, d);
    else
      std::memcpy(d, rows, sizeof(rows));
    if (w.block->launch->countAccesses)
      w.block->stats.matrixCycles += bankConflicts(at + m * 8, 0xff, 16);
  }
  return Flow::Next;
}

template <bool trans> Flow store(Warp &w, const Op &op, uint32_t mask) {
  Flow flow = Flow::Next;
  if (!allHere(w, op, mask, flow))
    return flow;
  uint64_t at[32];
  addresses(w, op, op.a, mask, at);
  resolve(op, op.count * 8, at);
  for (uint32_t m = 0; m < op.count; ++m) {
    uint16_t rows[64];
    const uint16_t *a = w.in<uint16_t>(op.regs[m]);
    if (trans)
      transpose(a, rows);
    else
      std::memcpy(rows, a, sizeof(rows));
    for (uint32_t r = 0; r < 8; ++r)
      std::memcpy(rowAt(w, op, m * 8 + r, at[m * 8 + r], true, rows + r * 8),
                  rows + r * 8, 16);
    if (w.block->launch->countAccesses)
      w.block->stats.matrixCycles += bankConflicts(at + m * 8, 0xff, 16);
  }
  return Flow::Next;
}

Flow move(Warp &w, const Op &op, uint32_t mask) {
  Flow flow = Flow::Next;
  if (!allHere(w, op, mask, flow))
    return flow;
  uint16_t rows[64];
  std::memcpy(rows, w.in<uint16_t>(op.a), sizeof(rows));
  transpose(rows, w.out<uint16_t>(op.d));
  return Flow::Next;
}

} // namespace

bool buildMatrixMemory(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  bool isStore = name == "stmatrix";
  if (name == "movmatrix") {
    b.expectCount(2);
    op.a = b.in(1, Ty::B32);
    op.d = b.out(0, Ty::B32);
    op.run = move;
    return s.has("trans") && s.has("m8n8");
  }
  if ((name != "ldmatrix" && !isStore) || !s.has("m8n8") ||
      s.parts.back() != "b16" || s.has("shared::cluster"))
    return false;
  b.expectCount(2);
  b.address(b.operand(isStore ? 0 : 1), op, spaceIn(s));
  const Operand &data = b.operand(isStore ? 1 : 0);
  std::vector<Operand> elems =
      data.kind == Operand::Vector ? data.elems : std::vector<Operand>{data};
  op.count = s.has("x4") ? 4 : s.has("x2") ? 2 : 1;
  if (elems.size() != op.count)
    b.fail(
        fmt::format("expected {} registers, got {}", op.count, elems.size()));
  for (const Operand &elem : elems)
    op.regs.push_back(isStore ? b.in(elem, Ty::B32) : b.out(elem, Ty::B32));
  bool trans = s.has("trans");
  op.run = isStore ? (trans ? store<true> : store<false>)
                   : (trans ? load<true> : load<false>);
  return true;
}

} // namespace emu::EMU_LEVEL
