//===- Json.cpp - Fuzzes config.json: the parser and its typed reads ------===//
#include "gptc/Checkpoint/Json.h"
#include "Fuzz.h"

using namespace gptc::checkpoint;

static void readAll(const json::Reader &reader, unsigned depth) {
  const json::Object *members = reader.value().asObject();
  if (!members || depth > 64)
    return;
  // Keys are found linearly; a few hundred of them show all there is.
  size_t left = 256;
  for (const json::Member &member : *members) {
    if (left-- == 0)
      break;
    member.value.describe();
    auto check = [](const auto &read) {
      if (!read)
        fuzz::requireMessage(read.error().message);
      return bool(read);
    };
    check(reader.integer(member.key));
    check(reader.integerOr(member.key, 1));
    check(reader.real(member.key));
    check(reader.string(member.key));
    check(reader.boolean(member.key));
    check(reader.array(member.key));
    auto child = reader.child(member.key);
    if (check(child))
      readAll(*child, depth + 1);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto value = json::parse(fuzz::text(data, size), "config.json");
  if (!value) {
    fuzz::requireMessage(value.error().message);
    return 0;
  }
  readAll(json::Reader(*value, "config.json"), 0);
  return 0;
}
