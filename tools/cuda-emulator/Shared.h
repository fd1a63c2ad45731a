// A block's shared memory and what is known of each word: who wrote it, who
// read it, and when. Time is a clock of the block that steps at every
// synchronisation; seen[w][v] is the time up to which warp w has seen what
// warp v did. An access is in order if what it meets is not later than that.
//
// A word accessed in parts is mixed: its bytes have records of their own.
#ifndef GPTC_CUDA_EMULATOR_SHARED_H
#define GPTC_CUDA_EMULATOR_SHARED_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace emu {

struct Records {                 // of words or of bytes
  std::vector<uint32_t> written; // time of the last write
  std::vector<uint32_t> read;    // time of the last read
  std::vector<uint32_t> readers; // a bit for each warp
  std::vector<uint16_t> writer;  // thread, with atomicBit
  std::vector<uint16_t> reader;  // thread, or manyThreads
};

enum class Conflict : uint8_t {
  None,
  Outside,       // of every variable
  Uninitialised, // never written
  InFlight,      // a cp.async has not arrived
  Write,         // another thread wrote it
  Read,          // another thread read it
};

class SharedMemory {
public:
  static constexpr uint32_t mixed = ~0u, inFlight = ~0u - 1, gap = ~0u - 2,
                            lastTime = ~0u - 1024;
  static constexpr uint16_t atomicBit = 0x8000, manyThreads = 0x7fff;

  // For a new block; variables are [begin, end) in order.
  void start(const std::vector<std::pair<uint32_t, uint32_t>> &variables,
             uint32_t size, uint32_t warps);
  void syncWarp(uint32_t warp);
  void syncWarps(uint32_t warps); // a bit for each

  uint32_t size() const { return bytesUsed; }
  uint8_t *data() { return memory.data(); }

  // Notes an access of `bytes` (1, 2, or a multiple of 4, aligned) and says
  // what is wrong with it.
  Conflict load(uint32_t at, uint32_t bytes, uint32_t thread) {
    bool ok = bytes == 16  ? quickLoad<4>(at / 4, thread)
              : bytes == 8 ? quickLoad<2>(at / 4, thread)
              : bytes == 4 ? quickLoad<1>(at / 4, thread)
                           : false;
    return ok ? Conflict::None : loadSlowly(at, bytes, thread);
  }
  // value: what is to be written, or null for an atomic.
  Conflict store(uint32_t at, uint32_t bytes, uint32_t thread,
                 const void *value, bool atomic = false) {
    uint16_t who = atomic ? thread | atomicBit : thread;
    bool ok = bytes == 16  ? quickStore<4>(at / 4, thread, who)
              : bytes == 8 ? quickStore<2>(at / 4, thread, who)
              : bytes == 4 ? quickStore<1>(at / 4, thread, who)
                           : false;
    return ok ? Conflict::None : storeSlowly(at, bytes, thread, value, atomic);
  }
  // Whether all of it was written in this block (an atomic reads, too).
  bool isWritten(uint32_t at, uint32_t size) const;
  // A cp.async begins to write, and arrives.
  Conflict beginCopy(uint32_t at, uint32_t bytes, uint32_t thread);
  void endCopy(uint32_t at, uint32_t bytes, uint32_t thread);

  // What handlers need to check whole rows of words at once.
  struct Quick {
    Records &words;
    uint32_t clock, origin, limit;
  };
  Quick quick(uint32_t warp) { return {words, clock, origin, early[warp]}; }

  // The other thread of the last conflict, where it is known, or ~0u.
  uint32_t other = ~0u;
  uint32_t conflictAt = 0; // byte

private:
  // The quick ways: all words were written and read before what this warp has
  // seen of all others, or by this very thread.
  template <int n> struct Vectors {
    typedef uint32_t Words __attribute__((ext_vector_type(n)));
    typedef uint16_t Halves __attribute__((ext_vector_type(n)));
    typedef int32_t Yes __attribute__((ext_vector_type(n)));
    template <class V, class T>
    static V get(const std::vector<T> &from, uint32_t at) {
      V value;
      std::memcpy(&value, &from[at], sizeof(T) * n);
      return value;
    }
    template <class V, class T>
    static void put(std::vector<T> &to, uint32_t at, V value) {
      std::memcpy(&to[at], &value, sizeof(T) * n);
    }
    static bool all(Yes yes) {
      bool result = true;
      for (int i = 0; i < n; ++i)
        result &= yes[i] != 0;
      return result;
    }
  };
  template <int n> bool quickLoad(uint32_t word, uint32_t thread) {
    using V = Vectors<n>;
    using Words = typename V::Words;
    using Yes = typename V::Yes;
    uint32_t limit = early[thread / 32];
    Words written = V::template get<Words>(words.written, word);
    Words writer = __builtin_convertvector(
        V::template get<typename V::Halves>(words.writer, word), Words);
    Yes ok = (written - (origin + 1) < Words(limit - origin)) |
             ((writer == thread) &
              (written - (origin + 1) < Words(lastTime - origin)));
    if (!V::all(ok))
      return false;
    Words read = V::template get<Words>(words.read, word);
    Words readers = V::template get<Words>(words.readers, word);
    Words reader = __builtin_convertvector(
        V::template get<typename V::Halves>(words.reader, word), Words);
    Yes fresh = read <= limit;
    Words bit = Words(1u << (thread / 32));
    readers = fresh ? bit : readers | bit;
    reader = (fresh | (reader == thread)) ? Words(thread)
                                          : Words(uint32_t(manyThreads));
    V::put(words.read, word, Words(clock));
    V::put(words.readers, word, readers);
    V::put(words.reader, word,
           __builtin_convertvector(reader, typename V::Halves));
    return true;
  }
  template <int n>
  bool quickStore(uint32_t word, uint32_t thread, uint16_t who) {
    using V = Vectors<n>;
    using Words = typename V::Words;
    using Yes = typename V::Yes;
    uint32_t limit = early[thread / 32];
    Words written = V::template get<Words>(words.written, word);
    Words read = V::template get<Words>(words.read, word);
    Words writer = __builtin_convertvector(
        V::template get<typename V::Halves>(words.writer, word), Words);
    Words reader = __builtin_convertvector(
        V::template get<typename V::Halves>(words.reader, word), Words);
    Yes ok =
        ((written <= limit) | ((writer == thread) & (written <= lastTime))) &
        ((read <= limit) | (reader == thread));
    if (!V::all(ok))
      return false;
    V::put(words.written, word, Words(clock));
    V::put(words.writer, word, typename V::Halves(who));
    return true;
  }
  void noteRead(Records &in, uint32_t i, uint32_t thread) {
    uint32_t bit = 1u << (thread / 32);
    bool fresh = in.read[i] <= early[thread / 32];
    uint16_t was = in.reader[i];
    in.readers[i] = fresh ? bit : in.readers[i] | bit;
    in.reader[i] = fresh || was == thread ? uint16_t(thread) : manyThreads;
    in.read[i] = clock;
  }
  Conflict loadSlowly(uint32_t at, uint32_t bytes, uint32_t thread);
  Conflict storeSlowly(uint32_t at, uint32_t bytes, uint32_t thread,
                       const void *value, bool atomic);
  Conflict checkLoad(Records &in, uint32_t i, uint32_t thread);
  Conflict checkStore(Records &in, uint32_t i, uint32_t thread, bool atomic,
                      bool same);
  void mix(uint32_t word);
  void step();
  void refresh(uint32_t warp);

  std::vector<uint8_t> memory;
  Records words, bytes;
  uint32_t bytesUsed = 0, warpCount = 0;
  uint32_t clock = 1;  // what happens now
  uint32_t origin = 0; // the time before this block
  uint32_t seen[32][32] = {};
  uint32_t early[32] = {}; // least of seen[w]
};

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_SHARED_H
