//===- RunTensors.h - Where the tensors of a run lie ----------------------===//
//
// Kernels use a host's array where it is, or a copy in memory of the session:
// on a GPU always; on a CPU where vectors read past its end could touch a page
// that is not there, for integers, so that they stay what was checked, and for
// an output that overlaps another tensor of the call, since kernels may read
// and write in any order. A host's array may be unaligned: kernels' moves are.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_CORE_RUNTENSORS_H
#define GPTC_RUNTIME_CORE_RUNTENSORS_H

#include "Core.h"

namespace gptc::core {

/// A tensor of an entry at the sizes of one run.
struct RunTensor {
  char *host; ///< null: an output that is not asked for
  uint64_t bytes;
  bool checked; ///< kernels rely on the values, which others may change
};

/// The inputs, then the outputs.
struct RunTensors {
  const RunTensor *tensors; ///< [inputs + outputs]
  void **places;            ///< [inputs + outputs], where kernels find them
  int32_t inputs, outputs;
  int32_t count() const { return inputs + outputs; }
};

/// Sets places. The session's memory for copies grows as needed; false if there
/// is none, which Queue or the message says.
bool placeTensors(Session &session, const RunTensors &run);
/// Copies what is not used where it is, before and after the kernels.
void copyInputs(Session &session, const RunTensors &run);
void copyOutputs(Session &session, const RunTensors &run);

} // namespace gptc::core

#endif // GPTC_RUNTIME_CORE_RUNTENSORS_H
