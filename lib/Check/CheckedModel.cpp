//===- CheckedModel.cpp - a model beside its compiled package -------------===//
//
// The kernels are asked of the compiler itself (--emit=kernels), so that no
// second list of passes can fall behind the first.
//
//===----------------------------------------------------------------------===//

#include "CheckedModel.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Driver/Driver.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;

int gptc::check::report(const std::string &message, int status) {
  llvm::errs() << "gptc-check: error: " << message << '\n';
  return status;
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

bool TemporaryFolder::create() {
  std::error_code code =
      llvm::sys::fs::createUniqueDirectory("gptc-check", folder);
  if (code)
    report("no temporary folder: " + code.message());
  return !code;
}

std::string TemporaryFolder::path(llvm::StringRef name) const {
  llvm::SmallString<128> full(folder);
  llvm::sys::path::append(full, name);
  return full.str().str();
}

static int compiler(const std::vector<std::string> &arguments) {
  std::vector<const char *> argv{"gptc"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  return driverMain(static_cast<int>(argv.size()), argv.data());
}

int gptc::check::compilePackage(const std::string &model,
                                const std::string &checkpoint,
                                const std::string &output) {
  std::vector<std::string> arguments{model, "-o", output, "-O2"};
  if (!checkpoint.empty())
    arguments.push_back("--checkpoint=" + checkpoint);
  return compiler(arguments);
}

CheckedModel::CheckedModel()
    : context(
          [] {
            DialectRegistry registry;
            registry
                .insert<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                        math::MathDialect, tensor::TensorDialect,
                        ml_program::MLProgramDialect>();
            return registry;
          }(),
          MLIRContext::Threading::DISABLED),
      handler(std::make_unique<SourceMgrDiagnosticHandler>(sources, &context)) {
}

OwningOpRef<ModuleOp> CheckedModel::parse(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    report("'" + path + "': " + buffer.getError().message());
    return nullptr;
  }
  std::string error;
  if (!bracketDepthOk((*buffer)->getBuffer(), defaultBracketLimit, error)) {
    llvm::errs() << path << ':' << error << '\n';
    return nullptr;
  }
  // The parser reads the main buffer of a manager; diagnostics find their
  // source lines by the name of the file.
  llvm::SourceMgr one;
  one.AddNewSourceBuffer(std::move(*buffer), SMLoc());
  return parseSourceFile<ModuleOp>(one, &context);
}

/// Whether the package holds a quantised or short weight as f32.
static bool dequantizes(const nlohmann::json &manifest) {
  auto weights = manifest.find("weights");
  if (weights == manifest.end() || !weights->is_array())
    return false;
  return std::ranges::any_of(*weights, [](const nlohmann::json &weight) {
    return weight.is_object() && weight.value("layout", "") == "panel" &&
           weight.value("dtype", "") != "f32" &&
           weight.value("packed_dtype", "") == "f32";
  });
}

static std::string textOf(const nlohmann::json &from, const char *key) {
  auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>()
                                                   : std::string();
}

/// What the package was compiled with.
static PackageOptions optionsOf(const host::Package &package) {
  const nlohmann::json &manifest = package.manifest();
  PackageOptions options;
  options.name = textOf(manifest, "name");
  options.precision = package.info().precision;
  if (llvm::is_contained(cudaTargetNames(), package.info().target))
    options.gpu = package.info().target;
  options.optimization = package.info().optimization;
  options.dequantize = dequantizes(manifest);
  if (auto disabled = manifest.find("disabled_fusions");
      disabled != manifest.end() && disabled->is_array())
    for (const nlohmann::json &fusion : *disabled)
      if (fusion.is_string())
        options.disabledFusions.push_back(fusion);
  return options;
}

/// The same for the compiler's command line.
static std::vector<std::string> argumentsOf(const PackageOptions &options,
                                            const std::string &march,
                                            const std::string &kvElement) {
  std::vector<std::string> arguments{"-march=" + march,
                                     options.optimization ? "-O2" : "-O0",
                                     "--precision=" + options.precision};
  if (!options.gpu.empty())
    arguments.push_back("--target=cuda");
  if (!kvElement.empty())
    arguments.push_back("--kv=" + kvElement);
  if (options.dequantize)
    arguments.push_back("--weights=f32");
  for (const std::string &fusion : options.disabledFusions)
    arguments.push_back("--disable-fusion=" + fusion);
  return arguments;
}

int CheckedModel::makeKernels(const std::string &path,
                              const host::Package &package) {
  const nlohmann::json &manifest = package.manifest();
  // Of several levels, the one that this CPU runs.
  std::string target = package.info().target;
  std::string hash = textOf(manifest, "program_hash");
  auto lower = manifest.find("lower_levels");
  bool several = lower != manifest.end() && lower->is_array();
  if (several)
    for (const nlohmann::json &level : *lower)
      if (textOf(level, "target") == target)
        hash = textOf(level, "program_hash");
  PackageOptions options = optionsOf(package);
  auto precision = symbolizePrecision(options.precision);
  if (!precision)
    return report(package.folder() + ": unknown precision " +
                  options.precision);

  // -march=native is the level with this machine's cache sizes.
  std::string error, got;
  llvm::SmallVector<std::string> marches{target};
  if (auto native = lookupTarget("native", error, *precision);
      native && native->name == target)
    marches.insert(marches.begin(), "native");
  for (const std::string &march : marches) {
    // The host's side of a package for a GPU runs on any CPU.
    auto description =
        options.gpu.empty() ? lookupTarget(march, error, *precision)
                            : lookupTarget("x86-64", error);
    if (!description)
      return report(package.folder() + ": " + error);
    if (several)
      options.suffix = levelSuffix(*description);
    TemporaryFolder folder;
    if (!folder.create())
      return 1;
    std::vector<std::string> arguments{path, "-o", folder.path("ir"),
                                       "--emit=kernels"};
    llvm::append_range(
        arguments, argumentsOf(options, march, textOf(manifest, "kv_element")));
    if (int status = compiler(arguments))
      return status;
    planned.reset();
    std::string kernels = folder.path("ir/" + options.name + ".kernels.mlir");
    if (llvm::sys::fs::exists(kernels))
      kernelModule = parse(kernels);
    if (!kernelModule)
      return report(package.folder() + ": expected the package of a model '" +
                    options.name + "', compiled from " + path);
    FailureOr<PackageModel> plan =
        planPackage(*kernelModule, *description, options);
    if (failed(plan))
      return 1;
    planned = std::move(*plan);
    got = fmt::format("{:016x}", planned->hash);
    if (got == hash)
      return options.gpu.empty() ? 0 : planLaunches();
  }
  return report(fmt::format(
      "{}: expected a package compiled from {} by this version (program_hash "
      "{}), got {}; compile it again",
      package.folder(), path, got, hash));
}

int CheckedModel::planLaunches() {
  std::string error;
  auto target = lookupCudaTarget(planned->options.gpu, error);
  auto precision = symbolizePrecision(planned->options.precision);
  if (!target || !precision)
    return report(target ? "unknown precision " + planned->options.precision
                         : error);
  FailureOr<CudaProgram> program = generateCudaKernels(
      *kernelModule, *target, *precision, planned->options.name);
  if (failed(program))
    return 1;
  planned->gpu = {std::move(*program), {}, target->capability};
  return 0;
}

int CheckedModel::openCheckpoint(const std::string &path,
                                 std::string checkpoint) {
  made = makeHostWeights(*planned);
  if (made) {
    source = &made->tensors;
    return 0;
  }
  if (checkpoint.empty()) {
    auto named = graph()->getAttrOfType<StringAttr>("gpt.checkpoint");
    if (!named)
      return 0; // an extern weight, if there is one, is missed where it is used
    llvm::SmallString<256> full(named.getValue());
    if (llvm::sys::path::is_relative(full)) {
      full = llvm::sys::path::parent_path(path);
      llvm::sys::path::append(full, named.getValue());
    }
    checkpoint = full.str().str();
  }
  auto opened = checkpoint::Checkpoint::open(checkpoint);
  if (!opened)
    return report(opened.error().message);
  file.emplace(std::move(*opened));
  stored.emplace(*file);
  source = &*stored;
  return 0;
}

int CheckedModel::load(const std::string &path, const std::string &checkpoint,
                       const host::Package &package) {
  graphModule = parse(path);
  if (!graphModule)
    return 1;
  if (int status = makeKernels(path, package))
    return status;
  return openCheckpoint(path, checkpoint);
}
