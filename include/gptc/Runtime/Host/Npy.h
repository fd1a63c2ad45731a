//===- Npy.h - NumPy's .npy and .npz files --------------------------------===//
//
// Reads .npy versions 1 to 3, C order, little-endian f4, f8, i4, i8 (and u1,
// b1 as integers), and .npz archives (zip; stored or deflated; no zip64).
// Floats become f32, integers i32. Writes f32 and i32, version 1, stored.
//
// Refuses other element types, Fortran order, integers that do not fit i32,
// sizes that disagree with the bytes present, damaged archives (CRC), more
// than 8 dimensions. Nothing is allocated that the file could not hold.
//
// Formats: numpy.lib.format; PKWARE APPNOTE 6.3.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_NPY_H
#define GPTC_RUNTIME_HOST_NPY_H

#include "gptc/Runtime/gptc.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gptc::host {

/// A dense tensor of f32 or i32 with its own memory.
struct Array {
  std::string name;
  gptc_dtype dtype = GPTC_F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
  /// The element type in the file that it was read from ("float64").
  std::string_view stored;

  /// A view for the ABI; lives as long as the array.
  gptc_tensor tensor();
};

std::optional<Array> parseNpy(std::span<const uint8_t> bytes,
                              std::string &error);
/// The arrays of an .npz in the order of its directory, named without ".npy".
/// With `wanted` only those of these names; the rest is not even unpacked, its
/// names go to `others`.
std::optional<std::vector<Array>>
parseNpz(std::span<const uint8_t> bytes, std::string &error,
         std::span<const std::string> wanted = {},
         std::vector<std::string> *others = nullptr);

/// Magic, version and header of an .npy, a multiple of 64 bytes; data follows.
std::string npyHeader(gptc_dtype dtype, std::span<const int64_t> shape);
std::vector<uint8_t> serializeNpz(std::span<const Array> arrays);

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_NPY_H
