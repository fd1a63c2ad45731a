// ld and st, of every space. Global memory takes a quick way where the stamps
// of all words allow the access; Checks.cpp decides about the others.
#include "Memory.h"

namespace emu::EMU_LEVEL {

namespace {

constexpr uint8_t strong = 1; // volatile, relaxed, acquire, release
constexpr uint8_t acquires = 2;

// Where each lane's bytes are, once the access is allowed.
void locate(Warp &w, const Op &op, Space space, uint32_t mask,
            const uint64_t *at, Access access, const uint8_t *const *value,
            uint8_t **where) {
  uint32_t bytes = op.bytes * op.count;
  switch (space) {
  case Space::Generic:
  case Space::Global:
  case Space::Const: {
    Block &block = *w.block;
    Arena &arena = *block.launch->arena;
    if (op.mode & acquires)
      block.acquired = true;
    if (block.launch->countAccesses) {
      block.stats.requests += 1;
      block.stats.sectors += sectorsOf(at, mask);
    }
    if (quickStamps(w, at, mask, bytes, access == Access::Store)) {
      for (int i = 0; i < 32; ++i)
        where[i] = arena.data + (at[i] - deviceBase);
      return;
    }
    forLanes(mask, [&](uint32_t i) {
      where[i] = checkGlobal(w, op, i, at[i], bytes, access, op.mode & strong);
      if (access == Access::Store)
        markGlobal(w, at[i], bytes);
    });
    return;
  }
  case Space::Shared: {
    SharedMemory &shared = w.block->shared;
    uint64_t misaligned = 0, most = 0, spread = 0;
    for (int i = 0; i < 32; ++i) {
      misaligned |= at[i] & (bytes - 1);
      most = std::max(most, at[i]);
      spread |= at[i] ^ (at[0] + uint64_t(i) * bytes);
    }
    uint8_t *data = shared.data();
    uint32_t first = w.index * 32;
    bool inside = most + bytes <= shared.size() && !misaligned;
    if (w.block->launch->countAccesses)
      w.block->stats.sharedCycles += bankConflicts(at, mask, bytes);
    if (inside && spread == 0 && mask == allLanes &&
        quickRow(shared, w.index, at[0] / 4, bytes, access == Access::Store)) {
      for (int i = 0; i < 32; ++i)
        where[i] = data + at[i];
      return;
    }
    forLanes(mask, [&](uint32_t i) {
      if (!inside) {
        if (at[i] % bytes)
          faultAlignment(w, op, i, at[i], bytes);
        if (at[i] + bytes > shared.size())
          faultShared(w, op, i, at[i], bytes, Conflict::Outside, access);
      }
      Conflict conflict = access == Access::Load
                              ? shared.load(at[i], bytes, first + i)
                              : shared.store(at[i], bytes, first + i, value[i]);
      if (conflict != Conflict::None) [[unlikely]]
        faultShared(w, op, i, at[i], bytes, conflict, access);
      where[i] = data + at[i];
    });
    return;
  }
  case Space::Param:
    if (op.space == Space::Generic ||
        (!op.ofFrame && w.code->function->isEntry)) {
      forLanes(mask, [&](uint32_t i) {
        where[i] =
            const_cast<uint8_t *>(checkParam(w, op, i, at[i], bytes, access));
      });
      return;
    }
    [[fallthrough]];
  case Space::Local:
    forLanes(mask, [&](uint32_t i) {
      where[i] = checkLocal(w, op, i, at[i], bytes, access);
    });
    return;
  }
}

template <class T, class R> Flow load(Warp &w, const Op &op, uint32_t mask) {
  uint64_t at[32];
  addresses(w, op, op.a, mask, at);
  bySpace(op, mask, at, [&](Space space, uint32_t lanes) {
    uint8_t *where[32];
    locate(w, op, space, lanes, at, Access::Load, nullptr, where);
    for (uint32_t v = 0; v < op.count; ++v) {
      R *d = w.out<R>(op.count == 1 ? op.d : op.regs[v]);
      auto get = [&](uint32_t i) {
        T value;
        std::memcpy(&value, where[i] + v * sizeof(T), sizeof(T));
        d[i] = R(value);
      };
      if (lanes == allLanes)
        for (int i = 0; i < 32; ++i)
          get(i);
      else
        forLanes(lanes, get);
    }
  });
  return Flow::Next;
}

// T is the unsigned type of an element, R that of the registers.
template <class T, class R> Flow store(Warp &w, const Op &op, uint32_t mask) {
  uint64_t at[32];
  addresses(w, op, op.a, mask, at);
  alignas(16) T values[32][4];
  const uint8_t *value[32];
  for (uint32_t v = 0; v < op.count; ++v) {
    const R *b = w.in<R>(op.count == 1 ? op.b : op.regs[v]);
    for (int i = 0; i < 32; ++i)
      values[i][v] = T(b[i]);
  }
  for (int i = 0; i < 32; ++i)
    value[i] = reinterpret_cast<const uint8_t *>(values[i]);
  uint32_t bytes = sizeof(T) * op.count;
  bySpace(op, mask, at, [&](Space space, uint32_t lanes) {
    uint8_t *where[32];
    locate(w, op, space, lanes, at, Access::Store, value, where);
    forLanes(lanes,
             [&](uint32_t i) { std::memcpy(where[i], value[i], bytes); });
  });
  return Flow::Next;
}

// All lanes read the same bytes of the kernel's parameters.
template <class T, class R>
Flow loadParam(Warp &w, const Op &op, uint32_t mask) {
  T value;
  std::memcpy(
      &value,
      checkParam(w, op, __builtin_ctz(mask), op.imm, sizeof(T), Access::Load),
      sizeof(T));
  each(w.out<R>(op.d), mask, [=](int) { return R(value); });
  return Flow::Next;
}

template <template <class, class> class Pick> Handler pick(Ty type, int bits) {
  switch (type) {
  case Ty::U8:
  case Ty::B8:
    return bits == 16   ? Pick<uint8_t, uint16_t>::run
           : bits == 32 ? Pick<uint8_t, uint32_t>::run
                        : Pick<uint8_t, uint64_t>::run;
  case Ty::S8:
    return bits == 16   ? Pick<int8_t, int16_t>::run
           : bits == 32 ? Pick<int8_t, int32_t>::run
                        : Pick<int8_t, int64_t>::run;
  case Ty::S16:
    return bits == 16   ? Pick<int16_t, int16_t>::run
           : bits == 32 ? Pick<int16_t, int32_t>::run
                        : Pick<int16_t, int64_t>::run;
  case Ty::U16:
  case Ty::B16:
  case Ty::F16:
  case Ty::BF16:
    return bits == 16   ? Pick<uint16_t, uint16_t>::run
           : bits == 32 ? Pick<uint16_t, uint32_t>::run
                        : Pick<uint16_t, uint64_t>::run;
  case Ty::S32:
    return bits == 32 ? Pick<int32_t, int32_t>::run
                      : Pick<int32_t, int64_t>::run;
  case Ty::U32:
  case Ty::B32:
  case Ty::F32:
  case Ty::F16x2:
  case Ty::BF16x2:
    return bits == 32 ? Pick<uint32_t, uint32_t>::run
                      : Pick<uint32_t, uint64_t>::run;
  case Ty::U64:
  case Ty::S64:
  case Ty::B64:
  case Ty::F64:
    return Pick<uint64_t, uint64_t>::run;
  default:
    return nullptr;
  }
}
template <class T, class R> struct Load {
  static Flow run(Warp &w, const Op &op, uint32_t m) {
    return load<T, R>(w, op, m);
  }
};
template <class T, class R> struct LoadParam {
  static Flow run(Warp &w, const Op &op, uint32_t m) {
    return loadParam<T, R>(w, op, m);
  }
};
template <class T, class R> struct Store {
  static Flow run(Warp &w, const Op &op, uint32_t m) {
    return store<std::make_unsigned_t<T>, std::make_unsigned_t<R>>(w, op, m);
  }
};

Flow nothing(Warp &, const Op &, uint32_t) { return Flow::Next; }

} // namespace

bool buildMemory(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  bool isStore = name == "st";
  if (name == "prefetch" || name == "prefetchu" || name == "applypriority" ||
      name == "discard") {
    op.run = nothing;
    return name != "discard";
  }
  if (name != "ld" && name != "ldu" && !isStore)
    return false;
  if (s.has("shared::cluster") || s.has("b128") || s.has("mmio"))
    return false;
  b.expectCount(2, 3); // and a cache policy
  Ty type = b.lastType();
  if (type == Ty::Pred)
    return false;
  op.count = s.has("v2") ? 2 : s.has("v4") ? 4 : 1;
  op.bytes = bitsOf(type) / 8;
  if (op.count * op.bytes > 16)
    return false;
  if (s.has("volatile") || s.has("relaxed") || s.has("acquire") ||
      s.has("release"))
    op.mode = isStore ? strong : strong | acquires;
  b.address(b.operand(isStore ? 0 : 1), op, spaceIn(s));
  const Operand &data = b.operand(isStore ? 1 : 0);
  int bits = 0;
  if (op.count == 1) {
    if (isStore)
      op.b = b.inWide(data, type, bits);
    else
      op.d = b.outWide(data, type, bits);
  } else {
    if (data.kind != Operand::Vector || data.elems.size() != op.count)
      b.fail("expected as many registers as the vector has elements");
    for (const Operand &elem : data.elems) {
      int its = 0;
      op.regs.push_back(isStore ? b.inWide(elem, type, its)
                                : b.outWide(elem, type, its));
      if (elem.kind == Operand::Sink)
        its = bits ? bits : bitsOf(type);
      if (bits && its != bits)
        b.fail("expected registers of one width");
      bits = its;
    }
  }
  if (bits == 8)
    bits = 16;
  if (isStore)
    op.run = pick<Store>(type, bits);
  else if (op.space == Space::Param && !op.hasBase && !op.ofFrame &&
           op.count == 1)
    op.run = pick<LoadParam>(type, bits);
  else
    op.run = pick<Load>(type, bits);
  return op.run != nullptr;
}

} // namespace emu::EMU_LEVEL
