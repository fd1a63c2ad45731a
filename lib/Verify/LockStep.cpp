//===- LockStep.cpp - a function beside the one it was made of ------------===//

#include "LockStep.h"
#include "MadeInputs.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::verify;
using namespace gptc::reference;

/// Rounding of double, over the sums of one op.
static constexpr double same = 1e-12;
/// Farther than this from everything known, a value is a new one.
static constexpr double related = 0.05;

LogicalResult Evaluated::run(llvm::ArrayRef<TensorRef> args,
                             WeightSource &weights) {
  Evaluator evaluator(&weights);
  Block &body = function.getBody().front();
  if (args.size() != body.getNumArguments())
    return failure();
  for (auto [argument, tensor] : llvm::zip(body.getArguments(), args))
    values[argument] = tensor;
  for (Operation &op : body.without_terminator()) {
    llvm::SmallVector<TensorRef> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    FailureOr<Results> results = evaluatePure(evaluator, &op, operands);
    if (failed(results))
      return failure();
    for (auto [value, tensor] : llvm::zip(op.getResults(), *results))
      values[value] = tensor;
  }
  return success();
}

static std::string nameOf(Location location) {
  std::string name;
  location->walk([&](Location each) {
    if (auto named = dyn_cast<NameLoc>(each); named && name.empty())
      name = named.getName().str();
    return WalkResult::advance();
  });
  return name;
}

std::string gptc::verify::placeOf(Location location) {
  std::string place, name = nameOf(location);
  if (auto range = location->findInstanceOf<FileLineColRange>())
    place = fmt::format("{}:{}:{}",
                        llvm::sys::path::filename(range.getFilename()).str(),
                        range.getStartLine(), range.getStartColumn());
  if (place.empty() && name.empty())
    return "an unknown place";
  return place + (place.empty() || name.empty() ? "" : " ") +
         (name.empty() ? "" : "%" + name);
}

/// Ops whose results are judged where they stand: fused ones, and the end of
/// an attention that is spelled out.
static bool isJudged(Operation *op) {
  auto matmul = dyn_cast<gpt::MatmulOp>(op);
  return isa<gpt::FusedGemmOp, gpt::FlashAttentionOp>(op) ||
         (matmul && !matmul.getTransposeB());
}

LockStep::LockStep(const Evaluated &before, func::FuncOp after,
                   WeightSource &weights, llvm::StringRef fusion,
                   int64_t sequence)
    : after{after, Values()}, before(before), exact(&weights),
      plain(&weights, Precision::Single), fusion(fusion), sequence(sequence) {
  addCandidates();
}

void LockStep::addCandidates() {
  // By their numbers; of big tensors (weights), by whose they are.
  std::map<std::pair<std::vector<int64_t>, std::vector<double>>, Value> seen;
  llvm::DenseMap<const Tensor *, Value> seenTensors;
  auto classify = [&](Value value) {
    const TensorRef &tensor = before.values.at(value);
    Value other = seenTensors.try_emplace(tensor.get(), value).first->second;
    if (tensor->kind != Tensor::Kind::Cache && tensor->elements() < 1 << 16)
      other = seen.try_emplace({tensor->shape, elementsOf(*tensor)}, other)
                  .first->second;
    firsts[value] = other;
    equals[other].push_back(value);
  };
  auto add = [&](Value value) {
    live.insert(value);
    const TensorRef &tensor = before.values.at(value);
    candidates.push_back({{value, false}, tensor});
    if (tensor->kind != Tensor::Kind::Cache && tensor->rank() >= 3)
      candidates.push_back({{value, true}, withMergedHeads(*tensor)});
  };
  func::FuncOp function = before.function;
  Block &body = function.getBody().front();
  for (Value argument : body.getArguments()) {
    classify(argument);
    add(argument);
  }
  for (Operation &op : body) {
    llvm::for_each(op.getResults(), classify);
    if (llvm::any_of(op.getOperands(),
                     [&](Value value) { return live.contains(value); }))
      llvm::for_each(op.getResults(), add);
  }
}

Value LockStep::first(Value value) const { return firsts.lookup(value); }

/// The largest difference in units of the largest element; gives up above
/// `enough`.
static double distance(const Tensor &right, const Tensor &got, double enough) {
  double largest = 0, off = 0;
  for (int64_t i = 0, e = right.elements(); i < e; ++i)
    if (double element = std::fabs(right.at(i)); std::isfinite(element))
      largest = std::max(largest, element);
  for (int64_t i = 0, e = right.elements(); i < e; ++i) {
    double a = right.at(i), b = got.at(i);
    if (a == b)
      continue;
    double each = std::fabs(a - b);
    if (!(each <= enough * largest))
      return INFINITY;
    off = std::max(off, each);
  }
  return off == 0 ? 0 : off / largest;
}

std::pair<const LockStep::Candidate *, double>
LockStep::nearest(const Tensor &tensor) const {
  const Candidate *best = nullptr;
  double least = INFINITY;
  Tensor numbers;
  if (tensor.kind == Tensor::Kind::Cache)
    numbers.data = numbersOf(tensor, sequence);
  for (const Candidate &each : candidates) {
    if (each.tensor->kind != tensor.kind)
      continue;
    double off = INFINITY, enough = std::min(least, 1.0);
    if (tensor.kind == Tensor::Kind::Cache) {
      Tensor other;
      other.data = numbersOf(*each.tensor, sequence);
      if (other.data.size() == numbers.data.size())
        off = distance(other, numbers, enough);
    } else if (each.tensor->shape == tensor.shape) {
      off = distance(*each.tensor, tensor, enough);
    }
    if (off < least) {
      best = &each;
      least = off;
      if (off == 0)
        break;
    }
  }
  return {best, least};
}

const LockStep::Candidate *LockStep::writtenAt(Operation *op,
                                               unsigned index) const {
  Location place = op->getLoc();
  if (auto fused = dyn_cast<FusedLoc>(place);
      fused && fused.getLocations().size() == op->getNumResults())
    place = fused.getLocations()[index];
  const Tensor &tensor = *after.values.lookup(op->getResult(index));
  for (const Candidate &each : candidates)
    if (Operation *other = each.known.value.getDefiningOp();
        other && other->getLoc() == place && each.tensor->kind == tensor.kind &&
        each.tensor->shape == tensor.shape)
      return &each;
  return nullptr;
}

TensorRef LockStep::tensorOf(const Known &known, const Values &values) const {
  TensorRef tensor = values.lookup(known.value);
  return known.merged ? withMergedHeads(*tensor) : tensor;
}

void LockStep::learn(Value value, Known what) {
  after.values[value] = tensorOf(what, before.values);
  known[value] = what;
}

/// An op of the function before that is `op` on the same operands.
Operation *LockStep::sameOp(Operation *op) const {
  auto isSame = [&](Operation *other) {
    if (other->getName() != op->getName() ||
        other->getNumOperands() != op->getNumOperands() ||
        other->getResultTypes() != op->getResultTypes() ||
        other->getNumRegions() != op->getNumRegions() ||
        other->getAttrDictionary() != op->getAttrDictionary())
      return false;
    for (auto [mine, its] : llvm::zip(op->getOperands(), other->getOperands()))
      if (auto it = known.find(mine); it == known.end() || it->second.merged ||
                                      first(it->second.value) != first(its))
        return false;
    for (auto [mine, its] : llvm::zip(op->getRegions(), other->getRegions()))
      if (!OperationEquivalence::isRegionEquivalentTo(
              &mine, &its, OperationEquivalence::IgnoreLocations))
        return false;
    return true;
  };
  if (op->getNumOperands()) {
    auto it = known.find(op->getOperand(0));
    if (it == known.end())
      return nullptr;
    for (Value value : equals.lookup(first(it->second.value)))
      for (Operation *user : value.getUsers())
        if (isSame(user))
          return user;
    return nullptr;
  }
  func::FuncOp function = before.function;
  for (Operation &other : function.getBody().front())
    if (isSame(&other))
      return &other;
  return nullptr;
}

LogicalResult LockStep::visit(Operation *op) {
  if (Operation *other = sameOp(op)) {
    for (auto [mine, its] : llvm::zip(op->getResults(), other->getResults()))
      learn(mine, {its, false});
    return success();
  }
  llvm::SmallVector<TensorRef> operands;
  for (Value operand : op->getOperands())
    operands.push_back(after.values.lookup(operand));
  FailureOr<Results> results = evaluatePure(exact, op, operands);
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
    after.values[value] = tensor;

  bool judged = isJudged(op);
  llvm::SmallVector<Pair> pairs;
  for (Value value : op->getResults()) {
    // Weights are known by the ops that load them.
    if (op->getNumOperands() == 0)
      break;
    auto [candidate, off] = nearest(*after.values[value]);
    bool near = off <= (judged ? related : same);
    if (!near && judged && byPlace) {
      candidate = writtenAt(op, cast<OpResult>(value).getResultNumber());
      near = candidate;
    }
    if (near)
      pairs.push_back({value, candidate->known});
  }
  if (judged && pairs.size() == op->getNumResults()) {
    if (failed(judge(op, pairs, op->getName().getStringRef())))
      return failure();
  } else if (judged) {
    open.push_back(op);
    return success(); // known as a whole or not at all
  }
  for (const Pair &pair : pairs)
    learn(pair.after, pair.before);
  return success();
}

LogicalResult LockStep::visitResults(Operation *terminator) {
  func::FuncOp function = before.function;
  Operation *other = function.getBody().front().getTerminator();
  for (auto [i, its] : llvm::enumerate(other->getOperands())) {
    Value mine = terminator->getOperand(i);
    auto name = after.function.getResultAttrOfType<StringAttr>(i, "gpt.result");
    if (failed(judge(terminator, {{mine, {its, false}}},
                     name ? "result '" + name.str() + "'"
                          : "result " + std::to_string(i))))
      return failure();
  }
  return success();
}

LogicalResult LockStep::run(llvm::ArrayRef<TensorRef> args) {
  Block &body = after.function.getBody().front();
  func::FuncOp function = before.function;
  Block &its = function.getBody().front();
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    after.values[argument] = args[i];
    if (i < its.getNumArguments()) {
      learn(argument, {its.getArgument(i), false});
      continue;
    }
    // The positions of a step are computed in what it was made of.
    auto [candidate, off] = nearest(*args[i]);
    if (off == 0)
      learn(argument, candidate->known);
  }
  for (Operation &op : body.without_terminator())
    if (failed(visit(&op)))
      return failure();
  return visitResults(body.getTerminator());
}

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
    auto wanted = numbers(tensorOf(pair.before, right));
    auto unfusedNumbers = numbers(tensorOf(pair.before, single));
    auto ofDouble = numbers(fusedRight.lookup(pair.after));
    auto ofSingle = numbers(fusedSingle.lookup(pair.after));
    if (ofDouble.size() != wanted.size() || ofSingle.size() != wanted.size())
      return pair.after.getDefiningOp()->emitError("expected ")
             << wanted.size() << " numbers, got " << ofDouble.size();
    Difference inSingle = compare(wanted, unfusedNumbers, ofSingle);
    Difference inDouble = compare(wanted, unfusedNumbers, ofDouble);
    Difference base = compare(wanted, wanted, unfusedNumbers);
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

LogicalResult LockStep::judge(Operation *op, llvm::ArrayRef<Pair> pairs,
                              llvm::StringRef made) {
  llvm::SmallVector<Value> mine, its;
  for (const Pair &pair : pairs) {
    mine.push_back(pair.after);
    its.push_back(pair.before.value);
  }
  Slice fused =
      sliceOf(mine, [&](Value value) { return known.contains(value); });
  // The same numbers may have several names: each is where the slice ends.
  llvm::MapVector<Value, Value> ends; // in the order of the ops
  for (Value value : fused.inputs)
    if (auto it = known.find(value); it != known.end())
      ends[it->second.value] = it->second.value;
  llvm::SmallVector<Value> endValues(llvm::make_first_range(ends));
  Slice unfused = sliceOf(its, [&](Value value) {
    if (ends.contains(value))
      return true;
    TensorRef tensor = before.values.lookup(value);
    for (Value end : endValues) {
      TensorRef other = before.values.lookup(end);
      if (tensor == other ||
          (live.contains(value) && tensor->kind != Tensor::Kind::Cache &&
           tensor->kind == other->kind && tensor->shape == other->shape &&
           distance(*other, *tensor, same) <= same)) {
        ends[value] = end;
        return true;
      }
    }
    return false;
  });

  if (fused.ops.empty() && unfused.ops.empty())
    return success(); // the same value

  FusionCheck check;
  check.fusion = fusion;
  check.function = after.function.getSymName().str();
  check.made = made.str();
  check.place = placeOf(op->getLoc());
  check.of = opsText(unfused);
  check.count = 0;
  if (failed(measure(fused, unfused, pairs, before.values, check)))
    return failure();

  // Again with numbers of their own, unless something else takes part that
  // depends on them.
  bool apart = llvm::all_of(unfused.inputs, [&](Value value) {
    return ends.contains(value) || !live.contains(value) ||
           before.values.lookup(value)->kind != Tensor::Kind::Float;
  });
  if (apart && !fused.ops.empty()) {
    Values given = before.values;
    std::mt19937_64 random(1);
    for (Value value : endValues) {
      const TensorRef &tensor = before.values.at(value);
      if (!live.contains(value) || tensor->kind != Tensor::Kind::Float ||
          llvm::any_of(tensor->data,
                       [](double x) { return !std::isfinite(x); }))
        continue;
      given[value] =
          makeTensor(tensor->shape,
                     uniform(random, tensor->elements(), 1, tensor->columns()));
    }
    for (auto [value, end] : ends)
      given[value] = given[end];
    if (failed(measure(fused, unfused, pairs, given, check)))
      return failure();
  }
  if (check.ok())
    llvm::erase_if(open, [&](Operation *each) {
      return llvm::is_contained(fused.ops, each);
    });
  // The first fused op that nothing has answered for is the likely cause.
  if (!check.ok() && !open.empty()) {
    blamesOthers = true;
    check.place = placeOf(open.front()->getLoc());
    check.made =
        (open.front()->getName().getStringRef() + ", seen in " + made).str();
  }
  checks.push_back(std::move(check));
  return success();
}
