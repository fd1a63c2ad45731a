//===- EndToEnd.cpp - a whole run against the graph as written ------------===//

#include "EndToEnd.h"
#include "gptc/Runtime/Host/EntryTensors.h"
#include <cstring>
#include <numeric>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;
using namespace gptc::reference;

EndToEnd::EndToEnd(CheckedModel &model, const host::Package &package,
                   int64_t threads)
    : model(model), package(package), threads(threads),
      checker(model.plan(), model.weights()) {}

std::optional<gptc_model *> EndToEnd::openModel(std::string &error) {
  // The checksum is left out: a damaged weight is to be found in its kernel.
  if (model.hostWeights().empty())
    return package.open(nullptr, error, /*verify=*/false);
  std::vector<gptc_tensor> tensors;
  for (host::Array &array : model.hostWeights())
    tensors.push_back(array.tensor());
  gptc_open_params params{};
  params.size = sizeof(params);
  params.weights = tensors.data();
  params.weight_count = tensors.size();
  gptc_model *fresh = nullptr;
  if (package.api().open(&params, &fresh) == GPTC_OK)
    return fresh;
  error = package.api().last_error();
  return std::nullopt;
}

bool EndToEnd::open(int64_t tokens, std::string &error) {
  const gptc_api &api = package.api();
  auto loaded = openModel(error);
  if (!loaded)
    return false;
  opened.emplace(api, *loaded);
  gptc_limits limits{};
  limits.size = sizeof(limits);
  limits.tokens = limits.rows = tokens;
  limits.threads = static_cast<int32_t>(threads);
  auto fresh = host::openSession(api, opened->get(), limits, error);
  if (!fresh)
    return false;
  session.emplace(std::move(*fresh));
  if (api.observe(session->get(), KernelChecker::observe, &checker) == GPTC_OK)
    return true;
  error = api.last_error();
  return false;
}

int EndToEnd::evaluate(func::FuncOp function, llvm::ArrayRef<TensorRef> args,
                       Precision cached, Results &exact, Results &plain) {
  auto inputs = symbolizePrecision(package.info().precision);
  if (!inputs)
    return report(fmt::format("{}: expected the precision f32, tf32, bf16, "
                              "f16 or int8, got '{}'",
                              package.folder(), package.info().precision));
  for (auto [precision, into] : {std::pair(Precision::Double, &exact),
                                 std::pair(plainPrecision(*inputs), &plain)}) {
    FailureOr<Results> values =
        Evaluator(model.weights(), precision, cached).run(function, args);
    if (failed(values))
      return 1;
    *into = std::move(*values);
  }
  return 0;
}

static OutputReport compareOutput(std::string name, const Tensor &exact,
                                  const Tensor &plain,
                                  llvm::ArrayRef<double> actual) {
  return {std::move(name), exact.shape, compare(exact, plain, actual)};
}

int EndToEnd::steps(llvm::ArrayRef<int32_t> tokens) {
  const gptc_info &info = package.info();
  auto forward = model.graph().lookupSymbol<func::FuncOp>("forward");
  if (!forward || forward.getNumArguments() != 1)
    return report("expected a function @forward of the tokens in the model, "
                  "with which a step can be compared");
  auto count = static_cast<int64_t>(tokens.size());
  if (count > info.context)
    return report(fmt::format("--tokens: expected at most {} tokens, the "
                              "context length, got {}",
                              info.context, count));
  std::string error;
  if (!open(count, error))
    return report(error);

  std::vector<float> logits(count * info.vocab);
  std::vector<int32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  int64_t prefill = std::max<int64_t>(count - 1, 1);
  for (int64_t first = 0; first < count; first += prefill) {
    int64_t size = std::min(prefill, count - first);
    gptc_batch batch{
        size, tokens.data() + first, positions.data() + first, nullptr,
        size, positions.data()};
    if (package.api().step(session->get(), &batch,
                           logits.data() + first * info.vocab) != GPTC_OK)
      return report(package.api().last_error());
  }
  if (checker.failed())
    return 1;

  TensorRef ids = makeInts({count}, {tokens.begin(), tokens.end()});
  Precision cached =
      storedPrecision(static_cast<gptc_dtype>(model.plan().kv.element));
  Results exact, plain;
  if (int status = evaluate(forward, {ids}, cached, exact, plain))
    return status;
  std::vector<double> actual(logits.begin(), logits.end());
  if (exact[0]->elements() != static_cast<int64_t>(actual.size()))
    return report(fmt::format("expected logits {}x{} from @forward, got {}",
                              count, info.vocab, shapeText(exact[0]->shape)));
  results.push_back(compareOutput("logits", *exact[0], *plain[0], actual));
  return 0;
}

static std::vector<double> valuesOf(const host::Array &array) {
  std::vector<double> elements(array.data.size() / 4);
  for (size_t i = 0; i < elements.size(); ++i) {
    float real;
    int32_t whole;
    std::memcpy(&real, &array.data[4 * i], 4);
    std::memcpy(&whole, &array.data[4 * i], 4);
    elements[i] = array.dtype == GPTC_I32 ? whole : real;
  }
  return elements;
}

static TensorRef tensorOf(const host::Array &array) {
  std::vector<double> elements = valuesOf(array);
  if (array.dtype == GPTC_I32)
    return makeInts(array.shape, {elements.begin(), elements.end()});
  return makeTensor(array.shape, std::move(elements));
}

int EndToEnd::entry(const std::string &name, const std::string &inputs) {
  const gptc_api &api = package.api();
  auto function = model.graph().lookupSymbol<func::FuncOp>(name);
  if (!function || function.isDeclaration())
    return report("--entry: no function @" + name + " in the model");
  std::string error;
  auto tensors = host::EntryTensors::find(package, name, error);
  if (!tensors)
    return report("--entry: " + error);
  auto arrays = tensors->read(inputs, error);
  if (!arrays)
    return report(error);
  if (!open(1, error))
    return report(error);

  std::vector<gptc_tensor> given, wanted(function.getNumResults());
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (host::Array &array : *arrays)
      if (array.name == inputName(function, i))
        given.push_back(array.tensor());
  std::vector<host::Array> values(wanted.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    value.name = outputName(function, i);
    wanted[i].name = value.name.c_str();
  }
  auto run = [&] {
    return api.run(session->get(), name.c_str(), given.data(), given.size(),
                   wanted.data(), wanted.size()) == GPTC_OK;
  };
  // First the shapes, unwatched; then the values.
  api.observe(session->get(), nullptr, nullptr);
  if (!run())
    return report(api.last_error());
  for (auto [tensor, value] : llvm::zip(wanted, values)) {
    value.dtype = tensor.dtype;
    value.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    std::optional<int64_t> count = elementCount(value.shape);
    if (!count)
      return report(
          fmt::format("output '{}' is too large to be compared", value.name));
    value.data.resize(*count * 4);
    tensor.data = value.data.data();
    tensor.capacity_bytes = value.data.size();
  }
  api.observe(session->get(), KernelChecker::observe, &checker);
  if (!run())
    return report(api.last_error());
  if (checker.failed())
    return 1;

  llvm::SmallVector<TensorRef> args;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (const host::Array &array : *arrays)
      if (array.name == inputName(function, i))
        args.push_back(tensorOf(array));
  Results exact, plain;
  if (int status = evaluate(function, args, Precision::Single, exact, plain))
    return status;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (exact[i]->shape != value.shape)
      return report(fmt::format("output '{}': expected shape {}, got {}",
                                value.name, shapeText(exact[i]->shape),
                                shapeText(value.shape)));
    results.push_back(
        compareOutput(value.name, *exact[i], *plain[i], valuesOf(value)));
  }
  return 0;
}
