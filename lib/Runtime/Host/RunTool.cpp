//===- RunTool.cpp - gptc-run: the command line ---------------------------===//

#include "RunTool.h"
#include "gptc/Runtime/Host/Tools.h"
#include <fmt/format.h>
#include <limits>

using namespace gptc::host;

static constexpr std::string_view usage =
    "usage: gptc-run DIR (--prompt TEXT | --tokens 1,2,3 | --chat TEXT) "
    "[options]\n"
    "       gptc-run DIR --entry NAME --inputs X.npz --outputs Y.npz\n"
    "Continues a prompt with the compiled package in DIR, or runs one of its "
    "entries.\n";

static constexpr OptionSpec specs[] = {
    {"--prompt", "TEXT", "text to continue"},
    {"--chat", "TEXT", "a message to answer, in the model's chat format"},
    {"--tokens", "1,2,3", "token ids to continue; needs no tokenizer"},
    {"-n", "N", "most tokens to generate (128)"},
    {"--temperature", "T", "sample at this temperature (0: greedy)"},
    {"--top-k", "K", "sample among the K likeliest (0: all)"},
    {"--top-p", "P", "sample among the likeliest of this mass (1: all)"},
    {"--seed", "S", "of the sampler (0)"},
    {"--ignore-eos", "", "go on past the end-of-text token"},
    {"--print-tokens", "", "print comma-separated ids instead of text"},
    {"--tokenize", "", "only print the prompt's ids, in the form of --tokens"},
    {"--logits", "FILE.npy", "write the prompt's logits, float32 [T, V]"},
    {"--split", "1,4,2", "feed the prompt in pieces of these sizes"},
    {"--threads", "N", "(0: one for each CPU)"},
    {"--entry", "NAME", "run this entry instead"},
    {"--inputs", "X.npz", "its inputs by name"},
    {"--outputs", "Y.npz", "where its outputs go"},
    {"--help", "", "print this"},
    {"--version", "", "print the version"},
};

static constexpr int64_t mostInt = std::numeric_limits<int32_t>::max();

static bool readRequest(const Options &options, RunRequest &request,
                        std::string &error) {
  if (options.positional.size() != 1) {
    error = fmt::format("expected one package folder, got {} arguments",
                        options.positional.size());
    return false;
  }
  request.folder = options.positional[0];
  int prompts = 0;
  for (std::string_view name : {"--prompt", "--chat", "--tokens", "--entry"})
    prompts += options.has(name);
  if (prompts != 1) {
    error = "expected exactly one of --prompt, --tokens, --chat and --entry";
    return false;
  }
  if (options.has("--entry") && options.has("--tokenize")) {
    error = "--tokenize is for --prompt and --chat, not for --entry";
    return false;
  }
  if (options.has("--entry") &&
      !(options.has("--inputs") && options.has("--outputs"))) {
    error = "expected --inputs and --outputs with --entry";
    return false;
  }
  if (options.has("--prompt"))
    request.text = options.get("--prompt");
  if (options.has("--chat"))
    request.chat = options.get("--chat");
  request.entry = options.get("--entry");
  request.inputs = options.get("--inputs");
  request.outputs = options.get("--outputs");
  request.logits = options.get("--logits");
  request.printTokens = options.has("--print-tokens");
  request.tokenize = options.has("--tokenize");
  request.ignoreEnd = options.has("--ignore-eos");
  // Ids below 0 or beyond the vocabulary are refused when that is known.
  return options.integers("--tokens", -mostInt, mostInt, request.tokens,
                          error) &&
         options.integers("--split", 1, mostInt, request.split, error) &&
         options.integer("-n", 0, mostInt, request.generate, error) &&
         options.integer("--threads", 0, 1024, request.threads, error) &&
         options.integer("--top-k", 0, mostInt, request.topK, error) &&
         options.integer("--seed", 0, std::numeric_limits<int64_t>::max(),
                         request.seed, error) &&
         options.real("--temperature", 0, 1e6, request.temperature, error) &&
         options.real("--top-p", 0, 1, request.topP, error);
}

int gptc::host::runTool(int argc, const char *const *argv) {
  constexpr std::string_view tool = "gptc-run";
  int status;
  auto options = commandLine(tool, usage, specs, argc, argv, status);
  if (!options)
    return status;
  std::string error;
  RunRequest request;
  if (!readRequest(*options, request, error))
    return report(tool, error, 2);
  auto package = Package::load(request.folder, error);
  if (!package)
    return report(tool, error, 1);
  bool done = request.entry.empty() ? runText(request, *package, error)
                                    : runEntry(request, *package, error);
  return done ? 0 : report(tool, error, 1);
}
