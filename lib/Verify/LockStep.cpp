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

/// Ops whose results are judged where they stand: fused ones (an argmax in a
/// GEMM where its blocks are merged), and the end of an attention that is
/// spelled out.
static bool isJudged(Operation *op) {
  auto matmul = dyn_cast<gpt::MatmulOp>(op);
  return isa<gpt::FusedGemmOp, gpt::FlashAttentionOp, gpt::MergeArgmaxOp>(op) ||
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

llvm::SmallVector<const LockStep::Candidate *, 1>
LockStep::nearest(const Tensor &tensor, bool orRelated) const {
  const Candidate *best = nullptr;
  double least = orRelated ? related : same;
  llvm::SmallVector<const Candidate *, 1> found, merged;
  Tensor numbers;
  if (tensor.kind == Tensor::Kind::Cache)
    numbers.data = numbersOf(tensor, sequence);
  for (const Candidate &each : candidates) {
    if (each.tensor->kind != tensor.kind)
      continue;
    double off = INFINITY;
    if (tensor.kind == Tensor::Kind::Cache) {
      Tensor other;
      other.data = numbersOf(*each.tensor, sequence);
      if (other.data.size() == numbers.data.size())
        off = distance(other, numbers, least);
    } else if (each.tensor->shape == tensor.shape) {
      off = distance(*each.tensor, tensor, least);
    }
    if (off <= same)
      (each.known.merged ? merged : found).push_back(&each);
    if (off <= least) {
      best = &each;
      least = std::max(off, same);
    }
  }
  std::reverse(found.begin(), found.end());
  std::reverse(merged.begin(), merged.end());
  llvm::append_range(found, merged);
  if (found.empty() && best)
    found.push_back(best);
  return found;
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

  if (isJudged(op))
    return visitJudged(op);
  if (op->getNumOperands()) // weights are known by the ops that load them
    for (Value value : op->getResults())
      if (auto found = nearest(*after.values[value], false); !found.empty())
        learn(value, found.front()->known);
  return success();
}

void LockStep::unite(llvm::ArrayRef<const Candidate *> alike) {
  const Known &one = alike.front()->known;
  Value to = first(one.value);
  for (const Candidate *each : alike.drop_front()) {
    Value from = first(each->known.value);
    // Heads that are merged in one alone are numbers in another order.
    if (from == to || each->known.merged != one.merged ||
        each->known.value.getType() != one.value.getType())
      continue;
    for (Value value : equals.lookup(from)) {
      firsts[value] = to;
      equals[to].push_back(value);
    }
    equals.erase(from);
  }
}

/// The results are known as a whole or not at all.
LogicalResult LockStep::visitJudged(Operation *op) {
  StringRef name = op->getName().getStringRef();
  llvm::SmallVector<Pair> pairs;
  for (auto [i, value] : llvm::enumerate(op->getResults())) {
    auto found = nearest(*after.values[value], true);
    if (found.empty() && byPlace)
      if (const Candidate *written = writtenAt(op, i))
        found.push_back(written);
    if (found.empty()) {
      open.push_back(op);
      return success();
    }
    // Several values may have the same numbers but for rounding, as SiLU
    // written in two ways has: all of them are right. Or by chance, as a row
    // and its ReLU: with other numbers only the right one has.
    llvm::SmallVector<const Candidate *, 1> right;
    for (const Candidate *each : found) {
      if (found.size() > 1) {
        auto check = judge(op, {{value, each->known}}, name);
        if (failed(check))
          return failure();
        if (*check && !(*check)->ok())
          continue;
      }
      right.push_back(each);
    }
    if (right.empty())
      right.push_back(found.front());
    unite(right);
    pairs.push_back({value, right.front()->known});
  }
  auto check = judge(op, pairs, name);
  if (failed(check))
    return failure();
  if (*check)
    add(std::move(**check), op, pairs);
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
    llvm::SmallVector<Pair> pairs{{mine, {its, false}}};
    auto check = judge(terminator, pairs,
                       name ? "result '" + name.str() + "'"
                            : "result " + std::to_string(i));
    if (failed(check))
      return failure();
    if (*check)
      add(std::move(**check), terminator, pairs);
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
    if (auto found = nearest(*args[i], false); !found.empty())
      learn(argument, found.front()->known);
  }
  for (Operation &op : body.without_terminator())
    if (failed(visit(&op)))
      return failure();
  return visitResults(body.getTerminator());
}
