//===- Writer.cpp - one kernel's text, being written ----------------------===//
#include "Writer.h"
#include "gptc/Kernel/DimAnalysis.h"
#include "gptc/Kernel/Weights.h"
#include "gptc/Kernel/Workspace.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::cuda;

KernelWriter::KernelWriter(gpt::KernelOp kernel, const CudaTarget &target,
                           InputPrecision precision, llvm::StringSet<> &blocks)
    : kernel(kernel), op(kernel.kernelOp()), target(target),
      precision(precision), name(kernel.getSymName()), dims(dimsOf(kernel)),
      blocks(blocks), kernelArguments(kernel.getArgumentTypes().size()) {
  // A single word may be a function of the C library: exp.
  if (name.find('_') == std::string::npos)
    name += "_kernel";
  product.op = kernel;
}

std::string KernelWriter::size(unsigned value, unsigned axis) const {
  int64_t n = dims[value][axis];
  return n >= 0 ? fmt::format("{}", n) : fmt::format("d{}", -1 - n);
}

int64_t KernelWriter::staticCount(unsigned value, unsigned keep) const {
  int64_t product = 1;
  for (int64_t n : dims[value].drop_back(keep))
    if (n < 0 || llvm::MulOverflow(product, n, product))
      return -1;
  return product;
}

std::string KernelWriter::count(unsigned value, unsigned keep) const {
  std::string text;
  int64_t factor = 1;
  for (int64_t n : dims[value].drop_back(keep)) {
    if (n >= 0)
      factor *= n;
    else
      text += fmt::format("{}d{}", text.empty() ? "" : " * ", -1 - n);
  }
  if (text.empty())
    return fmt::format("{}ll", factor);
  return factor == 1 ? text : text + fmt::format(" * {}", factor);
}

CudaExtent KernelWriter::extent(unsigned value, unsigned keep,
                                int64_t div) const {
  CudaExtent e;
  unsigned used = 0;
  for (int64_t n : dims[value].drop_back(keep)) {
    if (n >= 0)
      e.mul *= n;
    else if (used < 3) // more are refused: CudaTarget.cpp
      e.dims[used++] = int(-1 - n);
  }
  e.div = div;
  return e;
}

std::optional<gpt::Storage> KernelWriter::storage(unsigned argument) {
  auto attr = kernel.getArgAttrs()
                  ? kernel.getArgAttrOfType<StringAttr>(argument, "gpt.storage")
                  : StringAttr();
  return attr ? gpt::symbolizeStorage(attr.getValue()) : std::nullopt;
}

void KernelWriter::nameValues(ArrayRef<StringRef> names) {
  names = names.take_front(arguments());
  values.assign(names.begin(), names.end());
  for (unsigned i = values.size(); i < arguments(); ++i)
    values.push_back(fmt::format("arg{}", i));
  for (unsigned i = values.size() - arguments(); i < op->getNumResults(); ++i)
    values.push_back(op->getNumResults() == 1 ? "out"
                                              : fmt::format("out{}", i));
}

/// The parameter of a value of this type that lies in memory as `element`.
static std::string parameter(Type type, Type element, bool packed,
                             bool written) {
  if (isa<gpt::KVCacheType>(type))
    return "const gptc_kv_view *__restrict__ ";
  if (packed)
    return "const unsigned char *__restrict__ ";
  return (written ? "" : "const ") + elementName(element) + " *__restrict__ ";
}

std::string KernelWriter::begin(StringRef suffix, int threads, int blocks) {
  std::string function = name + suffix.str();
  std::string separator = "\n    ";
  text += '\n';
  functionAt = text.size();
  print("extern \"C\" __global__ void __launch_bounds__({}{})\n{}(", threads,
        blocks ? fmt::format(", {}", blocks) : "", function);
  auto add = [&](const std::string &declaration) {
    text += separator + declaration;
    separator = ",\n    ";
  };
  for (unsigned i = 0; i < arguments(); ++i) {
    bool packed =
        storage(i) && useOf(operandOfArgument(kernel, i)) == OperandUse::Panel;
    add(parameter(kernel.getArgumentTypes()[i], elementInMemory(kernel, i),
                  packed, false) +
        values[i]);
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (!isa<gpt::KVCacheType>(op->getResult(i).getType()))
      add(parameter(op->getResult(i).getType(),
                    elementInMemory(kernel, result(i)), false, true) +
          values[result(i)]);
  if (usesScratch)
    add("void *scratch");
  int64_t count = 0;
  for (ArrayRef<int64_t> sizes : dims)
    for (int64_t n : sizes)
      count = std::max(count, -n);
  for (int64_t i = 0; i < count; ++i)
    add(fmt::format("long long d{}", i));
  text += ") {\n";
  return function;
}

/// "ceil(3 * d0 / 64)".
static std::string extentText(const CudaExtent &e) {
  std::string product;
  for (int dim : e.dims)
    if (dim >= 0)
      product += fmt::format("{}d{}", product.empty() ? "" : " * ", dim);
  if (product.empty())
    return fmt::format("{}", std::max<int64_t>(1, (e.mul + e.div - 1) / e.div));
  if (e.mul != 1)
    product = fmt::format("{} * {}", e.mul, product);
  return e.div == 1 ? product : fmt::format("ceil({} / {})", product, e.div);
}

void KernelWriter::end() {
  text += "}\n";
  const CudaVariant &variant = product.variants.back();
  const CudaLaunch &launch = variant.launches.back();
  std::string rows = variant.mostRows == INT64_MAX
                         ? ""
                         : fmt::format("d0 <= {}: ", variant.mostRows);
  text.insert(
      functionAt,
      fmt::format("// Launch: {}grid ({}, {}, {}), {} threads, {} bytes\n",
                  rows, extentText(launch.grid[0]), extentText(launch.grid[1]),
                  extentText(launch.grid[2]), launch.threads,
                  launch.sharedBytes));
}

CudaVariant &KernelWriter::variant(int64_t mostRows) {
  product.variants.emplace_back().mostRows = mostRows;
  return product.variants.back();
}

CudaLaunch &KernelWriter::launch(const std::string &function, int threads,
                                 int64_t sharedBytes) {
  CudaLaunch launch;
  launch.function = function;
  launch.threads = threads;
  launch.sharedBytes = sharedBytes;
  product.variants.back().launches.push_back(launch);
  return product.variants.back().launches.back();
}

void KernelWriter::declareShared() {
  text += "  extern __shared__ float4 shared_memory[];\n"
          "  float *shared = reinterpret_cast<float *>(shared_memory);\n";
}

void KernelWriter::beginElements(unsigned value) {
  const int threads = 256;
  variant();
  launch(begin("", threads), threads).grid[0] = extent(value, 0, threads);
  print("  const long long e = (long long)blockIdx.x * {} + threadIdx.x;\n"
        "  if (e >= {})\n    return;\n",
        threads, count(value));
}

void KernelWriter::beginRows(unsigned value, int threads, unsigned keep) {
  variant();
  launch(begin("", threads), threads).grid[0] = extent(value, keep);
  guardRows(value, keep);
}

void KernelWriter::guardRows(unsigned value, unsigned keep) {
  if (staticCount(value, keep) < 0)
    print("  if (blockIdx.x >= {})\n    return;\n", count(value, keep));
}

LogicalResult KernelWriter::unsupported(const Twine &what) {
  return op->emitOpError("has no CUDA kernel: ") << what;
}

//===----------------------------------------------------------------------===//
// Names and numbers
//===----------------------------------------------------------------------===//

template <typename T> static std::string numberOf(T v, StringRef suffix) {
  if (std::isnan(v))
    return "__builtin_nanf(\"\")";
  if (std::isinf(v))
    return v < 0 ? "-__builtin_huge_valf()" : "__builtin_huge_valf()";
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + suffix.str();
}
std::string gptc::cuda::number(float v) { return numberOf(v, "f"); }
std::string gptc::cuda::number(double v) { return numberOf(v, ""); }

static std::string element(int32_t v) { return fmt::format("{}", v); }
static std::string element(float v) { return number(v); }
static std::string element(double v) { return number(v); }

template <typename T>
void gptc::cuda::printArray(KernelWriter &w, StringRef name,
                            ArrayRef<T> values) {
  StringRef type = std::is_same_v<T, float>    ? "float"
                   : std::is_same_v<T, double> ? "double"
                                               : "int";
  w.print("\n__device__ const {} {}[{}] = {{", type.str(), name.str(),
          values.size());
  std::string line = "\n    ";
  for (auto [i, v] : llvm::enumerate(values)) {
    std::string text = element(v) + (i + 1 < values.size() ? "," : "");
    if (line.size() + text.size() > 78) {
      w.text += line;
      line = "\n   ";
    }
    line += (line.back() == ' ' && line.size() == 5 ? "" : " ") + text;
  }
  w.text += line + "};\n";
}
template void gptc::cuda::printArray(KernelWriter &, StringRef,
                                     ArrayRef<float>);
template void gptc::cuda::printArray(KernelWriter &, StringRef,
                                     ArrayRef<double>);
template void gptc::cuda::printArray(KernelWriter &, StringRef,
                                     ArrayRef<int32_t>);

std::string gptc::cuda::elementName(Type element) {
  return element.isBF16()  ? "gptc::Bf16"
         : element.isF16() ? "gptc::F16"
         : element.isF32() ? "float"
                           : "int";
}

std::string gptc::cuda::elementName(InputPrecision precision) {
  return precision == InputPrecision::BF16  ? "gptc::Bf16"
         : precision == InputPrecision::F16 ? "gptc::F16"
                                            : "gptc::Tf32";
}

std::string gptc::cuda::cacheName(gpt::KVCacheType cache) {
  return fmt::format("gptc::Cache<{}, {}, {}, {}, {}>",
                     elementName(cache.getElement()), cache.getLayers(),
                     cache.getHeads(), cache.getHeadDim(), cache.getPage());
}

std::string gptc::cuda::formatName(gpt::Storage storage) {
  return stringifyStorage(storage).str();
}

/// The name in a location; empty if it has none.
static StringRef nameIn(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

/// Words that C++, its headers or the generated text has.
static bool isReserved(StringRef word) {
  static const llvm::StringSet<> words = [] {
    llvm::StringSet<> all;
    for (StringRef each : llvm::split(
             "acc alignas alignof and angles asm assert auto blockDim blockIdx "
             "bool break cache case catch channel char class column compl "
             "const "
             "constexpr continue cos decltype default delete do double else "
             "enum "
             "errno explicit export extern false fabsf features float fmaf for "
             "formats friend goto gptc gridDim half if inline int lanes linux "
             "long "
             "max min mutable namespace new noexcept not nullptr operator or "
             "other "
             "partner positions private protected public register return rope "
             "row "
             "sequences short signed sin sizeof sqrtf static struct switch "
             "template this throw tile true try typedef typeid typename uint "
             "union "
             "unix unsigned using virtual void volatile warpSize weights while "
             "xor",
             ' '))
      all.insert(each);
    return all;
  }();
  return words.contains(word);
}

std::string gptc::cuda::valueName(Value value, llvm::StringSet<> &used) {
  std::string name;
  for (char c : nameIn(value.getLoc()))
    name += llvm::isAlnum(c) ? c : '_';
  if (name.empty() || llvm::isDigit(name[0]) || isReserved(name) ||
      name.size() > 40)
    name = "v" + (name.empty() || name.size() > 40 ? "" : "_" + name);
  std::string unique = name == "v" ? "v0" : name;
  for (unsigned i = 1; !used.insert(unique).second; ++i)
    unique = fmt::format("{}{}{}", name, name == "v" ? "" : "_", i);
  return unique;
}

std::string gptc::cuda::sourceNames(Operation *op) {
  llvm::SmallVector<StringRef> names;
  op->walk<WalkOrder::PreOrder>([&](Operation *each) {
    StringRef name = nameIn(each->getLoc());
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(name);
  });
  return llvm::join(names, ", ");
}

//===----------------------------------------------------------------------===//
// Repeated
//===----------------------------------------------------------------------===//

Repeated::Repeated(KernelWriter &w, Value operand)
    : words(!getElementTypeOrSelf(operand.getType()).isF32()) {
  if (auto argument = dyn_cast<BlockArgument>(operand)) {
    unsigned n = argument.getArgNumber();
    base = w.values[n];
    for (auto [i, extent] : llvm::enumerate(w.shape(n))) {
      sizes.push_back(w.size(n, i));
      ones.push_back(extent == 1);
    }
    return;
  }
  DenseElementsAttr constant;
  matchPattern(operand, m_Constant(&constant));
  base = w.name + "_constant";
  // A splat is one word, whatever its shape.
  bool splat = constant.isSplat();
  if (words) {
    llvm::SmallVector<int32_t> all;
    for (const APInt &v : constant.getValues<APInt>()) {
      all.push_back(int32_t(v.getZExtValue()));
      if (splat)
        break;
    }
    printArray<int32_t>(w, base, all);
  } else {
    llvm::SmallVector<float> all;
    for (const APFloat &v : constant.getValues<APFloat>()) {
      all.push_back(v.convertToFloat());
      if (splat)
        break;
    }
    printArray<float>(w, base, all);
  }
  for (int64_t extent : cast<ShapedType>(constant.getType()).getShape()) {
    bool one = extent == 1 || splat;
    sizes.push_back(one ? "1" : fmt::format("{}", extent));
    ones.push_back(one);
  }
}

std::string Repeated::rowOffset(ArrayRef<std::string> shape,
                                StringRef indent) const {
  std::string text = fmt::format("{}long long offset = 0;\n", indent.str());
  if (sizes.empty())
    return text;
  std::string stride = sizes.back(), rest = "row";
  size_t skip = shape.size() - sizes.size();
  for (size_t d = shape.size() - 1; d-- > skip;) {
    bool first = d == 0;
    if (!ones[d - skip])
      text += fmt::format(
          "{}offset += {} * {};\n", indent.str(),
          first ? rest : fmt::format("({} % {})", rest, shape[d]), stride);
    stride += " * " + sizes[d - skip];
    if (!first)
      rest += " / " + shape[d];
  }
  return text;
}

std::string Repeated::at(StringRef offset, StringRef column) const {
  if (sizes.empty() || ones.back())
    return fmt::format("{}[{}]", base, offset.str());
  return fmt::format("{}[{} + {}]", base, offset.str(), column.str());
}
