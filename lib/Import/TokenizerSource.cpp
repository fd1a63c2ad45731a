//===- TokenizerSource.cpp - The tokenizer that lies in a checkpoint ------===//

#include "gptc/Import/TokenizerSource.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <filesystem>
#include <fmt/format.h>

using namespace gptc;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;
using checkpoint::Kind;
using checkpoint::MappedFile;
namespace fs = std::filesystem;

namespace {
using Result = Expected<std::optional<text::TokenizerData>>;
constexpr uint64_t largestFile = uint64_t(256) << 20;
} // namespace

static fs::path folderOf(const Checkpoint &checkpoint) {
  fs::path path = checkpoint.path();
  if (checkpoint.kind() == Kind::HfFolder)
    return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

static bool isFile(const fs::path &path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// The pair of GPT-2's files that lies in the folder; empty names if none.
static std::pair<const char *, const char *> gpt2Files(const fs::path &folder) {
  static constexpr std::pair<const char *, const char *> pairs[] = {
      {"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};
  for (auto [vocab, merges] : pairs)
    if (isFile(folder / vocab) && isFile(folder / merges))
      return {vocab, merges};
  return {"", ""};
}

std::string gptc::tokenizerFile(const Checkpoint &checkpoint) {
  if (checkpoint.kind() == Kind::Gguf)
    return checkpoint.metadata().has("tokenizer.ggml.model")
               ? fs::path(checkpoint.path()).filename().string()
               : "";
  fs::path folder = folderOf(checkpoint);
  if (isFile(folder / "tokenizer.json"))
    return "tokenizer.json";
  return gpt2Files(folder).first;
}

static Expected<MappedFile> openSmall(const fs::path &path) {
  auto file = MappedFile::open(path.string());
  if (file && file->size() > largestFile)
    return Error{fmt::format("{}: expected at most {} bytes, got {}",
                             path.string(), largestFile, file->size())};
  return file;
}

static Result finish(std::optional<text::TokenizerData> data,
                     const std::string &where, const std::string &error) {
  if (!data)
    return Error{where + error};
  return data;
}

/// The content of a file of the folder; empty if there is none.
static Expected<std::string> contentOf(const fs::path &path) {
  if (!isFile(path))
    return std::string();
  auto file = openSmall(path);
  if (!file)
    return file.error();
  return std::string(file->text());
}

static Result fromFolder(const fs::path &folder, std::string &why) {
  auto [vocabName, mergesName] = gpt2Files(folder);
  const bool whole = isFile(folder / "tokenizer.json");
  if (!whole && !*vocabName) {
    why = fmt::format("neither tokenizer.json nor vocab.json with merges.txt "
                      "in '{}'",
                      folder.string());
    return std::optional<text::TokenizerData>();
  }
  auto first = openSmall(folder / (whole ? "tokenizer.json" : vocabName));
  if (!first)
    return first.error();
  auto config = contentOf(folder / "tokenizer_config.json");
  if (!config)
    return config.error();
  auto chat = contentOf(folder / "chat_template.jinja");
  if (!chat)
    return chat.error();

  std::string error;
  std::optional<text::TokenizerData> data;
  if (whole) {
    data = text::tokenizerFromHuggingFace(first->text(), *config, error);
  } else {
    auto merges = openSmall(folder / mergesName);
    if (!merges)
      return merges.error();
    std::optional<std::string> inConfig = "";
    if (!config->empty())
      inConfig = text::chatTemplateOf(*config, error);
    if (inConfig)
      data = text::tokenizerFromGpt2Files(first->text(), merges->text(), error);
    if (data)
      data->chatTemplate = *inConfig;
  }
  if (data && !chat->empty())
    data->chatTemplate = *chat;
  // Messages of the text library begin with the file: "tokenizer.json: "; of
  // GPT-2's they call encoder.json and vocab.bpe by the other pair's names.
  return finish(std::move(data),
                whole || *vocabName == 'v' ? (folder / "").string()
                                           : folder.string() + ": ",
                error);
}

namespace {
/// Reads the tokenizer.* keys, keeping the first error.
class GgufReader {
public:
  explicit GgufReader(const checkpoint::gguf::Metadata &metadata)
      : metadata(metadata) {}

  std::optional<Error> first;

  std::string_view text(std::string_view key) {
    const auto *value = metadata.find(key);
    if (!value)
      return {};
    if (const auto *view = std::get_if<std::string_view>(&value->data))
      return *view;
    refuse(key, "expected a string, got " + value->describe());
    return {};
  }
  int64_t id(std::string_view key) {
    auto value = metadata.integerOr(key, -1);
    if (value)
      return *value;
    keep(value.error());
    return -1;
  }
  std::optional<bool> flag(std::string_view key) {
    if (!metadata.has(key))
      return std::nullopt;
    auto value = metadata.boolean(key);
    if (value)
      return *value;
    keep(value.error());
    return std::nullopt;
  }
  std::vector<float> reals(std::string_view key) {
    const Array *array = find(key);
    if (array && !array->isReal())
      refuse(key, "expected an array of floating-point numbers");
    if (!array || first)
      return {};
    std::vector<float> result(array->count);
    for (uint64_t i = 0; i < array->count; ++i)
      result[i] = static_cast<float>(array->realAt(i));
    return result;
  }
  std::vector<std::string_view> strings(std::string_view key) {
    if (!metadata.has(key))
      return {};
    auto value = metadata.strings(key);
    if (value)
      return (*value)->strings;
    keep(value.error());
    return {};
  }
  std::vector<int32_t> types(std::string_view key) {
    const Array *array = find(key);
    if (array && !array->isInteger())
      refuse(key, "expected an array of integers");
    if (!array || first)
      return {};
    std::vector<int32_t> result(array->count);
    for (uint64_t i = 0; i < array->count; ++i)
      result[i] = static_cast<int32_t>(array->integerAt(i));
    return result;
  }

private:
  using Array = checkpoint::gguf::Array;

  /// Null where there is none, or after an error.
  const Array *find(std::string_view key) {
    if (!metadata.has(key))
      return nullptr;
    auto value = metadata.array(key);
    if (value)
      return *value;
    keep(value.error());
    return nullptr;
  }
  void keep(Error error) {
    if (!first)
      first = std::move(error);
  }
  void refuse(std::string_view key, const std::string &rule) {
    keep(metadata.error(key, rule));
  }

  const checkpoint::gguf::Metadata &metadata;
};
} // namespace

static Result fromGguf(const Checkpoint &checkpoint, std::string &why) {
  if (!checkpoint.metadata().has("tokenizer.ggml.model")) {
    why = "no key 'tokenizer.ggml.model' in '" + checkpoint.path() + "'";
    return std::optional<text::TokenizerData>();
  }
  GgufReader reader(checkpoint.metadata());
  text::GgufTokenizer gguf;
  gguf.model = reader.text("tokenizer.ggml.model");
  gguf.pre = reader.text("tokenizer.ggml.pre");
  gguf.tokens = reader.strings("tokenizer.ggml.tokens");
  gguf.tokenTypes = reader.types("tokenizer.ggml.token_type");
  gguf.scores = reader.reals("tokenizer.ggml.scores");
  gguf.merges = reader.strings("tokenizer.ggml.merges");
  gguf.bos = reader.id("tokenizer.ggml.bos_token_id");
  gguf.eos = reader.id("tokenizer.ggml.eos_token_id");
  gguf.pad = reader.id("tokenizer.ggml.padding_token_id");
  gguf.unk = reader.id("tokenizer.ggml.unknown_token_id");
  for (const char *key :
       {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (int64_t id = reader.id(key); id >= 0)
      gguf.extraEnds.push_back(id);
  gguf.addBos = reader.flag("tokenizer.ggml.add_bos_token");
  gguf.addEos = reader.flag("tokenizer.ggml.add_eos_token");
  gguf.addSpacePrefix =
      reader.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  gguf.removeExtraSpaces =
      reader.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  gguf.hasCharacterMap =
      checkpoint.metadata().has("tokenizer.ggml.precompiled_charsmap");
  gguf.architecture = reader.text("general.architecture");
  gguf.chatTemplate = reader.text("tokenizer.chat_template");
  if (reader.first)
    return *reader.first;
  std::string error;
  return finish(text::tokenizerFromGguf(gguf, error), checkpoint.path() + ": ",
                error);
}

Result gptc::loadTokenizer(const Checkpoint &checkpoint, std::string &why) {
  if (checkpoint.kind() == Kind::Gguf)
    return fromGguf(checkpoint, why);
  return fromFolder(folderOf(checkpoint), why);
}
