//===- Driver.cpp - the compiler as a program -----------------------------===//
//
// A crash or a pass that fails silently is an internal error: one line names
// the phase and a reproducer, the model below the command that compiles it.
//
//===----------------------------------------------------------------------===//
#include "gptc/Driver/Driver.h"
#include "Phases.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Import/WriteFile.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <stdlib.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;

#ifndef GPTC_VERSION
#define GPTC_VERSION "0"
#endif

std::string gptc::shellQuoted(StringRef word) {
  auto harmless = [](char c) {
    return llvm::isAlnum(c) || StringRef("-_=+,./:@%").contains(c);
  };
  if (!word.empty() && llvm::all_of(word, harmless))
    return word.str();
  std::string text = "'";
  for (char c : word)
    if (c == '\n' || c == '\r')
      text += c == '\n' ? R"('$'\n'')" : R"('$'\r'')";
    else if (c == '\'')
      text += R"('\'')";
    else
      text += c;
  return text + "'";
}

/// An empty file in the temporary folder; empty if there can be none.
static std::string newReproducer() {
  llvm::SmallString<256> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, "gptc-reproducer-XXXXXX.mlir");
  std::string name = path.str().str();
  int file = ::mkstemps(name.data(), strlen(".mlir"));
  if (file < 0)
    return "";
  ::close(file);
  return name;
}

/// Writes the model with a command that compiles it as `options` say, from the
/// same folder.
static llvm::Error writeReproducer(const Options &options,
                                   const Compilation &compilation,
                                   StringRef program, StringRef file) {
  llvm::SmallString<256> folder, path(file);
  llvm::sys::fs::current_path(folder);
  llvm::sys::fs::make_absolute(path);
  std::string text = "// cd " + shellQuoted(folder) + " && " +
                     shellQuoted(program) + ' ' + shellQuoted(path);
  for (const std::string &arg : options.others)
    text += ' ' + shellQuoted(arg);
  if (!compilation.checkpointPath.empty())
    text += " --checkpoint=" + shellQuoted(compilation.checkpointPath);
  return writeFile(file, text + '\n' + compilation.source);
}

static int compile(const Options &options, StringRef program) {
  Compilation compilation(options);
  Diagnostics &diagnostics = compilation.diagnostics;
  if (llvm::sys::fs::equivalent(options.input, options.reproducer)) {
    diagnostics.error("--reproducer: expected another file than the model");
    return 2;
  }
  llvm::CrashRecoveryContext::Enable();
  bool ok = false;
  llvm::CrashRecoveryContext guard;
  bool survived = guard.RunSafely([&] { ok = compilation.run(); });
  compilation.abandon();
  bool internal = !survived || (!ok && compilation.internal);

  std::string file = options.reproducer;
  if (file.empty() && internal)
    file = newReproducer();
  if (!file.empty()) {
    if (auto error = writeReproducer(options, compilation, program, file)) {
      diagnostics.error(llvm::toString(std::move(error)));
      file.clear();
      ok = false;
    }
  }
  if (!internal)
    return ok ? 0 : compilation.unproven ? 3 : 1;
  std::string what = !survived                    ? "crashed"
                     : compilation.reason.empty() ? "failed without saying why"
                                                  : compilation.reason;
  what += file.empty() ? "; no reproducer could be written"
                       : "; please report it with the reproducer " + file;
  diagnostics.say("internal error: the phase '" + compilation.running + "' " +
                  what);
  if (!survived)
    ::_exit(70); // no destructor: anything may be broken
  return 70;
}

static bool knowsMarch(const Options &options, std::string &error) {
  if (options.action != Options::Action::Compile)
    return true;
  if (options.cuda)
    return lookupCudaTarget(options.march, error).has_value();
  if (lookupTargets(options.march, error, *options.precision))
    return true;
  if (StringRef(options.march).starts_with("sm_"))
    error = "-march=" + options.march + ": expected --target=cuda with it";
  return false;
}

int gptc::driverMain(int argc, const char *const *argv) {
  llvm::ArrayRef<const char *> args(argv + 1, argc > 0 ? argc - 1 : 0);
  Options options;
  std::string error;
  if (!parseOptions(args, options, error) || !knowsMarch(options, error)) {
    Diagnostics().error(error);
    return 2;
  }
  switch (options.action) {
  case Options::Action::Help:
    llvm::outs() << helpText();
    return 0;
  case Options::Action::Version:
    llvm::outs() << "gptc " GPTC_VERSION "\n";
    return 0;
  case Options::Action::ListTargets:
    for (const auto &names : {targetNames(), cudaTargetNames()})
      for (const std::string &target : names)
        llvm::outs() << target << '\n';
    return 0;
  case Options::Action::ListFusions:
    for (StringRef fusion : fusionNames())
      llvm::outs() << fusion << '\n';
    return 0;
  case Options::Action::Compile:
    return compile(options, argv[0]);
  }
  return 70;
}
