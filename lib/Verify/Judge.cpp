//===- Judge.cpp - what a fused op computes beside what it should ---------===//

#include "LockStep.h"
#include "MadeInputs.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::verify;
using namespace gptc::reference;

/// "linear x3, split_heads": what is no weight or constant, in order.
static std::string opsText(const Slice &slice) {
  llvm::MapVector<StringRef, int64_t> names;
  for (Operation *op : slice.ops)
    if (!isa<ml_program::GlobalLoadConstOp, arith::ConstantOp>(op))
      ++names[op->getDialect()->getNamespace() == "gpt"
                  ? op->getName().stripDialect()
                  : op->getName().getStringRef()];
  std::string text;
  for (auto [name, count] : names) {
    text += (text.empty() ? "" : ", ") + name.str();
    if (count > 1)
      text += fmt::format(" x{}", count);
  }
  return text;
}

/// Adds what `given` makes of both slices to the check.
LogicalResult LockStep::measure(const Slice &fused, const Slice &unfused,
                                llvm::ArrayRef<Pair> pairs, const Values &given,
                                FusionCheck &check) {
  auto inputs = [&](const Slice &slice, bool isFused, bool rounded) {
    Values values;
    for (Value value : slice.inputs) {
      TensorRef tensor;
      if (!isFused)
        tensor = given.lookup(value);
      else if (auto it = known.find(value); it != known.end())
        tensor = tensorOf(it->second, given);
      else
        tensor = after.values.lookup(value);
      values[value] = rounded ? roundedToF32(tensor) : tensor;
    }
    return values;
  };
  Values right = inputs(unfused, false, false),
         single = inputs(unfused, false, true),
         fusedRight = inputs(fused, true, false),
         fusedSingle = inputs(fused, true, true);
  if (failed(evaluateSlice(exact, unfused, right)) ||
      failed(evaluateSlice(plain, unfused, single)) ||
      failed(evaluateSlice(exact, fused, fusedRight)) ||
      failed(evaluateSlice(plain, fused, fusedSingle)))
    return failure();
  for (const Pair &pair : pairs) {
    auto numbers = [&](const TensorRef &tensor) {
      return numbersOf(*tensor, sequence);
    };
    TensorRef wantedTensor = tensorOf(pair.before, right),
              unfusedTensor = tensorOf(pair.before, single);
    auto wanted = numbers(wantedTensor);
    auto unfusedNumbers = numbers(unfusedTensor);
    auto ofDouble = numbers(fusedRight.lookup(pair.after));
    auto ofSingle = numbers(fusedSingle.lookup(pair.after));
    if (ofDouble.size() != wanted.size() || ofSingle.size() != wanted.size())
      return pair.after.getDefiningOp()->emitError("expected ")
             << wanted.size() << " numbers, got " << ofDouble.size();
    auto against = [&](llvm::ArrayRef<double> actual) {
      return wantedTensor->kind == Tensor::Kind::Cache
                 ? compare(wanted, unfusedNumbers, actual)
                 : compare(*wantedTensor, *unfusedTensor, actual);
    };
    Difference inSingle = against(ofSingle), inDouble = against(ofDouble),
               base = against(unfusedNumbers);
    // Fused in double, it must keep the bound, too.
    Difference worse = inDouble.ok() ? inSingle : inDouble;
    bool isWorst = check.count == 0 || worse.worseThan(check.worst);
    check.count = 1;
    if (isWorst) {
      check.worst = worse;
      check.plainError = base.error;
      check.doubleError = inDouble.error;
    }
  }
  return success();
}

/// From the values that the fused slice begins with to `targets`; with `equal`
/// also from values of equal numbers. `apart`: nothing else takes part.
Slice LockStep::unfusedSlice(const Slice &fused, ArrayRef<Value> targets,
                             bool equal, bool &apart) const {
  llvm::DenseSet<Value> ends, firsts;
  for (Value value : fused.inputs)
    if (auto it = known.find(value); it != known.end()) {
      ends.insert(it->second.value);
      firsts.insert(first(it->second.value));
    }
  auto isEnd = [&](Value value) {
    return ends.contains(value) ||
           (equal && !llvm::is_contained(targets, value) &&
            firsts.contains(first(value)));
  };
  Slice slice = sliceOf(targets, isEnd);
  apart = llvm::all_of(slice.inputs, [&](Value value) {
    return isEnd(value) || !live.contains(value);
  });
  return slice;
}

FailureOr<std::optional<FusionCheck>>
LockStep::judge(Operation *op, llvm::ArrayRef<Pair> pairs,
                llvm::StringRef made) {
  llvm::SmallVector<Value> mine, its;
  for (const Pair &pair : pairs) {
    mine.push_back(pair.after);
    its.push_back(pair.before.value);
  }
  Slice fused =
      sliceOf(mine, [&](Value value) { return known.contains(value); });
  FusionCheck check;
  check.fusion = fusion;
  check.function = after.function.getSymName().str();
  check.made = made.str();
  check.place = placeOf(op->getLoc());
  // Numbers may be equal because values are (a copy) or by chance.
  std::optional<FusionCheck> result;
  for (bool equal : {true, false}) {
    bool apart;
    Slice unfused = unfusedSlice(fused, its, equal, apart);
    if (fused.ops.empty() && unfused.ops.empty())
      return std::optional<FusionCheck>(); // the same value
    check.of = opsText(unfused);
    check.count = 0;
    if (failed(measure(fused, unfused, pairs, before.values, check)))
      return failure();
    // Again with numbers of their own, unless something else takes part that
    // depends on them.
    if (apart && !fused.ops.empty() &&
        failed(
            measure(fused, unfused, pairs, ownNumbers(fused, unfused), check)))
      return failure();
    if (!result || check.ok())
      result = check;
    if (check.ok())
      break;
  }
  return result;
}

/// The values before, those that the slices begin with replaced.
Values LockStep::ownNumbers(const Slice &fused, const Slice &unfused) const {
  Values given = before.values;
  std::mt19937_64 random(1);
  llvm::DenseMap<Value, TensorRef> numbers; // by the first of equal values
  auto give = [&](Value value) {
    const TensorRef &tensor = before.values.at(value);
    if (!live.contains(value) || tensor->kind != Tensor::Kind::Float ||
        llvm::any_of(tensor->data, [](double x) { return !std::isfinite(x); }))
      return;
    TensorRef &own = numbers[first(value)];
    if (!own)
      own = makeTensor(tensor->shape, uniform(random, tensor->elements(), 1,
                                              tensor->columns()));
    given[value] = own;
  };
  for (Value value : fused.inputs)
    if (auto it = known.find(value); it != known.end())
      give(it->second.value);
  llvm::for_each(unfused.inputs, give);
  return given;
}

void LockStep::add(FusionCheck check, Operation *op,
                   llvm::ArrayRef<Pair> pairs) {
  llvm::SmallVector<Value> values;
  for (const Pair &pair : pairs)
    values.push_back(pair.after);
  if (check.ok()) {
    Slice fused =
        sliceOf(values, [&](Value value) { return known.contains(value); });
    llvm::erase_if(open, [&](Operation *each) {
      return llvm::is_contained(fused.ops, each);
    });
  } else if (!open.empty()) {
    // The first fused op that nothing has answered for is the likely cause.
    blamesOthers = true;
    check.place = placeOf(open.front()->getLoc());
    check.made =
        (open.front()->getName().getStringRef() + ", seen in " + check.made)
            .str();
  }
  checks.push_back(std::move(check));
}
