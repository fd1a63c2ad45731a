//===- ToyModel.h - A hand-written package for tests of the runtime -------===//
//
// Step entry: token t at position p becomes x = table[t] + bias * p; layer l
// caches (l + 1) * x, and h = sum over both layers and all keys j <= p of
// (j + 1) * key_j; logits = table h. All numbers are small integers, so that
// every order of summation gives the same f32.
// Plain entry "gather": y[i] = table[index[i]] + x[i], x [n, 8] and index [n].
//
// T tokens, D features, V vocabulary.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_TEST_UNIT_CORE_TOYMODEL_H
#define GPTC_TEST_UNIT_CORE_TOYMODEL_H

#include "ToySizes.h"
#include "gptc/Runtime/gptc.h"
#include <cstdint>
#include <vector>

namespace toy {

inline float tableAt(int64_t token, int64_t d) {
  return float((token * 3 + d * 5) % 7 - 3);
}
inline float biasAt(int64_t d) { return float(d % 3); }

/// Logits after the last of `tokens`, computed from nothing.
inline std::vector<float> reference(const std::vector<int32_t> &tokens) {
  std::vector<float> h(D, 0), logits(V, 0);
  for (size_t p = 0; p < tokens.size(); ++p)
    for (int64_t d = 0; d < D; ++d)
      h[d] += 3 * float(p + 1) * (tableAt(tokens[p], d) + biasAt(d) * float(p));
  for (int64_t v = 0; v < V; ++v)
    for (int64_t d = 0; d < D; ++d)
      logits[v] += tableAt(v, d) * h[d];
  return logits;
}

/// The tensors that a host hands over, and memory for them.
struct Weights {
  std::vector<float> table, bias;
  gptc_tensor tensors[3];
  Weights();
};

/// Arguments of "gather" for one row: token 4, x of zeros.
struct Gather {
  int32_t index = 4;
  float x[D] = {}, y[D] = {};
  gptc_tensor inputs[2] = {{"index", GPTC_I32, 1, {1}, &index, 0},
                           {"x", GPTC_F32, 2, {1, D}, x, 0}};
  gptc_tensor output = {"y", GPTC_F32, 0, {}, y, sizeof(y)};

  Gather() = default;
  Gather(const Gather &) = delete; // the tensors point into it
  gptc_status run(const gptc_api &api, gptc_session *session) {
    return api.run(session, "gather", inputs, 2, &output, 1);
  }
  bool isRight() const {
    for (int64_t d = 0; d < D; ++d)
      if (y[d] != tableAt(4, d))
        return false;
    return true;
  }
};

/// The weights file that the compiler would write.
std::vector<char> weightsFile();

} // namespace toy

extern "C" {
const gptc_api *gptc_core_api(void);
/// A damaged weights file is told from a whole one by these.
extern const uint64_t toyPackageHash;
}

#endif // GPTC_TEST_UNIT_CORE_TOYMODEL_H
