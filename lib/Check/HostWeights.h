//===- HostWeights.h - made-up weights of a host ----------------*- C++ -*-===//
//
// A model whose weights lie in no file gets them from the program that opens
// its package. For a check any weights do: fixed pseudo-random ones are made
// and given to the package and to the reference alike.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECK_HOSTWEIGHTS_H
#define GPTC_LIB_CHECK_HOSTWEIGHTS_H

#include "gptc/Package/PackageModel.h"
#include "gptc/Reference/Weights.h"
#include "gptc/Runtime/Host/Npy.h"

namespace gptc::check {

struct HostWeights {
  std::vector<host::Array> arrays;
  reference::NamedWeights tensors;
};

/// Weights for every extern global; nothing when one lies in a file or brings
/// its value, or when there are none.
std::optional<HostWeights> makeHostWeights(const PackageModel &plan);

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_HOSTWEIGHTS_H
