//===- Gpu.h - What tools ask the GPU's driver beside a package -----------===//
#ifndef GPTC_LIB_RUNTIME_HOST_GPU_H
#define GPTC_LIB_RUNTIME_HOST_GPU_H

#include "gptc/Runtime/gptc.h"
#include <cstdint>
#include <optional>
#include <string>

namespace gptc::host {

/// Whether a package's kernels run on a GPU ("sm_80").
bool isForGpu(const gptc_info &info);

/// The first GPU, its primary context current on this thread for as long as
/// this lives: packages that are opened meanwhile take it.
class Gpu {
public:
  /// Empty, with the driver's words, if there is none.
  static std::optional<Gpu> open(std::string &error);
  Gpu(Gpu &&other) noexcept;
  Gpu &operator=(Gpu &&) = delete;
  ~Gpu();

  /// "NVIDIA A100-SXM4-40GB"
  const std::string &name() const { return title; }
  /// Bytes of its memory that anybody holds; 0 if the driver does not say. A
  /// driver counts in pieces of up to 2 MiB.
  int64_t memoryUsed() const;

private:
  explicit Gpu(void *driver) : driver(driver) {}

  void *driver; ///< of dlopen; null: moved from
  std::string title;
};

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_GPU_H
