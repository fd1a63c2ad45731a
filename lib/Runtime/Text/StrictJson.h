//===- StrictJson.h - JSON from files that may be hostile -----------------===//
//
// Refuses duplicate keys (which of two values counts would be a guess), more
// than 64 levels and anything that is not JSON in UTF-8. Never throws.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_STRICTJSON_H
#define GPTC_LIB_RUNTIME_TEXT_STRICTJSON_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gptc::text {

/// `what` names the file in messages.
std::optional<nlohmann::json> parseStrictJson(std::string_view bytes,
                                              std::string_view what,
                                              std::string &error);

/// Members of objects without exceptions: null (a shared constant) or the
/// fallback where `value` is no object, has no such member, or the member has
/// another type.
const nlohmann::json &member(const nlohmann::json &value, const char *key);
std::string_view stringMember(const nlohmann::json &value, const char *key);
bool boolMember(const nlohmann::json &value, const char *key, bool fallback);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_STRICTJSON_H
