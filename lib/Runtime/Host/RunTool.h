//===- RunTool.h - The parts of gptc-run ----------------------------------===//
#ifndef GPTC_LIB_RUNTIME_HOST_RUNTOOL_H
#define GPTC_LIB_RUNTIME_HOST_RUNTOOL_H

#include "gptc/Runtime/Host/Options.h"
#include "gptc/Runtime/Host/Package.h"

namespace gptc::host {

/// What gptc-run was asked for, checked as far as the command line goes.
struct RunRequest {
  std::string folder;
  std::optional<std::string> text, chat;
  std::vector<int32_t> tokens, split;
  std::string logits; ///< path, or empty
  std::string entry, inputs, outputs;
  int64_t generate = 128, threads = 0, topK = 0, seed = 0;
  double temperature = 0, topP = 1;
  bool printTokens = false, tokenize = false, ignoreEnd = false;
};

/// False with a message: exit status 1.
bool runText(const RunRequest &request, const Package &package,
             std::string &error);
bool runEntry(const RunRequest &request, const Package &package,
              std::string &error);

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_RUNTOOL_H
