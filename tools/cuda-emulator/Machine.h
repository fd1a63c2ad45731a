// The machine that runs kernels: ops as they are executed, warps, blocks and
// launches. A register is 32 lanes side by side; a predicate is a word of 32
// bits. An op runs for all lanes of its mask at once.
#ifndef GPTC_CUDA_EMULATOR_MACHINE_H
#define GPTC_CUDA_EMULATOR_MACHINE_H

#include "Arena.h"
#include "Error.h"
#include "Shared.h"
#include "Syntax.h"

#include <array>
#include <cstring>
#include <new>
#include <random>

namespace emu {

// Bytes that begin at a multiple of 64, as wide vectors like it.
template <class T> struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U> Aligned(const Aligned<U> &) {}
  T *allocate(size_t n) {
    return static_cast<T *>(
        ::operator new(n * sizeof(T), std::align_val_t(64)));
  }
  void deallocate(T *at, size_t) {
    ::operator delete(at, std::align_val_t(64));
  }
  bool operator==(const Aligned &) const { return true; }
};
using AlignedBytes = std::vector<uint8_t, Aligned<uint8_t>>;

constexpr uint32_t warpSize = 32;
constexpr uint32_t allLanes = ~0u;

struct Warp;
struct Block;
struct Launch;
struct Op;
struct Code;

enum class Flow : uint8_t {
  Next,    // go on with the next op
  Jump,    // the op set pc, or changed the groups
  Wait,    // lanes that the op names are elsewhere: try again later
  Barrier, // the warp waits for the block
};
using Handler = Flow (*)(Warp &, const Op &, uint32_t mask);

// What an op does to the floating-point environment (see Float.h).
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

struct Op {
  Handler run = nullptr;
  Handler inner = nullptr; // what run calls in another environment
  // Registers: offsets in the frame, or ~offset in the pool of constants.
  int32_t d = 0, a = 0, b = 0, c = 0;
  int32_t guard = -1;
  bool guardNegated = false;
  bool hasBase = true;  // the address has a register (a)
  bool wideBase = true; // of 64 bits
  bool negate = false;  // !p
  bool ofFrame = false; // imm is in the frame's part of local memory
  bool isJump = false;  // imm is an op
  uint8_t count = 1;    // elements of a vector
  uint8_t bytes = 4;    // of an element
  uint8_t mode = 0;     // of its family
  uint8_t shape = 0;
  Rounding rounding = Rounding::Nearest;
  bool flush = false; // .ftz
  Space space = Space::Generic;
  int64_t imm = 0, imm2 = 0;
  std::vector<int32_t> regs; // of vectors and matrices
  const Code *callee = nullptr;
  const Statement *statement = nullptr;
};

struct Code { // a function, ready to run
  const Function *function = nullptr;
  std::vector<Op> ops; // the last one returns
  uint32_t frameBytes = 0, localBytes = 0;
  std::vector<std::vector<uint32_t>> tables; // of brx.idx
  bool hasCalls = false, hasAtomics = false;
};

// Where a call returns to; shared by all lanes that called from there.
struct CallNode {
  const Code *code;
  int32_t parent;
  uint32_t returnTo, depth, frame, local; // of the function called
};

struct Group { // lanes of a warp that are at one place
  uint32_t mask, pc;
  int32_t node;
  bool waiting;
  uint32_t live = 0; // lanes of the warp when it began to wait
};

struct PendingCopy { // a cp.async that has not arrived
  uint32_t mask;
  uint32_t bytes;
  uint32_t to[warpSize], group[warpSize];
  uint8_t data[warpSize][16];
};

struct Warp {
  // What handlers use most.
  uint8_t *frame = nullptr;
  const uint8_t *pool = nullptr;
  uint32_t active = 0, pc = 0;
  uint32_t live = 0, started = 0; // lanes
  const Code *code = nullptr;
  int32_t node = 0;
  uint32_t local = 0; // of the current function
  Block *block = nullptr;
  uint32_t index = 0;
  uint32_t carry = 0; // CC.CF

  // Lanes elsewhere.
  std::vector<Group> groups;
  std::vector<CallNode> nodes;
  uint32_t joinPc = ~0u;

  AlignedBytes registers;
  std::vector<uint8_t> localData, localSet; // lanes * localStride
  uint32_t localStride = 0;
  uint32_t tid[3][warpSize];
  std::vector<PendingCopy> copies;
  uint32_t copyGroup[warpSize] = {};

  enum State : uint8_t { Ready, AtBarrier, Done } state = Ready;
  uint32_t barrier = 0, barrierThreads = 0;
  int32_t reduction = -1; // of bar.red: register of the result
  uint64_t executed = 0;

  template <class T> T *out(int32_t at) {
    return reinterpret_cast<T *>(frame + at);
  }
  template <class T> const T *in(int32_t at) const {
    return reinterpret_cast<const T *>(at >= 0 ? frame + at : pool + ~at);
  }
  uint32_t pred(int32_t at) const { return *in<uint32_t>(at); }

  void run(uint64_t &quantum);
  void regroup();
  void split(uint32_t mask, uint32_t target); // a branch that some lanes take
  void call(const Op &op, uint32_t mask);
  void ret(uint32_t mask);
  void leave(uint32_t mask);
  uint32_t laneOfThread(uint32_t lane) const { return index * 32 + lane; }
  [[noreturn]] void fault(const Op &op, uint32_t lane, Result result,
                          const std::string &text) const;

private:
  bool releaseWarpBarrier();
  [[noreturn]] void stuck();
};

struct Barrier {
  uint32_t warps = 0; // a bit for each that has come
  uint32_t arrived = 0, expected = 0;
  uint32_t count = 0;
  uint32_t sum = 0; // of bar.red
  bool all = true, any = false;
};

// What the launches of a kernel did. Cycles are those lost to bank conflicts;
// a sector is 32 bytes of global memory that a warp's access touches.
struct KernelStats {
  uint64_t launches = 0, ops = 0;
  uint64_t sharedCycles = 0, matrixCycles = 0, copyCycles = 0;
  uint64_t requests = 0, sectors = 0, copyRequests = 0, copySectors = 0;
  void add(const KernelStats &other);
};

struct Block {
  Launch *launch = nullptr;
  uint32_t id[3] = {};
  uint64_t linear = 0;
  uint32_t ownStamp = 0;
  bool acquired = false, fenced = false; // met other blocks by atomics
  KernelStats stats;
  SharedMemory shared;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  std::mt19937 random;

  void start(Launch &launch, uint64_t linear);
  void run();
  bool arrive(Warp &warp, const Op &op, uint32_t id, uint32_t threads,
              bool blocks);
  // Everything that a warp's lanes did so far is seen by its other lanes.
  void syncWarp(uint32_t warp) { shared.syncWarp(warp); }

private:
  void complete(uint32_t id);
  [[noreturn]] void stuck();
};

struct Launch {
  const Source *source = nullptr;
  const Code *code = nullptr;
  const uint8_t *pool = nullptr;
  Arena *arena = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0, dynamicShared = 0, dynamicAt = 0;
  uint32_t localStride = 0;
  std::vector<std::pair<uint32_t, uint32_t>> sharedVariables;
  std::vector<uint8_t> params;
  uint32_t stampBase = 0;
  uint64_t seed = 1, limit = 0;
  bool countAccesses = false, races = true;
  KernelStats stats;

  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  void run(); // throws Error
};

// The number that an environment variable holds.
uint64_t setting(const char *name, uint64_t otherwise);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_MACHINE_H
