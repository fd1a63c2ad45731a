//===- Options.cpp - the command line of gptc -----------------------------===//
//
// Refuses, naming the place: unknown options and values, missing values, two
// inputs, and values of later versions (other precisions, targets, weight
// formats).
//
//===----------------------------------------------------------------------===//
#include "gptc/Driver/Options.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "gptc/Fusion/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <functional>

using namespace gptc;
using llvm::StringRef;

namespace {
/// How an option takes its value.
enum class Form { Flag, Equals, Separate, OptionalEquals };

/// Applies a value; a message if it is refused.
using Apply = std::function<std::string(Options &, StringRef)>;

struct Option {
  StringRef name;
  Form form;
  StringRef value; // for --help
  StringRef help;  // none: not listed
  Apply apply;
};
} // namespace

/// "; did you mean 'x'?", or nothing.
static std::string didYouMean(StringRef name,
                              llvm::ArrayRef<std::string> names) {
  StringRef nearest = nearestName(name, names);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

/// Accepts one of `values`; names those of later versions as such.
static std::string oneOf(StringRef option, StringRef value,
                         llvm::ArrayRef<StringRef> values,
                         llvm::ArrayRef<StringRef> later = {}) {
  if (llvm::is_contained(values, value))
    return "";
  std::string list = llvm::join(values, ", ");
  if (llvm::is_contained(later, value))
    return (option + "=" + value +
            " is not supported by this version; "
            "expected " +
            list)
        .str();
  llvm::SmallVector<std::string> names(values.begin(), values.end());
  return (option + ": expected " + list + ", got '" + value + "'" +
          didYouMean(value, names))
      .str();
}

static constexpr std::pair<StringRef, Emit> emitNames[] = {
    {"gpt", Emit::Gpt},          {"step", Emit::Step},
    {"fused", Emit::Fused},      {"dot", Emit::Dot},
    {"kernels", Emit::Kernels},  {"cu", Emit::Cu},
    {"ptx", Emit::Ptx},          {"fatbin", Emit::Fatbin},
    {"mlir", Emit::Mlir},        {"llvm", Emit::Llvm},
    {"asm", Emit::Asm},          {"obj", Emit::Obj},
    {"lib", Emit::Lib},          {"header", Emit::Header},
    {"manifest", Emit::Manifest}};

static std::string applyEmit(Options &options, StringRef list) {
  llvm::SmallVector<StringRef> known;
  for (auto [name, emit] : emitNames)
    known.push_back(name);
  llvm::SmallVector<StringRef> parts;
  list.split(parts, ',');
  for (StringRef part : parts) {
    std::string error = oneOf("--emit", part, known);
    if (!error.empty())
      return error;
    for (auto [name, emit] : emitNames)
      if (name == part)
        options.emit.push_back(emit);
  }
  return "";
}

static std::string applyDisable(Options &options, StringRef list) {
  llvm::SmallVector<StringRef> known(fusionNames());
  for (StringRef name : llvm::split(list, ',')) {
    std::string error = oneOf("--disable-fusion", name, known);
    if (!error.empty())
      return error;
    options.disabledFusions.push_back(name.str());
  }
  return "";
}

static llvm::ArrayRef<Option> table() {
  using Action = Options::Action;
  auto act = [](Action action) -> Apply {
    return [action](Options &o, StringRef) {
      o.action = action;
      return "";
    };
  };
  auto text = [](std::string Options::*field) -> Apply {
    return [field](Options &o, StringRef value) {
      o.*field = value.str();
      return "";
    };
  };
  auto flag = [](bool Options::*field) -> Apply {
    return [field](Options &o, StringRef) {
      o.*field = true;
      return "";
    };
  };
  auto level = [](int n) -> Apply {
    return [n](Options &o, StringRef) {
      o.optimization = n;
      return "";
    };
  };
  static const std::vector<Option> options = {
      {"-o", Form::Separate, "DIR",
       "the package's folder; replaced if it is one", text(&Options::output)},
      {"-O0", Form::Flag, "", "no fusion", level(0)},
      {"-O2", Form::Flag, "", "every fusion (default)", level(2)},
      {"-march", Form::Equals, "CPU,...",
       "native (default), x86-64, x86-64-v2, -v3, -v4 or a CPU's name; "
       "several: all in one package, chosen when it is opened; of cuda: sm_80 "
       "(default), sm_86, sm_89",
       text(&Options::march)},
      {"--target", Form::Equals, "TARGET", "cpu (default), cuda",
       [](Options &o, StringRef value) {
         o.cuda = value == "cuda";
         return oneOf("--target", value, {"cpu", "cuda"});
       }},
      {"--precision", Form::Equals, "P",
       "arithmetic of GEMM and attention: f32 (default of cpu), bf16, "
       "int8; of cuda f32, tf32, bf16 (default), f16",
       [](Options &o, StringRef value) {
         o.precision = symbolizePrecision(value);
         return oneOf("--precision", value,
                      {"f32", "tf32", "bf16", "f16", "int8"});
       }},
      {"--weights", Form::Equals, "FORMAT",
       "how weights lie in the package: stored (default), f32",
       [](Options &o, StringRef value) {
         o.dequantize = value == "f32";
         return oneOf("--weights", value, {"stored", "f32"}, {"bf16", "int8"});
       }},
      {"--kv", Form::Equals, "FORMAT",
       "element of the KV cache: f32 (default of cpu); of cuda also bf16, f16, "
       "default the precision's",
       [](Options &o, StringRef value) {
         o.kv = value.str();
         o.kvGiven = true;
         return oneOf("--kv", value, {"f32", "bf16", "f16"});
       }},
      {"--no-weights", Form::Flag, "", "write no weights file and no tokenizer",
       flag(&Options::noWeights)},
      {"--checkpoint", Form::Equals, "PATH",
       "the checkpoint, instead of the one the model names",
       text(&Options::checkpoint)},
      {"--emit", Form::Equals, "WHAT,...",
       "gpt, step, fused, dot, kernels, mlir, llvm, asm, obj, lib, header, "
       "manifest; of cuda gpt to kernels, cu, ptx, fatbin: only these, into "
       "DIR "
       "or a single one to stdout",
       applyEmit},
      {"--disable-fusion", Form::Equals, "NAME,...", "leave fusions out",
       applyDisable},
      {"--remarks", Form::Equals, "CATEGORY,...",
       "say on stderr what was done and what was not, and why: fusion, "
       "stepping",
       [](Options &o, StringRef list) -> std::string {
         for (StringRef part : llvm::split(list, ',')) {
           std::string error = oneOf("--remarks", part, {"fusion", "stepping"});
           if (!error.empty())
             return error;
           o.remarks.push_back(part.str());
         }
         return "";
       }},
      {"--remarks-output", Form::Equals, "FILE.yaml",
       "all remarks as LLVM's optimisation records",
       text(&Options::remarksOutput)},
      {"--explain-fusion", Form::Flag, "",
       "print which ops went into which kernel, and what was left alone",
       flag(&Options::explainFusion)},
      {"--verify-fusions", Form::Flag, "",
       "evaluate every fusion beside the ops it replaced, on made-up numbers; "
       "without -o and --emit nothing else is done",
       flag(&Options::verifyFusions)},
      {"--dump-ir", Form::Equals, "DIR", "the module after every phase",
       text(&Options::dumpFolder)},
      {"--save-temps", Form::Equals, "DIR",
       "keep what the code is made of on the way: NAME.ll, .s and .o; of cuda "
       "also .cu, .ptx, .cubin and .fatbin",
       text(&Options::tempsFolder)},
      {"--timing", Form::OptionalEquals, "FILE.json",
       "seconds of every phase, on stderr or to the file",
       [](Options &o, StringRef value) {
         o.timing = true;
         o.timingFile = value.str();
         return "";
       }},
      {"--reproducer", Form::Equals, "FILE",
       "also write the model with its command line to FILE",
       text(&Options::reproducer)},
      {"--test-crash", Form::Equals, "", "", text(&Options::testCrash)},
      {"-###", Form::Flag, "", "print how nvcc would be run, and run nothing",
       flag(&Options::onlyCommands)},
      {"-v", Form::Flag, "", "say what is done, on stderr",
       flag(&Options::verbose)},
      {"--list-targets", Form::Flag, "", "the values of -march",
       act(Action::ListTargets)},
      {"--list-fusions", Form::Flag, "", "the values of --disable-fusion",
       act(Action::ListFusions)},
      {"--version", Form::Flag, "", "print the version", act(Action::Version)},
      {"--help", Form::Flag, "", "print this", act(Action::Help)},
  };
  return options;
}

std::string gptc::helpText() {
  std::string text =
      "usage: gptc MODEL.mlir -o DIR [options]\n\n"
      "Compiles a GPT, written down as a graph of gpt ops, into a package of\n"
      "CPU kernels: libraries, header, manifest and packed weights; or into\n"
      "CUDA kernels. '-' reads the model from stdin.\n\n";
  for (const Option &option : table()) {
    if (option.help.empty())
      continue;
    std::string left = option.name.str();
    if (option.form == Form::Separate)
      left += (" " + option.value).str();
    else if (option.form == Form::Equals)
      left += ("=" + option.value).str();
    else if (option.form == Form::OptionalEquals)
      left += ("[=" + option.value + "]").str();
    text += fmt::format("  {:<26} {}\n", left, option.help.str());
  }
  return text +
         "\nExit status: 0 done, 1 the input is wrong, 2 the command "
         "line is wrong, 3 a fusion is out of its bound, 70 internal error.\n";
}

/// Whether a folder is another one, or lies in it; neither need exist.
static bool isWithin(StringRef folder, StringRef other) {
  if (folder.empty() || other.empty())
    return false;
  auto whole = [](StringRef path) {
    llvm::SmallString<256> full(path);
    llvm::sys::fs::make_absolute(full);
    llvm::sys::path::remove_dots(full, /*remove_dot_dot=*/true);
    return (full + "/").str();
  };
  return StringRef(whole(folder)).starts_with(whole(other));
}

/// Options that do not go with the target.
static std::string targetConflict(Options &options) {
  if (options.march.empty())
    options.march = options.cuda ? "sm_80" : "native";
  if (!options.precision)
    options.precision =
        options.cuda ? InputPrecision::BF16 : InputPrecision::F32;
  if (!options.cuda && *options.precision != InputPrecision::F32 &&
      *options.precision != InputPrecision::BF16 &&
      *options.precision != InputPrecision::INT8)
    return fmt::format("--precision={} is not supported by this version with "
                       "--target=cpu; expected f32, bf16 or int8",
                       stringifyPrecision(*options.precision).str());
  if (options.cuda && *options.precision == InputPrecision::INT8)
    return "--precision=int8 is not supported by this version with "
           "--target=cuda; expected f32, tf32, bf16 or f16";
  if (*options.precision == InputPrecision::INT8 && options.dequantize)
    return "--weights=f32 does not go with --precision=int8, which reads "
           "weights as int8 or as they are stored in blocks; expected "
           "--weights=stored";
  if (!options.kvGiven)
    options.kv = options.cuda && *options.precision != InputPrecision::TF32
                     ? stringifyPrecision(*options.precision).str()
                     : "f32";
  if (!options.cuda && options.kv != "f32")
    return fmt::format("--kv={} is not supported by this version with "
                       "--target=cpu; expected f32",
                       options.kv);
  if (!options.cuda && options.onlyCommands)
    return "-###: expected --target=cuda; no other program is run for the cpu";
  for (Emit emit : options.emit) {
    bool ofCuda = emit >= Emit::Cu && emit <= Emit::Fatbin;
    if (emit < Emit::Cu || ofCuda == options.cuda)
      continue;
    const auto *name = llvm::find_if(
        emitNames, [&](const auto &each) { return each.second == emit; });
    return fmt::format("--emit={} {}", name->first.str(),
                       ofCuda
                           ? "expects --target=cuda"
                           : "is not supported by this version with "
                             "--target=cuda; expected gpt, step, fused, dot, "
                             "kernels, cu, ptx or fatbin");
  }
  return "";
}

bool gptc::parseOptions(llvm::ArrayRef<const char *> args, Options &options,
                        std::string &error) {
  auto fail = [&](const llvm::Twine &text) {
    error = text.str();
    return false;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef arg = args[i];
    if (!arg.starts_with("-") || arg == "-") {
      if (!options.input.empty())
        return fail("expected one model, got '" + options.input + "' and '" +
                    arg + "'");
      if (arg.empty())
        return fail("expected a model, got an empty argument");
      options.input = arg.str();
      continue;
    }
    auto [name, value] = arg.split('=');
    bool hasValue = arg.contains('=');
    const Option *option = llvm::find_if(
        table(), [&](const Option &each) { return each.name == name; });
    if (option == table().end()) {
      llvm::SmallVector<std::string> names;
      for (const Option &each : table())
        if (!each.help.empty())
          names.push_back(each.name.str());
      if (name.size() == 3 && name.starts_with("-O"))
        return fail("expected -O0 or -O2, got '" + name + "'");
      return fail("unknown option '" + name + "'" + didYouMean(name, names) +
                  "; --help lists the options");
    }
    size_t first = i;
    bool takesNext = option->form == Form::Separate ||
                     (option->form == Form::Equals && !hasValue);
    if (option->form == Form::Flag && hasValue)
      return fail(name + ": expected no value, got '" + value + "'");
    if (takesNext && !hasValue) {
      if (++i == args.size())
        return fail(name + ": expected a value (" + option->value + ")");
      value = args[i];
      hasValue = true;
    }
    if (hasValue && value.empty())
      return fail(name + ": expected a value (" + option->value +
                  "), got nothing");
    error = option->apply(options, value);
    if (!error.empty())
      return false;
    if (name != "--reproducer")
      options.others.insert(options.others.end(), args.begin() + first,
                            args.begin() + i + 1);
  }
  if (options.action != Options::Action::Compile)
    return true;
  if (options.input.empty())
    return fail("expected a model (.mlir); --help shows the usage");
  error = targetConflict(options);
  if (!error.empty())
    return false;
  if (options.emit.empty() && isWithin(options.tempsFolder, options.output))
    return fail("--save-temps: expected a folder outside of that of -o, which "
                "is replaced as a whole, got '" +
                options.tempsFolder + "'");
  if (options.output.empty() && !options.onlyReports() &&
      !options.onlyCommands &&
      (options.emit.size() != 1 || options.emit[0] == Emit::Lib))
    return fail("expected -o DIR, or a single --emit of one file; "
                "--explain-fusion and --verify-fusions report without either");
  return true;
}
