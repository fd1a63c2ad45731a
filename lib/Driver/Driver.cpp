//===- Driver.cpp - the compiler as a program -----------------------------===//
//
// A crash or a pass that fails silently is an internal error: the model and the
// command line are kept in a reproducer, whose path is printed.
//
//===----------------------------------------------------------------------===//
#include "gptc/Driver/Driver.h"
#include "Phases.h"
#include "gptc/Fusion/Passes.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace gptc;

#ifndef GPTC_VERSION
#define GPTC_VERSION "0"
#endif

/// Writes the model with its command line to a new file of the temporary
/// folder.
static void writeReproducer(llvm::ArrayRef<const char *> args,
                            llvm::StringRef source) {
  int descriptor;
  llvm::SmallString<256> path;
  if (llvm::sys::fs::createTemporaryFile("gptc-reproducer", "mlir", descriptor,
                                         path)) {
    llvm::errs() << "gptc: no reproducer could be written\n";
    return;
  }
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << "// gptc " << llvm::join(args, " ") << '\n' << source;
  llvm::errs() << "gptc: internal error; please report it with the reproducer "
               << path << '\n';
}

static int compile(const Options &options, llvm::ArrayRef<const char *> args) {
  llvm::CrashRecoveryContext::Enable();
  Compilation compilation(options);
  bool ok = false;
  llvm::CrashRecoveryContext guard;
  bool survived = guard.RunSafely([&] { ok = compilation.run(); });
  if (survived && ok)
    return 0;
  if (survived && !compilation.internal)
    return 1;
  writeReproducer(args, compilation.source);
  return 70;
}

int gptc::driverMain(int argc, const char *const *argv) {
  llvm::ArrayRef<const char *> args(argv + 1, argc > 0 ? argc - 1 : 0);
  Options options;
  std::string error;
  if (!parseOptions(args, options, error) ||
      !lookupTarget(options.march, error)) {
    llvm::errs() << "gptc: error: " << error << '\n';
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
    for (const std::string &target : targetNames())
      llvm::outs() << target << '\n';
    return 0;
  case Options::Action::ListFusions:
    for (llvm::StringRef fusion : fusionNames())
      llvm::outs() << fusion << '\n';
    return 0;
  case Options::Action::Compile:
    return compile(options, args);
  }
  return 70;
}
