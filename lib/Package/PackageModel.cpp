//===- PackageModel.cpp - everything a package says -----------------------===//
//
// Collects entries, kernels and weights of an outlined module. Equal sections
// of one global, packed alike, are one weight (a tied LM head and embedding).
//
// T tokens, R rows, V vocabulary.
//
//===----------------------------------------------------------------------===//
#include "gptc/Package/PackageModel.h"
#include "IndexBounds.h"
#include "gptc/Format/WeightLayout.h"
#include "gptc/Schedule/CudaSchedule.h"
#include "gptc/Target/CPU/CpuTarget.h"
#include "llvm/ADT/StringSet.h"
#include <bit>

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

gptc_dtype gptc::dtypeOf(Storage storage) {
  switch (storage) {
  case Storage::F32:
    return GPTC_F32;
  case Storage::F16:
    return GPTC_F16;
  case Storage::BF16:
    return GPTC_BF16;
  case Storage::Q8_0:
    return GPTC_Q8_0;
  case Storage::Q4_0:
    return GPTC_Q4_0;
  case Storage::Q4_1:
    return GPTC_Q4_1;
  case Storage::BF16x2:
    return gptc_dtype(GPTC_PACKED_BF16X2);
  case Storage::I8x4:
    return gptc_dtype(GPTC_PACKED_I8X4);
  case Storage::Q8_0x4:
    return gptc_dtype(GPTC_PACKED_Q8_0X4);
  default: // storageOf gives none of a checkpoint's own formats
    break;
  }
  llvm_unreachable("every storage has a format");
}

/// Of an element of the KV cache.
static gptc_dtype dtypeOf(Type element) {
  return element.isBF16() ? GPTC_BF16 : element.isF16() ? GPTC_F16 : GPTC_F32;
}

std::string gptc::inputName(func::FuncOp entry, unsigned argument) {
  if (auto name = entry.getArgAttrOfType<StringAttr>(argument, "gpt.arg"))
    return name.str();
  return fmt::format("arg{}", argument);
}

std::string gptc::outputName(func::FuncOp entry, unsigned result) {
  if (auto name = entry.getResultAttrOfType<StringAttr>(result, "gpt.result"))
    return name.str();
  return fmt::format("result{}", result);
}

const PackageKernel *PackageModel::findKernel(KernelOp op) const {
  for (const PackageKernel &kernel : kernels)
    if (kernel.op == op)
      return &kernel;
  return nullptr;
}

namespace {
/// Byte counts and offsets of what is this large are far from overflow.
constexpr int64_t mostElements = int64_t(1) << 40;

class PackagePlanner {
public:
  explicit PackagePlanner(PackageModel &package) : package(package) {}
  LogicalResult run();

private:
  LogicalResult addEntry(func::FuncOp entry);
  LogicalResult checkValues(const EntryPlan &plan);
  LogicalResult addWeights(EntryPlan &plan);
  FailureOr<int32_t> weightIndex(const WeightView &view);
  LogicalResult addStep(EntryPlan &plan);
  LogicalResult checkTables(EntryPlan &plan);
  void layOutWeights();
  void hash();

  int64_t integer(StringRef name, int64_t absent) {
    auto value = package.module->getAttrOfType<IntegerAttr>(name);
    return value ? value.getInt() : absent;
  }

  PackageModel &package;
  bool hasStep = false;
};

FailureOr<int32_t> PackagePlanner::weightIndex(const WeightView &view) {
  ml_program::GlobalOp global = view.global;
  if (!isa_and_nonnull<ml_program::ExternAttr>(global.getValueAttr()))
    return global.emitOpError("expected the value #ml_program.extern: weights "
                              "are stored in a checkpoint, or the host hands "
                              "them over");
  auto type = dyn_cast<RankedTensorType>(global.getType());
  if (!type || !type.hasStaticShape() || type.getRank() < 1 ||
      type.getRank() > 2 || !type.getElementType().isF32())
    return global.emitOpError("expected a weight of type tensor<NxKxf32> or "
                              "tensor<Nxf32>, got ")
           << global.getType();
  int64_t elements = 1;
  for (int64_t size : type.getShape())
    if (size < 1 || llvm::MulOverflow(elements, size, elements) ||
        elements > mostElements)
      return global.emitOpError("expected a weight of 1 to 2^40 elements, got ")
             << type;
  auto stored = global->getAttrOfType<StoredAttr>("gpt.stored");
  Storage storage = storageOf(global);
  PackedWeight weight;
  weight.view = view;
  weight.name = stored ? stored.getTensor().str() : global.getSymName().str();
  gptc_weight_desc &desc = weight.desc = {};
  desc.source_dtype = dtypeOf(storage);
  desc.packed_dtype = dtypeOf(view.packed);
  desc.layout = view.panel ? GPTC_LAYOUT_PANEL : GPTC_LAYOUT_VECTOR;
  desc.in_out = view.inOut;
  desc.source_rows = type.getRank() == 2 ? type.getDimSize(0) : 1;
  desc.source_cols = type.getDimSize(type.getRank() - 1);
  desc.n0 = view.n0;
  desc.n = view.n;
  desc.take = view.take;
  desc.of = view.of;
  desc.k = view.k;
  desc.shift = view.shift;
  desc.panel = !view.panel                   ? 1
               : package.options.gpu.empty() ? package.target.panelWidth()
                                             : cudaPanel;

  bool blocks = desc.source_dtype >= GPTC_Q8_0;
  if (blocks && view.inOut)
    return global.emitOpError("expected ")
           << stringifyStorage(storage)
           << " blocks to run along the input features: a weight stored "
              "[in, out] cannot be packed from them";
  if (blocks && desc.source_cols % 32)
    return global.emitOpError("expected rows of whole blocks of 32 elements "
                              "for ")
           << stringifyStorage(storage) << ", got " << desc.source_cols;

  for (auto [index, other] : llvm::enumerate(package.weights))
    if (other.view.global == global &&
        !memcmp(&other.desc, &desc, sizeof(desc)))
      return int32_t(index);
  package.weights.push_back(std::move(weight));
  return int32_t(package.weights.size() - 1);
}

LogicalResult PackagePlanner::addWeights(EntryPlan &plan) {
  for (PlannedCall &call : plan.calls)
    for (gptc_arg &arg : call.args) {
      if (arg.kind != GPTC_ARG_WEIGHT)
        continue;
      FailureOr<WeightView> view = weightOf(call.op, arg.index);
      if (failed(view))
        return failure();
      FailureOr<int32_t> index = weightIndex(*view);
      if (failed(index))
        return failure();
      arg.index = *index;
    }
  return success();
}

/// Ids of a step are checked against vocabulary and context by the runtime;
/// tables that they index must be that large.
LogicalResult PackagePlanner::checkTables(EntryPlan &plan) {
  for (PlannedCall &call : plan.calls) {
    auto embedding = dyn_cast<EmbeddingOp>(call.kernel.kernelOp());
    if (!embedding)
      continue;
    int64_t rows = embedding.getTable().getType().getDimSize(0);
    Value ids = call.op.getArgs()[1];
    if (ids == plan.entry.getArgument(0) && rows < package.vocab)
      return call.op.emitOpError("expected a table of ")
             << package.vocab << " rows, one per logit, got " << rows;
    if (ids != plan.entry.getArgument(1))
      continue;
    if (package.context == 0)
      package.context = rows;
    if (rows < package.context)
      return call.op.emitOpError("expected a table of ")
             << package.context << " rows, the context length, got " << rows;
  }
  return success();
}

LogicalResult PackagePlanner::addStep(EntryPlan &plan) {
  if (hasStep)
    return plan.entry.emitOpError(
        "expected one entry over a KV cache, got a second one");
  hasStep = true;
  auto logits = plan.outputs.size() == 1
                    ? dyn_cast<RankedTensorType>(plan.outputs[0].getType())
                    : RankedTensorType();
  if (!logits || logits.getRank() != 2 || logits.isDynamicDim(1) ||
      !logits.getElementType().isF32() ||
      plan.dims.sizes(plan.outputs[0])[0] != -1 - plan.dims.rows)
    return plan.entry.emitOpError("expected a step entry to return logits "
                                  "(tensor<?xVxf32>, one row per wanted row) "
                                  "and the cache, got ")
           << plan.entry.getFunctionType();
  package.vocab = logits.getDimSize(1);
  if (int64_t said = integer("gpt.vocab", package.vocab); said != package.vocab)
    return package.module.emitError("expected gpt.vocab to be ")
           << package.vocab << ", the logits of a row, got " << said;
  package.context = integer("gpt.context", 0);
  if (package.context > INT32_MAX)
    return package.module.emitError("expected gpt.context of at most ")
           << INT32_MAX << ", since positions are i32, got " << package.context;
  if (failed(checkTables(plan)))
    return failure();
  if (package.context == 0)
    return package.module.emitError(
        "expected the module attribute gpt.context (i64): the longest "
        "sequence in tokens, which nothing else in this model bounds");

  auto type = cast<KVCacheType>(plan.entry.getArgument(4).getType());
  Type element = type.getElement();
  int64_t block = gptc_kv_block_bytes(type.getHeadDim(), type.getPage(),
                                      element.getIntOrFloatBitWidth() / 8);
  package.kv = {type.getLayers(), type.getHeads(), type.getHeadDim(),
                type.getPage(),   block,           dtypeOf(element), 0};
  for (PlannedCall &call : plan.calls)
    for (gptc_arg &arg : call.args)
      if (arg.kind == GPTC_ARG_CACHE &&
          (arg.index < 0 || arg.index >= type.getLayers()))
        return call.op.emitOpError("expected a layer below ")
               << type.getLayers() << ", got " << arg.index;
  return success();
}

/// Types and names of an entry's inputs and outputs.
LogicalResult PackagePlanner::checkValues(const EntryPlan &plan) {
  func::FuncOp entry = plan.entry;
  llvm::StringSet<> inputs, outputs;
  for (auto [number, value] : llvm::enumerate(entry.getArguments()))
    if (!inputs.insert(inputName(entry, number)).second)
      return entry.emitOpError("expected every argument to have its own name, "
                               "got '")
             << inputName(entry, number) << "' twice";
  for (unsigned number : plan.outputNumbers)
    if (!outputs.insert(outputName(entry, number)).second)
      return entry.emitOpError("expected every result to have its own name, "
                               "got '")
             << outputName(entry, number) << "' twice";
  for (Value value : llvm::concat<const Value>(plan.inputs, plan.outputs)) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    // Booleans are i32 outside, 0 or not.
    if (!type || type.getRank() > 8 ||
        !(type.getElementType().isF32() ||
          type.getElementType().isInteger(32) ||
          type.getElementType().isInteger(1)))
      return entry.emitOpError("expected arguments and results to be tensors "
                               "of f32, i32 or i1 with at most 8 dimensions, "
                               "got ")
             << value.getType();
    int64_t elements = 1;
    for (int64_t size : type.getShape())
      if (size == 0 ||
          (size > 0 && (llvm::MulOverflow(elements, size, elements) ||
                        elements > mostElements)))
        return entry.emitOpError("expected arguments and results of 1 to 2^40 "
                                 "elements beside dynamic dimensions, got ")
               << type;
  }
  return success();
}

LogicalResult PackagePlanner::addEntry(func::FuncOp entry) {
  FailureOr<EntryPlan> plan = planEntry(entry);
  if (failed(plan) || failed(checkValues(*plan)) || failed(addWeights(*plan)))
    return failure();
  if (plan->dims.count() > 16)
    return entry.emitOpError("expected at most 16 dynamic dimensions, got ")
           << plan->dims.count();
  if (isStepEntry(entry) && failed(addStep(*plan)))
    return failure();
  FailureOr<IndexBounds> bounds = indexBounds(*plan);
  if (failed(bounds))
    return failure();
  package.bounds.push_back(std::move(*bounds));
  package.entries.push_back(std::move(*plan));
  return success();
}

void PackagePlanner::layOutWeights() {
  uint64_t offset = sizeof(gptc_weights_header);
  for (PackedWeight &weight : package.weights) {
    weight.desc.offset = offset;
    weight.desc.bytes = gptc_packed_bytes(&weight.desc);
    offset = llvm::alignTo(offset + weight.desc.bytes, 64);
  }
  // Kernels may read one vector past the end of what they use.
  package.sectionBytes = offset + 64;
}

/// Over the program's text and the recipe of every weight.
void PackagePlanner::hash() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "gptc package 1\n"
         << package.targetName() << ' ' << package.target.features << ' '
         << package.options.precision << ' ' << package.options.optimization
         << '\n';
  for (Operation &op : package.module.getOps())
    if (!isa<ml_program::GlobalOp>(op))
      op.print(stream, OpPrintingFlags().useLocalScope());
  for (const PackedWeight &weight : package.weights) {
    const gptc_weight_desc &d = weight.desc;
    stream << '\n' << weight.name;
    for (int64_t field : {int64_t(d.source_dtype), int64_t(d.packed_dtype),
                          int64_t(d.layout), int64_t(d.in_out), d.source_rows,
                          d.source_cols, d.n0, d.n, d.take, d.of, d.k, d.panel,
                          int64_t(d.offset), std::bit_cast<int64_t>(d.shift)})
      stream << ' ' << field;
  }
  package.hash = gptc_checksum(0, text.data(), text.size());
}

LogicalResult PackagePlanner::run() {
  for (auto entry : package.module.getOps<func::FuncOp>())
    if (!entry.isExternal() && failed(addEntry(entry)))
      return failure();
  if (package.entries.empty())
    return package.module.emitError(
        "expected at least one function with a body to compile");
  for (auto kernel : package.module.getOps<KernelOp>())
    package.kernels.push_back(
        {kernel, kernel.getSymName().str() + package.options.suffix,
         package.options.gpu.empty()
             ? kernelScratchBytes(kernel, package.target)
             : 0});
  if (package.options.gpu.empty())
    for (const PackageKernel &kernel : package.kernels)
      package.kv.partial_bytes =
          std::max(package.kv.partial_bytes,
                   kernelPartialBytes(kernel.op, package.target));
  package.bos = integer("gpt.bos", -1);
  package.eos = integer("gpt.eos", -1);
  layOutWeights();
  hash();
  return success();
}
} // namespace

FailureOr<PackageModel> gptc::planPackage(ModuleOp module,
                                          const TargetDesc &target,
                                          const PackageOptions &options) {
  PackageModel package;
  package.module = module;
  package.target = target;
  package.options = options;
  if (failed(PackagePlanner(package).run()))
    return failure();
  return package;
}

void gptc::joinLevels(llvm::MutableArrayRef<PackageModel> levels) {
  uint64_t end = 0, hash = levels.front().hash;
  for (PackageModel &level : levels) {
    level.sectionBegin = llvm::alignTo(end, 4096);
    end = level.sectionBegin + level.sectionBytes;
    if (&level != &levels.front())
      hash = gptc_checksum(hash, &level.hash, sizeof(level.hash));
  }
  for (PackageModel &level : levels) {
    level.weightsFileBytes = end;
    level.packageHash = hash;
  }
}

std::string gptc::levelSuffix(const TargetDesc &target) {
  return fmt::format("_v{}", target.level);
}
