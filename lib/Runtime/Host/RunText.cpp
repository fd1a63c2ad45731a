//===- RunText.cpp - gptc-run: a prompt and its continuation --------------===//
//
// Text goes to standard output token by token, statistics to standard error.
// The end-of-text token ends the output and is not part of it, unless it is to
// be ignored. Generation also ends when the context is full. Instead, the
// prompt's ids can be printed, which needs no weights.
//
//===----------------------------------------------------------------------===//

#include "RunTool.h"
#include "gptc/Runtime/Host/Files.h"
#include "gptc/Runtime/Host/Generation.h"
#include "gptc/Runtime/Host/Npy.h"
#include "gptc/Runtime/Text/ChatTemplate.h"
#include "gptc/Runtime/Text/Sampler.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace gptc::host;
namespace text = gptc::text;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The prompt as token ids.
std::optional<std::vector<int32_t>>
promptTokens(const RunRequest &request, const text::Tokenizer *tokenizer,
             std::string &error) {
  if (!request.text && !request.chat)
    return request.tokens;
  if (request.text)
    return tokenizer->encodePrompt(*request.text, error);
  auto format = text::ChatTemplate::create(tokenizer->data(), error);
  if (!format)
    return std::nullopt;
  text::ChatMessage message{"user", *request.chat};
  return format->encode(*tokenizer, std::span(&message, 1), true, error);
}

/// False with `error` where the package cannot take the prompt.
bool checkPrompt(const RunRequest &request, const gptc_info &info,
                 std::span<const int32_t> prompt, std::string &error) {
  auto count = static_cast<int64_t>(prompt.size());
  for (int64_t i = 0; i < count; ++i) {
    int32_t id = prompt[static_cast<size_t>(i)];
    if (id >= 0 && id < info.vocab)
      continue;
    bool made = request.text || request.chat;
    error = fmt::format(
        "{}token {}: expected an id from 0 to {}, the vocabulary of {}, got "
        "{}; {}",
        made ? "the prompt's " : "option '--tokens': ", i, info.vocab - 1,
        request.folder, id,
        made ? "import the model with the tokenizer of its checkpoint"
             : "give ids of the model's own tokenizer (--prompt TEXT "
               "--tokenize prints them)");
    return false;
  }
  if (count > info.context) {
    error = fmt::format("the prompt has {} tokens: expected at most {}, the "
                        "context length",
                        count, info.context);
    return false;
  }
  return true;
}

/// Writes tokens as they come; false with `error` where they cannot be written.
class Printer {
public:
  Printer(const text::Tokenizer *tokenizer, bool ids) {
    if (!ids && tokenizer)
      decoder.emplace(*tokenizer);
  }
  bool token(int32_t id, std::string &error) {
    return put(decoder ? decoder->push(id)
                       : fmt::format("{}{}", count++ ? "," : "", id),
               error);
  }
  bool finish(std::string &error) {
    return put((decoder ? decoder->finish() : "") + "\n", error);
  }

private:
  std::optional<text::StreamDecoder> decoder;
  int64_t count = 0;
};

/// Writes [T, vocab] f32, rows as they come, and renames the file at the end.
std::optional<OutputFile> beginLogits(const std::string &path, int64_t count,
                                      int64_t vocab, std::string &error) {
  auto file = OutputFile::create(path, error);
  const int64_t shape[] = {count, vocab};
  std::string header = npyHeader(GPTC_F32, shape);
  if (!file || !file->write(header.data(), header.size(), error))
    return std::nullopt;
  return file;
}

/// The first token comes from the prompt's step, each other from one of its
/// own.
void printStatistics(int64_t promptCount, double promptSeconds, int64_t count,
                     double seconds) {
  auto rate = [](int64_t tokens, double s) { return s > 0 ? tokens / s : 0; };
  say(fmt::format("prompt: {} tokens in {:.3f} s ({:.1f} tokens/s); generated: "
                  "{} tokens in {:.3f} s ({:.1f} tokens/s)\n",
                  promptCount, promptSeconds, rate(promptCount, promptSeconds),
                  count, seconds,
                  rate(std::max<int64_t>(count - 1, 0), seconds)));
}

} // namespace

static bool generate(const RunRequest &request, const gptc_info &info,
                     const text::Tokenizer *tokenizer, Generation &generation,
                     int64_t &count, std::string &error) {
  auto sampler = text::Sampler::create({static_cast<float>(request.temperature),
                                        static_cast<int32_t>(request.topK),
                                        static_cast<float>(request.topP),
                                        static_cast<uint64_t>(request.seed)},
                                       error);
  if (!sampler)
    return false;
  Printer printer(tokenizer, request.printTokens);
  bool good = true;
  for (count = 0; count < request.generate;) {
    auto token = sampler->sample(generation.lastLogits(), error);
    if (!(good = token.has_value()))
      break;
    bool end = *token == info.eos ||
               (tokenizer && tokenizer->isEndOfGeneration(*token));
    if (end && !request.ignoreEnd)
      break;
    if (!printer.token(*token, error))
      return false;
    if (++count == request.generate)
      break;
    if (generation.length() == info.context) {
      say(fmt::format("gptc-run: note: the context of {} tokens is full\n",
                      info.context));
      break;
    }
    if (!(good = generation.step(std::span(&*token, 1), false, error)))
      break;
  }
  std::string unwritten;
  if (!printer.finish(unwritten) && good)
    error = unwritten;
  return good && unwritten.empty();
}

bool gptc::host::runText(const RunRequest &request, const Package &package,
                         std::string &error) {
  const gptc_api &api = package.api();
  const gptc_info &info = package.info();
  if (info.context <= 0) {
    error = fmt::format("{}: the package has no stepping entry; run one with "
                        "--entry",
                        request.folder);
    return false;
  }
  // Ids alone can be run without a tokenizer, but not printed as text.
  std::optional<text::Tokenizer> tokenizer;
  bool textIn = request.text || request.chat;
  bool textOut =
      request.generate > 0 && !request.printTokens && !request.tokenize;
  if (textIn || textOut) {
    tokenizer = package.tokenizer(error);
    if (!tokenizer) {
      error +=
          textIn ? "; give the prompt with --tokens" : "; add --print-tokens";
      return false;
    }
  }
  const text::Tokenizer *known = tokenizer ? &*tokenizer : nullptr;
  auto prompt = promptTokens(request, known, error);
  if (!prompt)
    return false;
  auto count = static_cast<int64_t>(prompt->size());
  if (count == 0 && info.bos >= 0) {
    prompt->push_back(static_cast<int32_t>(info.bos));
    count = 1;
  }
  if (count == 0) {
    error = "the prompt is empty: expected a token or more";
    return false;
  }
  if (request.tokenize)
    return put(fmt::format("{}\n", fmt::join(*prompt, ",")), error);
  if (!checkPrompt(request, info, *prompt, error))
    return false;
  auto pieces = promptPieces(count, stepTokens, request.split, error);
  if (!pieces) {
    error = "option '--split': " + error;
    return false;
  }

  auto opened = package.open(nullptr, error);
  if (!opened)
    return false;
  Handle<gptc_model> model(api, *opened);
  gptc_limits limits{};
  limits.size = sizeof(limits);
  limits.tokens = *std::ranges::max_element(*pieces);
  limits.rows = request.logits.empty() ? 1 : limits.tokens;
  int64_t most = std::min(info.context, count + request.generate);
  if (info.page > 0)
    limits.pages = (most + info.page - 1) / info.page;
  limits.threads = static_cast<int32_t>(request.threads);
  auto session = openSession(api, model.get(), limits, error);
  if (!session)
    return false;

  Generation generation(api, session->get());
  std::optional<OutputFile> logits;
  Generation::RowSink sink;
  if (!request.logits.empty()) {
    logits = beginLogits(request.logits, count, info.vocab, error);
    if (!logits)
      return false;
    sink = [&](std::span<const float> rows, std::string &why) {
      return logits->write(rows.data(), rows.size_bytes(), why);
    };
  }
  double begin = now();
  if (!generation.prompt(*prompt, *pieces, sink, error))
    return false;
  double prompted = now();
  if (logits && !logits->commit(error))
    return false;
  int64_t generated = 0;
  double generating = now();
  if (request.generate > 0 &&
      !generate(request, info, known, generation, generated, error))
    return false;
  printStatistics(count, prompted - begin, generated, now() - generating);
  return true;
}
