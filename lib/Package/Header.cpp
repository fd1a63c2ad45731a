//===- Header.cpp - <name>.h ----------------------------------------------===//
//
// Self-contained: the shared types of Runtime/gptc.h (embedded at build time)
// under their own guard, then the package's functions and the prototypes of its
// kernels.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "gptc/Package/WritePackage.h"

using namespace mlir;
using namespace gptc;

// The text of include/gptc/Runtime/gptc.h.
static constexpr const char abiText[] =
#include "AbiText.inc"
    ;

/// "f32 [d0][576]", "q4_1 weight [960][576]", "KV cache".
static std::string describe(Type type, ArrayRef<int64_t> sizes,
                            StringRef storage) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "gptc_kv_view";
  std::string text = tensor.getElementType().isF32() ? "f32 " : "i32 ";
  if (!storage.empty())
    text = storage.str() + " weight ";
  for (int64_t size : sizes)
    text +=
        size < 0 ? fmt::format("[d{}]", -1 - size) : fmt::format("[{}]", size);
  return text;
}

static std::string kernelPrototype(const PackageModel &package,
                                   const PackageKernel &kernel) {
  gpt::KernelOp op = kernel.op;
  SmallVector<ArrayRef<int64_t>> sizes = dimsOf(op);
  std::string args;
  auto add = [&](const std::string &text) {
    args += (args.empty() ? "" : ", ") + text;
  };
  unsigned index = 0;
  for (Type type : op.getArgumentTypes()) {
    auto storage = op.getArgAttrOfType<StringAttr>(index, "gpt.storage");
    add(describe(type, sizes[index], storage ? storage.getValue() : ""));
    ++index;
  }
  for (Type type : op.getResultTypes()) {
    if (isa<RankedTensorType>(type))
      add("-> " + describe(type, sizes[index], ""));
    ++index;
  }
  return fmt::format("/* args: {}{} */\nvoid {}_{}(void *const *args, const "
                     "int64_t *dims, void *scratch, int64_t thread, int64_t "
                     "threads);\n",
                     args,
                     kernel.scratchBytes ? fmt::format("; scratch: {} bytes",
                                                       kernel.scratchBytes)
                                         : std::string(),
                     package.options.name, kernel.name);
}

std::string gptc::headerText(ArrayRef<PackageModel> levels) {
  const PackageModel &package = levels.front();
  std::string targets;
  for (const PackageModel &level : levels)
    targets += (targets.empty() ? "" : ", ") + level.targetName().str();
  const std::string &name = package.options.name;
  std::string guard = StringRef(name).upper() + "_GPTC_PACKAGE_H";
  std::string text =
      fmt::format("/* {0}.h - the package '{0}', made by gptc for {1}. */\n"
                  "#ifndef {2}\n#define {2}\n\n",
                  name, targets, guard);
  text += abiText;
  text += fmt::format(R"(
#ifdef __cplusplus
extern "C" {{
#endif

/* The functions of gptc_api above, which says what each does. */
const gptc_info *{0}_info(void);
gptc_status {0}_open(const gptc_open_params *params, gptc_model **model);
gptc_status {0}_session(gptc_model *model, const gptc_limits *limits,
                        gptc_session **session);
gptc_status {0}_step(gptc_session *session, const gptc_batch *batch,
                     float *logits);
gptc_status {0}_run(gptc_session *session, const char *entry,
                    const gptc_tensor *inputs, size_t input_count,
                    gptc_tensor *outputs, size_t output_count);
gptc_status {0}_fork(gptc_session *session, int32_t from, int32_t to,
                     int64_t length);
gptc_status {0}_observe(gptc_session *session, gptc_observer observer,
                        void *user);
void {0}_close(void *model_or_session);
const char *{0}_last_error(void);
const gptc_api *{0}_api(void);

)",
                      name);
  std::string end =
      "\n#ifdef __cplusplus\n}\n#endif\n#endif /* " + guard + " */\n";
  if (!package.options.gpu.empty())
    return text +
           fmt::format("/* The kernels are functions of {0}.fatbin; {0}.cu has "
                       "their text. */\n",
                       name) +
           end;
  text +=
      R"(/* Kernels. Each runs part `thread` of `threads` of its work, in any order;
 * together they are the whole. args point to the operands, then to the results
 * (->); dims[i] is the size di; scratch is 64-byte aligned memory of this
 * thread's own. Weights are packed as in the weights file; vectors may be read
 * one vector past their end. */
)";
  for (const PackageModel &level : levels) {
    if (levels.size() > 1)
      text += fmt::format("\n/* For {} and above. */\n", level.target.name);
    for (const PackageKernel &kernel : level.kernels)
      text += kernelPrototype(level, kernel);
  }
  return text + end;
}
