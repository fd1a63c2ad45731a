//===- ByteAlphabet.h - GPT-2's byte-to-unicode table ---------------------===//
//
// Vocabulary files of byte-level BPE write each byte as one printable
// character: the bytes 21-7E, A1-AC and AE-FF as themselves, the others, in
// order, as U+0100, U+0101, ... (Radford et al. 2019, encoder.py).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_BYTEALPHABET_H
#define GPTC_LIB_RUNTIME_TEXT_BYTEALPHABET_H

#include <optional>
#include <string>
#include <string_view>

namespace gptc::text {

/// The bytes that `written` stands for; empty if it has a character outside
/// the table.
std::optional<std::string> bytesFromAlphabet(std::string_view written);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_BYTEALPHABET_H
