//===- Manifest.cpp - manifest.json ---------------------------------------===//
//
// Schema version 1. Sizes are written as in the header: numbers, and "d0" for
// dynamic dimensions (an entry's in entries, a kernel's own in kernels). In a
// package for several levels of CPUs, target, entries, kernels and weights are
// those of the highest; lower_levels has those of the others.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "gptc/Kernel/KernelKind.h"
#include "gptc/Package/WritePackage.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;
namespace json = llvm::json;

namespace {
constexpr const char *dtypeNames[] = {"f32",  "f16",  "bf16", "q8_0",
                                      "q4_0", "q4_1", "i32",  "bf16x2",
                                      "i8x4", "q8_0x4"};

class Manifest {
public:
  Manifest(const PackageModel &package, json::OStream &out)
      : package(package), out(out) {}
  /// The package as a whole.
  void head(bool weightsWritten);
  /// What is this level's own.
  void level();

private:
  void shape(StringRef key, ArrayRef<int64_t> sizes);
  void tensor(StringRef name, Type type, ArrayRef<int64_t> sizes,
              Type element = {});
  void entry(const EntryPlan &plan);
  void call(const PlannedCall &call);
  void kernel(const PackageKernel &kernel);
  void launches(const CudaKernel &kernel);
  void weight(const PackedWeight &weight);

  const PackageModel &package;
  json::OStream &out;
};

/// Every place and name that a location mentions, in order, each once. Files
/// without their folders: the package is the same wherever it was made.
void collect(Location location, llvm::SetVector<StringAttr> &places) {
  MLIRContext *context = location.getContext();
  TypeSwitch<LocationAttr>(location)
      .Case([&](FileLineColLoc at) {
        places.insert(StringAttr::get(
            context,
            fmt::format("{}:{}:{}",
                        llvm::sys::path::filename(at.getFilename()).str(),
                        at.getLine(), at.getColumn())));
      })
      .Case([&](NameLoc name) {
        places.insert(name.getName());
        collect(name.getChildLoc(), places);
      })
      .Case([&](FusedLoc fused) {
        for (Location part : fused.getLocations())
          collect(part, places);
      })
      .Case([&](CallSiteLoc site) { collect(site.getCallee(), places); })
      .Default([](LocationAttr) {});
}

/// Floating-point operations of the products per row of the activation; 0 where
/// they are not a property of the row.
int64_t flopsPerRow(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return 2 * linear.inFeatures() * linear.outFeatures();
  if (auto gemm = dyn_cast<FusedGemmOp>(op))
    return 2 * gemm.inFeatures() * gemm.allOutFeatures();
  return 0;
}

void Manifest::shape(StringRef key, ArrayRef<int64_t> sizes) {
  out.attributeArray(key, [&] {
    for (int64_t size : sizes) {
      if (size < 0)
        out.value(fmt::format("d{}", -1 - size));
      else
        out.value(size);
    }
  });
}

/// `element`: in memory; null: the type's.
void Manifest::tensor(StringRef name, Type type, ArrayRef<int64_t> sizes,
                      Type element) {
  out.object([&] {
    if (!name.empty())
      out.attribute("name", name);
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked) {
      out.attribute("dtype", "kv_cache");
      return;
    }
    if (!element)
      element = ranked.getElementType();
    out.attribute("dtype", element.isF32()    ? "f32"
                           : element.isBF16() ? "bf16"
                           : element.isF16()  ? "f16"
                                              : "i32");
    shape("shape", sizes);
  });
}

void Manifest::call(const PlannedCall &call) {
  KernelOp kernel = call.kernel;
  CallOp op = call.op;
  out.object([&] {
    out.attribute("kernel", package.findKernel(kernel)->name);
    if (op.getLayer())
      out.attribute("layer", int64_t(*op.getLayer()));
    llvm::SetVector<StringAttr> places;
    collect(op.getLoc(), places);
    out.attributeArray("source", [&] {
      for (StringAttr place : places)
        out.value(place.getValue());
    });
    out.attributeArray("weights", [&] {
      for (const gptc_arg &arg : call.args)
        if (arg.kind == GPTC_ARG_WEIGHT)
          out.value(arg.index);
    });
  });
}

/// "2304 * d0".
std::string slotBytes(const EntryPlan &plan, int64_t slot) {
  const gptc_size *largest = nullptr;
  for (const Buffer &buffer : plan.buffers)
    if (buffer.size.slot == slot &&
        (!largest || buffer.size.bytes > largest->bytes))
      largest = &buffer.size;
  std::string bytes = std::to_string(largest->bytes);
  for (int8_t dim : largest->dims)
    if (dim >= 0)
      bytes += fmt::format(" * d{}", dim);
  return bytes;
}

void Manifest::entry(const EntryPlan &plan) {
  func::FuncOp function = plan.entry;
  out.object([&] {
    out.attribute("name", function.getSymName());
    out.attribute("kind", isStepEntry(function) ? "step" : "plain");
    out.attributeArray("inputs", [&] {
      for (Value input : plan.inputs)
        tensor(inputName(function, cast<BlockArgument>(input).getArgNumber()),
               input.getType(), plan.dims.sizes(input));
    });
    out.attributeArray("outputs", [&] {
      for (auto [value, number] : llvm::zip(plan.outputs, plan.outputNumbers))
        tensor(outputName(function, number), value.getType(),
               plan.dims.sizes(value));
    });
    out.attribute("dynamic_dimensions", plan.dims.count());
    // Bytes of each slot, which is as large as its largest buffer; the
    // workspace is their sum.
    out.attributeArray("workspace_bytes", [&] {
      for (int64_t slot = 0; slot < plan.slots; ++slot)
        out.value(slotBytes(plan, slot));
    });
    out.attributeArray("calls", [&] {
      for (const PlannedCall &planned : plan.calls)
        call(planned);
    });
  });
}

void Manifest::kernel(const PackageKernel &kernel) {
  KernelOp op = kernel.op;
  Operation *computes = op.kernelOp();
  SmallVector<ArrayRef<int64_t>> sizes = dimsOf(op);
  unsigned inputs = op.getArgumentTypes().size();
  out.object([&] {
    out.attribute("name", kernel.name);
    out.attribute("symbol", package.options.name + "_" + kernel.name);
    out.attribute("kind", kernelKind(computes));
    out.attributeArray("ops", [&] {
      out.value(computes->getName().getStringRef());
      if (auto gemm = dyn_cast<FusedGemmOp>(computes); gemm && gemm.getNorm())
        out.value(*gemm.getNorm() == NormKind::Rms ? "gpt.rms_norm"
                                                   : "gpt.layer_norm");
      for (Region &region : computes->getRegions())
        for (Operation &inner : region.getOps())
          if (!inner.hasTrait<OpTrait::IsTerminator>() &&
              !isa<arith::ConstantOp>(inner))
            out.value(inner.getName().getStringRef());
      if (auto gemm = dyn_cast<FusedGemmOp>(computes); gemm && gemm.getArgmax())
        out.value("gpt.argmax");
    });
    out.attributeArray("arguments", [&] {
      for (auto [index, type] : llvm::enumerate(op.getArgumentTypes()))
        tensor("", type, sizes[index], elementInMemory(op, index));
    });
    out.attributeArray("results", [&] {
      for (auto [index, type] : llvm::enumerate(op.getResultTypes()))
        tensor("", type, sizes[inputs + index],
               elementInMemory(op, inputs + index));
    });
    out.attributeArray("storage", [&] {
      for (unsigned index = 0; index < inputs; ++index)
        if (auto storage =
                op.getArgAttrOfType<StringAttr>(index, "gpt.storage"))
          out.value(storage.getValue());
    });
    if (auto schedule = op.getSchedule()) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      schedule->print(stream);
      out.attribute("schedule", text);
    }
    if (int64_t flops = flopsPerRow(computes))
      out.attribute("flops_per_row", flops);
    if (auto attention = dyn_cast<FlashAttentionOp>(computes);
        attention && attention.getWindow())
      out.attribute("window", static_cast<int64_t>(*attention.getWindow()));
    if (package.gpu)
      launches(package.gpu->find(op));
    else
      out.attribute("scratch_bytes_per_thread", kernel.scratchBytes);
    // An embedding reads rows of its table only, as many as there are ids.
    bool readsAll = !isa<EmbeddingOp>(computes);
    int64_t calls = 0, weightBytes = 0;
    for (const EntryPlan &plan : package.entries)
      for (const PlannedCall &planned : plan.calls)
        if (planned.kernel == op) {
          if (calls++ == 0 && readsAll)
            for (const gptc_arg &arg : planned.args)
              if (arg.kind == GPTC_ARG_WEIGHT)
                weightBytes += package.weights[arg.index].desc.bytes;
        }
    out.attribute("calls", calls);
    out.attribute("weight_bytes_per_call", weightBytes);
  });
}

/// "ceil(4 * d0 / 64)".
std::string extentText(const CudaExtent &extent) {
  std::string text = std::to_string(extent.mul);
  for (int dim : extent.dims)
    if (dim >= 0)
      text += fmt::format(" * d{}", dim);
  return extent.div == 1 ? text
                         : fmt::format("ceil({} / {})", text, extent.div);
}

void Manifest::launches(const CudaKernel &kernel) {
  if (kernel.scratchBytes)
    out.attribute("scratch_bytes", kernel.scratchBytes);
  out.attributeArray("variants", [&] {
    for (const CudaVariant &variant : kernel.variants)
      out.object([&] {
        if (variant.mostRows != INT64_MAX)
          out.attribute("most_rows", variant.mostRows);
        out.attribute("inputs", stringifyPrecision(variant.inputs));
        out.attributeArray("launches", [&] {
          for (const CudaLaunch &launch : variant.launches)
            out.object([&] {
              out.attribute("function", launch.function);
              out.attribute("threads", launch.threads);
              out.attribute("shared_bytes", launch.sharedBytes);
              out.attributeArray("grid", [&] {
                for (const CudaExtent &extent : launch.grid)
                  out.value(extentText(extent));
              });
              for (const CudaUsage &used : package.gpu->fatbin.usage) {
                if (used.function != launch.function)
                  continue;
                out.attribute("registers", used.registers);
                out.attribute("spill_bytes",
                              used.spillStores + used.spillLoads);
                out.attribute("static_shared_bytes", used.sharedBytes);
              }
            });
        });
      });
  });
}

void Manifest::weight(const PackedWeight &weight) {
  const gptc_weight_desc &d = weight.desc;
  out.object([&] {
    out.attribute("name", weight.name);
    out.attribute("dtype", dtypeNames[d.source_dtype]);
    // What was converted while packing (checkpoint::packedFrom).
    ml_program::GlobalOp global = weight.view.global;
    if (auto stored = global->getAttrOfType<StoredAttr>("gpt.stored");
        stored && stored.getStorage() != storageOf(global))
      out.attribute("stored", stringifyStorage(stored.getStorage()));
    auto type = cast<RankedTensorType>(
        ml_program::GlobalOp(weight.view.global).getType());
    shape("shape", type.getShape());
    out.attribute("packed_dtype", dtypeNames[d.packed_dtype]);
    out.attribute("layout", d.layout == GPTC_LAYOUT_PANEL ? "panel" : "vector");
    if (d.layout == GPTC_LAYOUT_PANEL)
      out.attribute("panel", d.panel);
    out.attribute("first", d.n0);
    out.attribute("count", d.n);
    if (d.take) {
      out.attribute("take", d.take);
      out.attribute("of", d.of);
    }
    if (d.shift != 0)
      out.attribute("shift", d.shift);
    out.attribute("offset", int64_t(d.offset));
    out.attribute("bytes", int64_t(d.bytes));
  });
}

void Manifest::head(bool weightsWritten) {
  out.attribute("schema", 1);
  out.attribute("name", package.options.name);
  out.attribute("precision", package.options.precision);
  out.attribute("optimization", package.options.optimization);
  if (!package.options.disabledFusions.empty())
    out.attributeArray("disabled_fusions", [&] {
      for (const std::string &fusion : package.options.disabledFusions)
        out.value(fusion);
    });
  out.attribute("package_hash", fmt::format("{:016x}", package.packageHash));
  out.attribute("context", package.context);
  out.attribute("vocab", package.vocab);
  out.attribute("kv_page", package.kv.page);
  out.attribute("kv_page_bytes", package.pageBytes());
  out.attribute("kv_element", dtypeNames[package.kv.element]);
  out.attribute("weights_file",
                weightsWritten ? json::Value(package.options.name + ".weights")
                               : json::Value(nullptr));
}

void Manifest::level() {
  out.attribute("target", package.targetName());
  out.attribute("program_hash", fmt::format("{:016x}", package.hash));
  out.attribute("weights_begin", int64_t(package.sectionBegin));
  out.attribute("weights_bytes", int64_t(package.sectionBytes));
  out.attributeArray("entries", [&] {
    for (const EntryPlan &plan : package.entries)
      entry(plan);
  });
  out.attributeArray("kernels", [&] {
    for (const PackageKernel &each : package.kernels)
      kernel(each);
  });
  out.attributeArray("weights", [&] {
    for (const PackedWeight &each : package.weights)
      weight(each);
  });
}
} // namespace

std::string gptc::manifestText(ArrayRef<PackageModel> levels,
                               bool weightsWritten) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream, 2);
  out.object([&] {
    Manifest highest(levels.front(), out);
    highest.head(weightsWritten);
    highest.level();
    if (levels.size() > 1)
      out.attributeArray("lower_levels", [&] {
        for (const PackageModel &level : levels.drop_front())
          out.object([&] { Manifest(level, out).level(); });
      });
  });
  return text + "\n";
}
