//===- Unicode.h - White space and normal form C --------------------------===//
//
// White space is Unicode's White_Space, by which the tokenizers' `\s` goes, or
// Python's str.isspace, by which templates trim (it adds U+001C to U+001F).
// Normal form C follows Unicode Standard Annex #15 with the tables of Unicode
// 14 (NfcTables.inc, written by nfc_tables.py). Bytes that are no UTF-8 are
// kept and combine with nothing.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_UNICODE_H
#define GPTC_LIB_RUNTIME_TEXT_UNICODE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace gptc::text {

bool isWhiteSpace(uint32_t codePoint);
bool isPythonSpace(uint32_t codePoint);

/// `text` without the characters at its left, right end for which `drop`
/// holds. Linear in what is dropped.
std::string_view trimLeft(std::string_view text,
                          bool (*drop)(uint32_t) = isWhiteSpace);
std::string_view trimRight(std::string_view text,
                           bool (*drop)(uint32_t) = isWhiteSpace);

/// True if `text` is certainly in normal form C: all of it is below U+0300.
/// (No such character takes part in a composition but as its first half.)
bool isCertainlyNfc(std::string_view text);

/// `text` in normal form C, in O(n log m) for m neighbouring marks.
std::string toNfc(std::string_view text);

void appendUtf8(std::string &text, uint32_t codePoint);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_UNICODE_H
