//===- ToySizes.h - Sizes of the toy package ------------------------------===//
//
// Beside ToyModel.h, for its kernels of a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_TEST_UNIT_CORE_TOYSIZES_H
#define GPTC_TEST_UNIT_CORE_TOYSIZES_H

#include <stdint.h>

namespace toy {

/// D features, V vocabulary, NR features of a weight panel.
constexpr int64_t D = 8, V = 20, context = 24, page = 4, layers = 2, NR = 16;
constexpr int64_t blockBytes = 2 * D * page * 4;

} // namespace toy

#endif // GPTC_TEST_UNIT_CORE_TOYSIZES_H
