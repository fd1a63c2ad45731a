//===- Checksum.cpp - The checksum of a weights file ----------------------===//
//
// Per 64-byte block: each of the eight little-endian words is multiplied by its
// own odd constant, the products are rotated by their own amount and added; the
// sum is xored into the state, which is multiplied by an odd constant, rotated
// and advanced. Each of these steps is a bijection of one word while the others
// stay, so a change confined to one word of a block is always found. The last
// block is padded with zeros and its byte count added to the sum. The products
// are independent, so it runs at memory speed. It finds accidents, not attacks.
// Like WeightLayout.cpp, also compiled into every package.
//
//===----------------------------------------------------------------------===//

#include "gptc/Format/WeightLayout.h"
#include <string.h>

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

extern "C" uint64_t gptc_checksum(uint64_t state, const void *data,
                                  size_t bytes) {
  static const uint64_t odd[8] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u,
                                  0x94d049bb133111ebu, 0xd6e8feb86659fd93u,
                                  0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u,
                                  0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu};
  const char *from = static_cast<const char *>(data);
  while (bytes) {
    uint64_t words[8] = {};
    size_t take = bytes < 64 ? bytes : 64;
    memcpy(words, from, take);
    uint64_t sum = take < 64 ? take : 0;
    for (int i = 0; i < 8; ++i)
      sum += rotate(words[i] * odd[i], 5 + 7 * i);
    state = rotate((state ^ sum) * odd[0], 29) + odd[1];
    from += take;
    bytes -= take;
  }
  return state;
}
