//===- LlmcBin.cpp - llm.c's model files ----------------------------------===//
//
// T context, V vocabulary, Vp padded vocabulary, L layers, C channels.
//
//===----------------------------------------------------------------------===//

#include "gptc/Checkpoint/LlmcBin.h"
#include <fmt/format.h>

using namespace gptc::checkpoint;

static constexpr uint64_t headerBytes = 256 * 4;
static constexpr int32_t magic = 20240326;

namespace {
struct Sizes {
  int64_t context, vocab, layers, heads, channels, paddedVocab;
};

class LlmcReader {
public:
  explicit LlmcReader(const MappedFile &file) : file(file) {}

  Expected<LlmcContents> read();

private:
  Expected<void> readHeader();
  Expected<void> checkLength() const;
  void add(std::string name, std::vector<int64_t> shape);
  void addLayers(std::string_view name, std::vector<int64_t> shape);

  int64_t word(size_t index) const;
  Error error(std::string_view rule) const {
    return Error{fmt::format("{}: {}", file.path(), rule)};
  }

  const MappedFile &file;
  Sizes sizes = {};
  Storage storage = Storage::F32;
  uint64_t at = headerBytes;
  LlmcContents contents;
};
} // namespace

int64_t LlmcReader::word(size_t index) const {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;)
    value = value << 8 | file.data()[4 * index + i];
  return static_cast<int32_t>(value);
}

Expected<void> LlmcReader::readHeader() {
  if (file.size() < headerBytes)
    return error(fmt::format("header: expected {} bytes, got a file of {}",
                             headerBytes, file.size()));
  if (word(0) != magic)
    return error(fmt::format("header: expected llm.c's magic number {}, got {}",
                             magic, word(0)));
  int64_t version = word(1);
  if (version != 3 && version != 5)
    return error(fmt::format("header: expected llm.c version 3 (f32) or 5 "
                             "(bf16), got {}; write it again with a newer "
                             "train_gpt2.py",
                             version));
  storage = version == 3 ? Storage::F32 : Storage::BF16;

  static constexpr std::pair<const char *, int64_t Sizes::*> fields[] = {
      {"max_seq_len", &Sizes::context},
      {"vocab_size", &Sizes::vocab},
      {"num_layers", &Sizes::layers},
      {"num_heads", &Sizes::heads},
      {"channels", &Sizes::channels},
      {"padded_vocab_size", &Sizes::paddedVocab}};
  json::Object config;
  for (size_t i = 0; i < std::size(fields); ++i) {
    auto [name, field] = fields[i];
    sizes.*field = word(2 + i);
    if (sizes.*field < 1)
      return error(fmt::format("header: {}: expected at least 1, got {}", name,
                               sizes.*field));
    config.push_back({name, json::Value(sizes.*field)});
  }
  contents.config = json::Value(std::move(config));
  if (sizes.channels % sizes.heads != 0)
    return error(fmt::format("header: channels: expected a multiple of "
                             "num_heads ({}), got {}",
                             sizes.heads, sizes.channels));
  if (sizes.paddedVocab < sizes.vocab)
    return error(fmt::format("header: padded_vocab_size: expected at least "
                             "vocab_size ({}), got {}",
                             sizes.vocab, sizes.paddedVocab));
  return {};
}

/// Before a tensor is listed, so that the list is as long as the file allows.
/// Each size is below 2^31, and C^2 L below 2^93: 128 bits hold every sum.
Expected<void> LlmcReader::checkLength() const {
  using Wide = unsigned __int128;
  Wide c = static_cast<Wide>(sizes.channels);
  Wide rows = static_cast<Wide>(sizes.paddedVocab + sizes.context);
  // 12 matrices of C x C; 4 vectors of the norms and 9 biases.
  Wide layer = 12 * c * c + 13 * c;
  Wide elements = rows * c + static_cast<Wide>(sizes.layers) * layer + 2 * c;
  Wide expected = headerBytes + elements * blockBytes(storage);
  if (expected == file.size())
    return {};
  if (expected > UINT64_MAX)
    return error("header: its sizes take more than 2^64 bytes");
  return error(
      fmt::format("expected {} bytes, which its header says, got a "
                  "file of {}; the file is {}",
                  static_cast<uint64_t>(expected), file.size(),
                  expected > file.size() ? "truncated or damaged" : "damaged"));
}

void LlmcReader::add(std::string name, std::vector<int64_t> shape) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.storage = storage;
  tensor.file = file.path();
  tensor.offset = at;
  tensor.bytes = blockBytes(storage);
  for (int64_t dimension : shape) // fits: checkLength has summed them
    tensor.bytes *= static_cast<uint64_t>(dimension);
  tensor.shape = std::move(shape);
  tensor.data = file.data() + at;
  at += tensor.bytes;
  contents.tensors.push_back(std::move(tensor));
}

void LlmcReader::addLayers(std::string_view name, std::vector<int64_t> shape) {
  for (int64_t i = 0; i < sizes.layers; ++i)
    add(fmt::format("h.{}.{}", i, name), shape);
}

Expected<LlmcContents> LlmcReader::read() {
  if (auto read = readHeader(); !read)
    return read.error();
  if (auto checked = checkLength(); !checked)
    return checked.error();
  int64_t c = sizes.channels;
  contents.tensors.reserve(4 + 12 * static_cast<size_t>(sizes.layers));
  add("wte.weight", {sizes.vocab, c});
  at += static_cast<uint64_t>(sizes.paddedVocab - sizes.vocab) *
        static_cast<uint64_t>(c) * blockBytes(storage);
  add("wpe.weight", {sizes.context, c});
  addLayers("ln_1.weight", {c});
  addLayers("ln_1.bias", {c});
  addLayers("attn.c_attn.weight", {3 * c, c});
  addLayers("attn.c_attn.bias", {3 * c});
  addLayers("attn.c_proj.weight", {c, c});
  addLayers("attn.c_proj.bias", {c});
  addLayers("ln_2.weight", {c});
  addLayers("ln_2.bias", {c});
  addLayers("mlp.c_fc.weight", {4 * c, c});
  addLayers("mlp.c_fc.bias", {4 * c});
  addLayers("mlp.c_proj.weight", {c, 4 * c});
  addLayers("mlp.c_proj.bias", {c});
  add("ln_f.weight", {c});
  add("ln_f.bias", {c});
  return std::move(contents);
}

bool gptc::checkpoint::looksLikeLlmcBin(const MappedFile &file) {
  return file.text().starts_with("\xc6\xd7\x34\x01");
}

Expected<LlmcContents> gptc::checkpoint::readLlmcBin(const MappedFile &file) {
  return LlmcReader(file).read();
}
