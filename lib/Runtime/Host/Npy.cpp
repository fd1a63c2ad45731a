//===- Npy.cpp - One .npy file --------------------------------------------===//

#include "gptc/Runtime/Host/Npy.h"
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

using namespace gptc::host;

static constexpr std::string_view magic{"\x93NUMPY", 6};

gptc_tensor Array::tensor() {
  gptc_tensor t{};
  t.name = name.c_str();
  t.dtype = dtype;
  t.rank = static_cast<int32_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    t.shape[i] = shape[i];
  t.data = data.data();
  t.capacity_bytes = data.size();
  return t;
}

/// The text after `'key':` in the header's dictionary, spaces skipped.
static std::optional<std::string_view> valueOf(std::string_view header,
                                               std::string_view key) {
  size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos)
    return std::nullopt;
  header.remove_prefix(at + key.size() + 3);
  size_t begin = header.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : header.substr(begin);
}

/// "(2, 3)", "(5,)", "()".
static bool parseShape(std::string_view text, std::vector<int64_t> &shape) {
  if (!text.starts_with('('))
    return false;
  text.remove_prefix(1);
  while (!text.starts_with(')')) {
    int64_t size;
    auto [end, code] =
        std::from_chars(text.data(), text.data() + text.size(), size);
    if (code != std::errc() || size < 0 || shape.size() == 8)
      return false;
    shape.push_back(size);
    text.remove_prefix(end - text.data());
    while (text.starts_with(',') || text.starts_with(' '))
      text.remove_prefix(1);
    if (text.empty())
      return false;
  }
  return true;
}

namespace {
template <typename T> T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Converts `count` elements of type From to type To, if all of them fit.
template <typename From, typename To>
bool convert(const uint8_t *from, size_t count, std::vector<uint8_t> &out) {
  out.resize(count * sizeof(To));
  for (size_t i = 0; i < count; ++i) {
    From value = load<From>(from + i * sizeof(From));
    if constexpr (std::is_same_v<From, int64_t>)
      if (value != static_cast<int32_t>(value))
        return false;
    To to = static_cast<To>(value);
    if constexpr (std::is_same_v<From, double>)
      if (std::isfinite(value) && !std::isfinite(to))
        return false;
    std::memcpy(out.data() + i * sizeof(To), &to, sizeof(To));
  }
  return true;
}

struct ElementType {
  std::string_view descr, name;
  size_t bytes;
  gptc_dtype dtype;
  bool (*convert)(const uint8_t *, size_t, std::vector<uint8_t> &);
};
constexpr ElementType elementTypes[] = {
    {"<f4", "float32", 4, GPTC_F32, convert<float, float>},
    {"<f8", "float64", 8, GPTC_F32, convert<double, float>},
    {"<i4", "int32", 4, GPTC_I32, convert<int32_t, int32_t>},
    {"<i8", "int64", 8, GPTC_I32, convert<int64_t, int32_t>},
    {"|u1", "uint8", 1, GPTC_I32, convert<uint8_t, int32_t>},
    {"|b1", "bool", 1, GPTC_I32, convert<uint8_t, int32_t>},
};
} // namespace

std::optional<Array> gptc::host::parseNpy(std::span<const uint8_t> bytes,
                                          std::string &error) {
  if (bytes.size() < 12 ||
      std::memcmp(bytes.data(), magic.data(), magic.size())) {
    error = "not an .npy file: expected it to start with \\x93NUMPY";
    return std::nullopt;
  }
  // Version 1 has a 16-bit header length, later ones 32 bits.
  uint8_t version = bytes[6];
  size_t begin = version == 1 ? 10 : 12;
  size_t length = version == 1 ? load<uint16_t>(bytes.data() + 8)
                               : load<uint32_t>(bytes.data() + 8);
  if (version < 1 || version > 3 || length > bytes.size() - begin) {
    error = fmt::format("expected .npy version 1 to 3 with a whole header, got "
                        "version {} and {} of {} header bytes",
                        version, bytes.size() - begin, length);
    return std::nullopt;
  }
  std::string_view header(reinterpret_cast<const char *>(bytes.data()) + begin,
                          length);
  auto descr = valueOf(header, "descr");
  auto order = valueOf(header, "fortran_order");
  auto shapeText = valueOf(header, "shape");
  Array array;
  if (!descr || !order || !shapeText || !parseShape(*shapeText, array.shape)) {
    error = "expected an .npy header with descr, fortran_order and a shape of "
            "at most 8 dimensions";
    return std::nullopt;
  }
  if (!order->starts_with("False") && array.shape.size() > 1) {
    error = "expected C order, got Fortran order; save "
            "numpy.ascontiguousarray(x)";
    return std::nullopt;
  }
  const ElementType *type = nullptr;
  for (const ElementType &candidate : elementTypes)
    if (descr->size() > 4 && descr->substr(1, 3) == candidate.descr &&
        (*descr)[4] == descr->front())
      type = &candidate;
  if (!type) {
    error = fmt::format("expected elements <f4, <f8, <i4, <i8, |u1 or |b1, got "
                        "{}",
                        descr->substr(0, descr->find(',')));
    return std::nullopt;
  }
  const uint8_t *data = bytes.data() + begin + length;
  size_t present = bytes.size() - begin - length, count = 1;
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(count, static_cast<size_t>(size), &count))
      count = std::numeric_limits<size_t>::max();
  if (count > present / type->bytes || count * type->bytes != present) {
    error = fmt::format("expected {} elements of {} bytes, got {} bytes", count,
                        type->bytes, present);
    return std::nullopt;
  }
  array.dtype = type->dtype;
  array.stored = type->name;
  if (!type->convert(data, count, array.data)) {
    error = fmt::format("expected {}", type->dtype == GPTC_F32
                                           ? "numbers that f32 can hold"
                                           : "integers that fit 32 bits");
    return std::nullopt;
  }
  return array;
}

std::string gptc::host::npyHeader(gptc_dtype dtype,
                                  std::span<const int64_t> shape) {
  std::string dims;
  for (int64_t size : shape)
    dims += fmt::format("{}, ", size);
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.size() == 1)
    dims.pop_back();
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                  dtype == GPTC_I32 ? "<i4" : "<f4", dims);
  // The data begins at a multiple of 64 bytes, the header ends in a newline.
  size_t total = (10 + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.resize(total - 11, ' ');
  dictionary += '\n';
  std::string text(magic);
  text += '\1';
  text += '\0';
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}
