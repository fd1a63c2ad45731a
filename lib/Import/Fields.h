//===- Fields.h - Typed reads that keep their first error -------*- C++ -*-===//
//
// Reads hyperparameters from config.json (json::Reader) or from GGUF metadata
// (gguf::Metadata) one line each. After the first refusal every read gives its
// neutral value; the caller tests `failed()` once, before using any of them.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_FIELDS_H
#define GPTC_IMPORT_FIELDS_H

#include "gptc/Checkpoint/Error.h"
#include "gptc/Dialect/Gpt/Numbers.h"
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

namespace gptc::importer {

template <typename Source> class Fields {
public:
  explicit Fields(const Source &source) : source(source) {}

  bool failed() const { return first.has_value(); }
  const checkpoint::Error &error() const { return *first; }
  bool has(std::string_view key) const { return source.has(key); }

  /// A size: between 1 and 2^31 - 1.
  int64_t size(std::string_view key) {
    return checkSize(key, take(source.integer(key), int64_t(1)));
  }
  int64_t sizeOr(std::string_view key, int64_t absent) {
    if (failed())
      return 1;
    return checkSize(key, take(source.integerOr(key, absent), int64_t(1)));
  }
  int64_t integerOr(std::string_view key, int64_t absent) {
    return take(source.integerOr(key, absent), absent);
  }
  /// A number above zero that kernels can divide by, in f32.
  double positive(std::string_view key) {
    return checkPositive(key, take(source.real(key), 1.0));
  }
  double positiveOr(std::string_view key, double absent) {
    return checkPositive(key, take(source.realOr(key, absent), 1.0));
  }
  /// The base of rotary frequencies.
  double ropeBaseOr(std::string_view key, double absent) {
    double base = positiveOr(key, absent);
    require(failed() || base > 1, key,
            fmt::format("expected a number above 1, got {}", base));
    return base;
  }
  /// A divisor of all rotary frequencies.
  double ropeFactor(std::string_view key) {
    double factor = take(source.real(key), 1.0);
    require(gpt::isRopeFactor(factor), key,
            fmt::format("expected a finite factor of at least {}, got {}",
                        gpt::leastRopeFactor, factor));
    return factor;
  }
  double realOr(std::string_view key, double absent) {
    return take(source.realOr(key, absent), absent);
  }
  bool booleanOr(std::string_view key, bool absent) {
    return take(source.booleanOr(key, absent), absent);
  }
  std::string stringOr(std::string_view key, std::string_view absent) {
    return take(source.stringOr(key, absent), std::string(absent));
  }

  /// Refuses with `rule` at `key`, unless something was refused before.
  void refuse(std::string_view key, std::string_view rule) {
    if (!first)
      first = source.error(key, rule);
  }
  /// Refuses unless `holds`.
  void require(bool holds, std::string_view key, std::string_view rule) {
    if (!holds)
      refuse(key, rule);
  }
  /// `whole` at key `wholeKey` must be a multiple of `part` at `partKey`.
  void requireMultiple(std::string_view wholeKey, int64_t whole,
                       std::string_view partKey, int64_t part) {
    require(failed() || whole % part == 0, wholeKey,
            fmt::format("expected a multiple of '{}' ({}), got {}", partKey,
                        part, whole));
  }

  /// The size of a head that rotates as a whole or in part. The bound keeps
  /// products of sizes within 64 bits.
  void requireRotaryHeadSize(std::string_view key, int64_t size) {
    require(failed() || (size % 2 == 0 && size <= 1 << 20), key,
            fmt::format("expected an even head size of at most 2^20 (rotary "
                        "pairs), got {}",
                        size));
  }

private:
  template <typename T> T take(checkpoint::Expected<T> read, T neutral) {
    if (read)
      return *read;
    if (!first)
      first = read.error();
    return neutral;
  }
  int64_t checkSize(std::string_view key, int64_t value) {
    if (value >= 1 && value <= INT32_MAX)
      return value;
    refuse(key, fmt::format("expected 1 to {}, got {}", INT32_MAX, value));
    return 1;
  }
  double checkPositive(std::string_view key, double value) {
    if (gpt::isDivisor(value))
      return value;
    refuse(key, fmt::format("expected a number from 1.2e-38 to 3.4e38, got {}",
                            value));
    return 1;
  }

  const Source &source;
  std::optional<checkpoint::Error> first;
};

} // namespace gptc::importer

#endif // GPTC_IMPORT_FIELDS_H
