//===- ProgramData.cpp - the program tables as LLVM constants -------------===//
//
// Writes the structs of Format/Program.h, field by field in their order, as
// constants of the model's module. Struct types are written out with their
// padding; the assertions below hold them to the C layout.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include <bit>
#include <cstddef>

using namespace gptc;
using llvm::ArrayRef;
using llvm::Constant;
using llvm::StringRef;

static_assert(sizeof(gptc_arg) == 8 && sizeof(gptc_size) == 16);
static_assert(sizeof(gptc_call_desc) == 64 &&
              offsetof(gptc_call_desc, dims) == 32 &&
              offsetof(gptc_call_desc, scratch_dim) == 48);
static_assert(sizeof(gptc_extent) == 24 && sizeof(gptc_launch) == 88 &&
              sizeof(gptc_variant) == 24 && sizeof(gptc_device_code) == 32);
static_assert(sizeof(gptc_value_desc) == 80);
static_assert(sizeof(gptc_entry_desc) == 88 &&
              offsetof(gptc_entry_desc, inputs) == 48);
static_assert(sizeof(gptc_weight_desc) == 112 &&
              offsetof(gptc_weight_desc, offset) == 88);
static_assert(sizeof(gptc_kv_desc) == 56 && sizeof(gptc_program) == 144 &&
              offsetof(gptc_program, kv) == 72 && sizeof(gptc_programs) == 16);
static_assert(sizeof(gptc_info) == 96 &&
              offsetof(gptc_info, optimization) == 88);

/// The name of one level's gptc_program.
static std::string programName(const PackageModel &package) {
  return "gptc_program" + package.options.suffix;
}

/// Makes a constant visible to the other modules of the package.
static void publish(llvm::GlobalVariable *global, const llvm::Twine &name) {
  global->setName(name);
  global->setLinkage(llvm::GlobalValue::ExternalLinkage);
  global->setVisibility(llvm::GlobalValue::HiddenVisibility);
}

namespace {
/// Makes constants of one module.
class Tables {
public:
  explicit Tables(llvm::Module &module)
      : module(module), context(module.getContext()) {}

  Constant *i8(int64_t x) { return integer(8, x); }
  Constant *i32(int64_t x) { return integer(32, x); }
  Constant *i64(int64_t x) { return integer(64, x); }
  Constant *null() {
    return llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  }
  Constant *structure(ArrayRef<Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  template <typename Range> Constant *bytes(const Range &values) {
    llvm::SmallVector<uint8_t> data(values.begin(), values.end());
    return llvm::ConstantDataArray::get(context, data);
  }
  Constant *string(StringRef text) {
    Constant *&global = strings[text];
    if (!global)
      global = hold(llvm::ConstantDataArray::getString(context, text));
    return global;
  }
  /// A pointer to the first of `elements`, null if there are none.
  Constant *array(ArrayRef<Constant *> elements) {
    if (elements.empty())
      return null();
    auto *type =
        llvm::ArrayType::get(elements.front()->getType(), elements.size());
    return hold(llvm::ConstantArray::get(type, elements));
  }
  llvm::GlobalVariable *hold(Constant *value) {
    auto *global = new llvm::GlobalVariable(
        module, value->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, value, "gptc.data");
    global->setAlignment(llvm::Align(8));
    return global;
  }
  Constant *function(StringRef name) {
    if (llvm::Function *found = module.getFunction(name))
      return found;
    return null();
  }

private:
  Constant *integer(unsigned bits, int64_t x) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context, bits), x,
                                  /*isSigned=*/true);
  }
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::StringMap<Constant *> strings;
};

class ProgramEmitter {
public:
  ProgramEmitter(const PackageModel &package, llvm::Module &module)
      : package(package), module(module), make(module) {}
  void run();

private:
  Constant *value(const EntryPlan &plan, mlir::Value value, StringRef name,
                  int64_t bound = 0);
  Constant *call(const PlannedCall &call);
  Constant *variants(const CudaKernel &kernel);
  Constant *extent(const CudaExtent &extent);
  Constant *device();
  Constant *entry(const EntryPlan &plan, const IndexBounds &bounds);
  Constant *weight(const PackedWeight &weight);
  Constant *info();

  const PackageModel &package;
  llvm::Module &module;
  Tables make;
  llvm::SetVector<StringRef> functions; // of the fatbin
};

/// gptc_value_desc; an input of i32 has a bound on its values.
Constant *ProgramEmitter::value(const EntryPlan &plan, mlir::Value value,
                                StringRef name, int64_t bound) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  Sizes sizes = plan.dims.sizes(value);
  llvm::SmallVector<uint64_t> shape(8, 0);
  llvm::copy(sizes, shape.begin());
  if (bound)
    shape[7] = bound;
  return make.structure(
      {make.string(name),
       make.i32(type.getElementType().isF32() ? GPTC_F32 : GPTC_I32),
       make.i32(type.getRank()),
       llvm::ConstantDataArray::get(module.getContext(), shape)});
}

/// gptc_extent.
Constant *ProgramEmitter::extent(const CudaExtent &extent) {
  std::array<int8_t, 8> dims;
  dims.fill(-1);
  llvm::copy(extent.dims, dims.begin());
  return make.structure(
      {make.i64(extent.mul), make.i64(extent.div), make.bytes(dims)});
}

/// gptc_variant of each.
Constant *ProgramEmitter::variants(const CudaKernel &kernel) {
  llvm::SmallVector<Constant *> variants;
  for (const CudaVariant &variant : kernel.variants) {
    llvm::SmallVector<Constant *> launches;
    for (const CudaLaunch &launch : variant.launches) {
      functions.insert(launch.function);
      int64_t index =
          llvm::find(functions, launch.function) - functions.begin();
      launches.push_back(
          make.structure({make.i32(index), make.i32(launch.threads),
                          make.i64(launch.sharedBytes), extent(launch.grid[0]),
                          extent(launch.grid[1]), extent(launch.grid[2])}));
    }
    variants.push_back(
        make.structure({make.i64(variant.mostRows), make.array(launches),
                        make.i64(launches.size())}));
  }
  return make.array(variants);
}

/// gptc_device_code, null for the CPU.
Constant *ProgramEmitter::device() {
  if (!package.gpu)
    return make.null();
  llvm::SmallVector<Constant *> names;
  for (StringRef name : functions)
    names.push_back(make.string(name));
  return make.hold(make.structure(
      {make.hold(make.bytes(StringRef(package.gpu->fatbin.bytes))),
       make.array(names), make.i64(names.size()),
       make.i64(package.gpu->capability)}));
}

/// gptc_call_desc.
Constant *ProgramEmitter::call(const PlannedCall &call) {
  const PackageKernel *kernel = package.findKernel(call.kernel);
  llvm::SmallVector<Constant *> args;
  for (const gptc_arg &arg : call.args)
    args.push_back(make.structure({make.i32(arg.kind), make.i32(arg.index)}));
  std::array<int8_t, 8> dims;
  dims.fill(-1);
  llvm::copy(call.dims, dims.begin());
  const CudaKernel *launched =
      package.gpu ? &package.gpu->find(call.kernel) : nullptr;
  return make.structure(
      {make.function(kernel->name), make.string(kernel->name), make.array(args),
       make.i32(args.size()), make.i32(call.dims.size()), make.bytes(dims),
       make.i64(launched ? launched->scratchBytes : kernel->scratchBytes),
       make.i8(-1), make.bytes(std::array<uint8_t, 3>{}),
       make.i32(launched ? launched->variants.size() : 0),
       launched ? variants(*launched) : make.null()});
}

/// gptc_entry_desc.
Constant *ProgramEmitter::entry(const EntryPlan &plan,
                                const IndexBounds &bounds) {
  mlir::func::FuncOp function = plan.entry;
  llvm::SmallVector<Constant *> inputs, outputs, buffers, calls, limits;
  for (auto [input, bound] : llvm::zip(plan.inputs, bounds.values)) {
    unsigned number = llvm::cast<mlir::BlockArgument>(input).getArgNumber();
    inputs.push_back(value(plan, input, inputName(function, number), bound));
  }
  for (auto [output, number] : llvm::zip(plan.outputs, plan.outputNumbers))
    outputs.push_back(value(plan, output, outputName(function, number)));
  for (const Buffer &buffer : plan.buffers)
    buffers.push_back(make.structure({make.i64(buffer.size.bytes),
                                      make.bytes(ArrayRef(buffer.size.dims)),
                                      make.i32(buffer.size.slot)}));
  for (const PlannedCall &planned : plan.calls)
    calls.push_back(call(planned));
  if (llvm::any_of(bounds.dims, [](int64_t bound) { return bound != 0; }))
    for (int64_t bound : bounds.dims)
      limits.push_back(make.i64(bound));

  int kind = !isStepEntry(function) ? GPTC_ENTRY_PLAIN
             : plan.dims.keys >= 0  ? GPTC_ENTRY_STEP_SINGLE
                                    : GPTC_ENTRY_STEP;
  return make.structure(
      {make.string(function.getSymName()), make.i32(kind),
       make.i32(plan.dims.count()), make.i32(plan.dims.tokens),
       make.i32(plan.dims.rows), make.i32(plan.dims.keys),
       make.i32(inputs.size()), make.i32(outputs.size()),
       make.i32(buffers.size()), make.i32(plan.slots), make.i32(calls.size()),
       make.array(inputs), make.array(outputs), make.array(buffers),
       make.array(calls), make.array(limits)});
}

/// gptc_weight_desc.
Constant *ProgramEmitter::weight(const PackedWeight &weight) {
  const gptc_weight_desc &d = weight.desc;
  return make.structure(
      {make.string(weight.name), make.i32(d.source_dtype),
       make.i32(d.packed_dtype), make.i32(d.layout), make.i32(d.in_out),
       make.i64(d.source_rows), make.i64(d.source_cols), make.i64(d.n0),
       make.i64(d.n), make.i64(d.take), make.i64(d.of), make.i64(d.k),
       make.i64(d.panel), make.i64(d.offset), make.i64(d.bytes),
       make.i64(std::bit_cast<int64_t>(d.shift))});
}

/// gptc_info.
Constant *ProgramEmitter::info() {
  return make.structure(
      {make.i64(sizeof(gptc_info)), make.string(package.options.name),
       make.string(package.targetName()),
       make.string(package.options.precision), make.i64(package.context),
       make.i64(package.vocab), make.i64(package.kv.page),
       make.i64(package.pageBytes()), make.i64(package.sectionBytes),
       make.i64(package.eos), make.i64(package.bos),
       make.i32(package.options.optimization), make.i32(0)});
}

void ProgramEmitter::run() {
  llvm::SmallVector<Constant *> entries, weights;
  for (auto [plan, bounds] : llvm::zip(package.entries, package.bounds))
    entries.push_back(entry(plan, bounds));
  for (const PackedWeight &packed : package.weights)
    weights.push_back(weight(packed));
  const gptc_kv_desc &kv = package.kv;
  Constant *program = make.structure(
      {make.i64(sizeof(gptc_program)), make.hold(info()),
       make.i64(package.packageHash), make.i32(entries.size()),
       make.i32(weights.size()), make.array(entries), make.array(weights),
       make.i64(package.sectionBegin), make.i64(package.sectionBytes),
       make.i64(package.weightsFileBytes),
       make.structure({make.i64(kv.layers), make.i64(kv.heads),
                       make.i64(kv.head_dim), make.i64(kv.page),
                       make.i64(kv.block_bytes), make.i64(kv.element),
                       make.i64(kv.partial_bytes)}),
       make.string(package.target.requiredFeatures), device()});
  publish(make.hold(program), programName(package));
}
} // namespace

void gptc::emitProgramData(const PackageModel &package, llvm::Module &module) {
  ProgramEmitter(package, module).run();
}

void gptc::emitProgramList(ArrayRef<PackageModel> levels,
                           llvm::Module &module) {
  Tables make(module);
  llvm::SmallVector<Constant *> programs;
  for (const PackageModel &level : levels)
    programs.push_back(module.getNamedGlobal(programName(level)));
  Constant *list =
      make.structure({make.i64(programs.size()), make.array(programs)});
  publish(make.hold(list), "gptc_the_programs");
}
