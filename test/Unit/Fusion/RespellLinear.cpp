//===- RespellLinear.cpp - projections in other spellings -----------------===//
//
// N output features, K input features, D head size.
//
//===----------------------------------------------------------------------===//

#include "RespellParts.h"

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

static RankedTensorType withLast(Value x, int64_t last) {
  auto type = cast<RankedTensorType>(x.getType());
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.back() = last;
  return RankedTensorType::get(shape, type.getElementType());
}

static bool hasPlainWeight(gpt::LinearOp op, Site &site) {
  return site.tensorOf(op.getWeight()) &&
         (!op.getBias() || site.tensorOf(op.getBias()));
}

/// Rows [N, K] as a weight of either orientation.
static Value makeWeight(Site &site, llvm::StringRef name,
                        llvm::ArrayRef<double> rows, int64_t K, bool inOut) {
  int64_t N = static_cast<int64_t>(rows.size()) / K;
  std::vector<double> data(rows);
  if (!inOut)
    return site.weight(name, {N, K}, std::move(data));
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k < K; ++k)
      data[k * N + n] = rows[n * K + k];
  return site.weight(name, {K, N}, std::move(data));
}

static Value linear(Site &site, Location loc, Value x, Value weight, Value bias,
                    bool inOut, int64_t N) {
  return gpt::LinearOp::create(site.builder, loc, withLast(x, N), x, weight,
                               bias, inOut);
}

bool gptc::fuzz::flipWeight(Site &site) {
  auto op = site.pick<gpt::LinearOp>([&](gpt::LinearOp each) {
    return bool(site.tensorOf(each.getWeight()));
  });
  if (!op)
    return false;
  bool inOut = !op.getInOut();
  Value flipped =
      makeWeight(site, "flipped", rowsOf(op.getWeight(), op.getInOut(), site),
                 op.inFeatures(), inOut);
  op.getWeightMutable().assign(flipped);
  op.setInOut(inOut);
  return true;
}

/// Some linears of one activation, in random order; at least two, or none.
static llvm::SmallVector<gpt::LinearOp> siblings(Site &site) {
  auto first = site.pick<gpt::LinearOp>(
      [&](gpt::LinearOp each) { return hasPlainWeight(each, site); });
  llvm::SmallVector<gpt::LinearOp> found;
  if (!first)
    return found;
  for (Operation *user : first.getX().getUsers())
    if (auto each = dyn_cast<gpt::LinearOp>(user);
        each && each.getX() == first.getX() && hasPlainWeight(each, site) &&
        !llvm::is_contained(found, each))
      found.push_back(each);
  site.choice.shuffle(found);
  if (found.size() < 2)
    return {};
  found.resize(site.choice.between(2, static_cast<int64_t>(found.size())));
  return found;
}

namespace {
/// The rows and biases of several linears, one after the other.
struct Packed {
  std::vector<double> rows, bias;
  bool anyBias = false;
};
} // namespace

static Packed pack(llvm::ArrayRef<gpt::LinearOp> linears, Site &site) {
  Packed packed;
  for (gpt::LinearOp op : linears) {
    llvm::append_range(packed.rows,
                       rowsOf(op.getWeight(), op.getInOut(), site));
    packed.anyBias |= bool(op.getBias());
    if (op.getBias())
      llvm::append_range(packed.bias, site.tensorOf(op.getBias())->data);
    else
      packed.bias.resize(packed.bias.size() + op.outFeatures());
  }
  return packed;
}

static gpt::LinearOp firstOf(llvm::ArrayRef<gpt::LinearOp> linears) {
  gpt::LinearOp first = linears.front();
  for (gpt::LinearOp op : linears)
    if (op->isBeforeInBlock(first))
      first = op;
  return first;
}

bool gptc::fuzz::mergeLinears(Site &site) {
  auto linears = siblings(site);
  if (linears.empty())
    return false;
  int64_t K = linears.front().inFeatures();
  Packed packed = pack(linears, site);
  bool inOut = site.choice.chance(40);
  auto N = static_cast<int64_t>(packed.bias.size());
  Value weight = makeWeight(site, "packed", packed.rows, K, inOut);
  Value bias =
      packed.anyBias ? site.weight("packed.b", {N}, packed.bias) : Value();
  gpt::LinearOp first = firstOf(linears);
  site.builder.setInsertionPoint(first);
  Location loc = first.getLoc();
  Value y = linear(site, loc, first.getX(), weight, bias, inOut, N);
  llvm::SmallVector<Type> types;
  for (gpt::LinearOp op : linears)
    types.push_back(op.getType());
  auto split = gpt::SplitOp::create(site.builder, loc, types, y);
  for (auto [op, part] : llvm::zip(linears, split.getResults())) {
    op.getResult().replaceAllUsesWith(part);
    op.erase();
  }
  return true;
}

/// Output features [offset, offset + N) of a weight or bias.
static Value slice(Site &site, Location loc, Value value, int64_t axis,
                   int64_t offset, int64_t N) {
  auto type = cast<RankedTensorType>(value.getType());
  OpBuilder &b = site.builder;
  llvm::SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1)), sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  offsets[axis] = b.getIndexAttr(offset);
  sizes[axis] = b.getIndexAttr(N);
  return tensor::ExtractSliceOp::create(b, loc, value, offsets, sizes, strides);
}

/// Linears stay apart and take slices of one weight.
bool gptc::fuzz::shareWeight(Site &site) {
  auto linears = siblings(site);
  if (linears.empty())
    return false;
  int64_t K = linears.front().inFeatures(), offset = 0;
  Packed packed = pack(linears, site);
  bool inOut = site.choice.chance(40);
  Value weight = makeWeight(site, "shared", packed.rows, K, inOut);
  Value bias;
  if (packed.anyBias)
    bias = site.weight("shared.b", {static_cast<int64_t>(packed.bias.size())},
                       packed.bias);
  for (gpt::LinearOp op : linears) {
    int64_t N = op.outFeatures();
    site.builder.setInsertionPoint(op);
    Value part = slice(site, op.getLoc(), weight, inOut ? 1 : 0, offset, N);
    op.getWeightMutable().assign(part);
    op.setInOut(inOut);
    if (bias) {
      Value partBias = slice(site, op.getLoc(), bias, 0, offset, N);
      op.getBiasMutable().assign(partBias);
    }
    offset += N;
  }
  return true;
}

bool gptc::fuzz::splitPacked(Site &site) {
  auto split = site.pick<gpt::SplitOp>([&](gpt::SplitOp each) {
    auto op = each.getX().getDefiningOp<gpt::LinearOp>();
    return op && op->hasOneUse() && hasPlainWeight(op, site);
  });
  if (!split)
    return false;
  auto op = split.getX().getDefiningOp<gpt::LinearOp>();
  std::vector<double> rows = rowsOf(op.getWeight(), op.getInOut(), site);
  int64_t K = op.inFeatures(), offset = 0;
  for (Value part : split.getResults()) {
    int64_t N = cast<RankedTensorType>(part.getType()).getShape().back();
    Value bias;
    if (op.getBias()) {
      llvm::ArrayRef<double> all = site.tensorOf(op.getBias())->data;
      bias = site.weight("part.b", {N}, all.slice(offset, N).vec());
    }
    bool inOut = site.choice.chance(40);
    Value weight = makeWeight(
        site, "part", llvm::ArrayRef(rows).slice(offset * K, N * K), K, inOut);
    site.builder.setInsertionPoint(op);
    part.replaceAllUsesWith(
        linear(site, op.getLoc(), op.getX(), weight, bias, inOut, N));
    offset += N;
  }
  split.erase();
  op.erase();
  return true;
}

namespace {
/// Linears of one activation whose results are split into the same heads, and
/// their weights packed head by head: [H][linear][D] rows.
struct ByHead {
  llvm::SmallVector<gpt::LinearOp> linears;
  int64_t D = 0, K = 0;
  bool inOut = false;
  Value weight, bias;
  RankedTensorType heads;

  int64_t parts() const { return static_cast<int64_t>(linears.size()); }
};
} // namespace

static gpt::SplitHeadsOp headsOf(gpt::LinearOp op) {
  return dyn_cast_or_null<gpt::SplitHeadsOp>(soleUser(op.getResult()));
}

/// Nothing if there are fewer than two of them.
static std::optional<ByHead> packHeads(Site &site) {
  auto fits = [&](gpt::LinearOp op) {
    return headsOf(op) && hasPlainWeight(op, site);
  };
  auto like = site.pick<gpt::LinearOp>(fits);
  if (!like)
    return std::nullopt;
  ByHead result;
  for (Operation *user : like.getX().getUsers())
    if (auto op = dyn_cast<gpt::LinearOp>(user);
        op && op.getX() == like.getX() && fits(op) &&
        headsOf(op).getType() == headsOf(like).getType())
      result.linears.push_back(op);
  if (result.parts() < 2)
    return std::nullopt;
  site.choice.shuffle(result.linears);
  result.heads = headsOf(like).getType();
  result.D = result.heads.getShape().back();
  result.K = like.inFeatures();
  int64_t H = result.heads.getDimSize(result.heads.getRank() - 3);
  int64_t D = result.D, K = result.K, P = result.parts();
  Packed apart = pack(result.linears, site);
  std::vector<double> rows(apart.rows.size()), bias(apart.bias.size());
  for (int64_t h = 0; h < H; ++h)
    for (int64_t p = 0; p < P; ++p)
      for (int64_t d = 0; d < D; ++d) {
        int64_t to = (h * P + p) * D + d, from = (p * H + h) * D + d;
        bias[to] = apart.bias[from];
        std::copy_n(apart.rows.begin() + from * K, K, rows.begin() + to * K);
      }
  result.inOut = site.choice.chance(40);
  result.weight = makeWeight(site, "by.head", rows, K, result.inOut);
  if (apart.anyBias)
    result.bias = site.weight("by.head.b", {P * H * D}, bias);
  return result;
}

/// Queries, keys and values of a head lie together in one projection; heads are
/// split first and parts then.
bool gptc::fuzz::packByHead(Site &site) {
  std::optional<ByHead> packed = packHeads(site);
  if (!packed)
    return false;
  gpt::LinearOp at = firstOf(packed->linears);
  site.builder.setInsertionPoint(at);
  Location loc = at.getLoc();
  int64_t P = packed->parts();
  llvm::SmallVector<int64_t> shape(packed->heads.getShape());
  int64_t N = P * packed->D * shape[shape.size() - 3];
  Value y = linear(site, loc, at.getX(), packed->weight, packed->bias,
                   packed->inOut, N);
  shape.back() = P * packed->D;
  auto heads = gpt::SplitHeadsOp::create(
      site.builder, loc,
      RankedTensorType::get(shape, packed->heads.getElementType()), y);
  auto split = gpt::SplitOp::create(
      site.builder, loc, llvm::SmallVector<Type>(P, packed->heads), heads);
  for (auto [op, part] : llvm::zip(packed->linears, split.getResults())) {
    gpt::SplitHeadsOp old = headsOf(op);
    old.getResult().replaceAllUsesWith(part);
    old.erase();
    op.erase();
  }
  return true;
}

/// The same weight, of which each projection takes its part of every head.
bool gptc::fuzz::shareByHead(Site &site) {
  std::optional<ByHead> packed = packHeads(site);
  if (!packed)
    return false;
  int64_t D = packed->D, of = packed->parts() * D;
  for (auto [p, op] : llvm::enumerate(packed->linears)) {
    site.builder.setInsertionPoint(op);
    auto part = [&, p = p](Value whole, int64_t axis) -> Value {
      auto type = cast<RankedTensorType>(whole.getType());
      llvm::SmallVector<int64_t> shape(type.getShape());
      shape[axis] = shape[axis] / of * D;
      return gpt::HeadPartOp::create(
          site.builder, op.getLoc(),
          RankedTensorType::get(shape, type.getElementType()), whole,
          static_cast<uint64_t>(axis), p * D, D, of);
    };
    op.getWeightMutable().assign(part(packed->weight, packed->inOut ? 1 : 0));
    op.setInOut(packed->inOut);
    if (packed->bias)
      op.getBiasMutable().assign(part(packed->bias, 0));
  }
  return true;
}

/// Two linears side by side.
bool gptc::fuzz::cutLinear(Site &site) {
  auto op = site.pick<gpt::LinearOp>([&](gpt::LinearOp each) {
    return hasPlainWeight(each, site) && each.outFeatures() > 1;
  });
  if (!op)
    return false;
  int64_t N = op.outFeatures(), K = op.inFeatures();
  int64_t cut = site.choice.between(1, N - 1);
  std::vector<double> rows = rowsOf(op.getWeight(), op.getInOut(), site);
  llvm::SmallVector<Value> parts;
  for (auto [from, to] : {std::pair(int64_t(0), cut), std::pair(cut, N)}) {
    int64_t width = to - from;
    Value bias;
    if (op.getBias()) {
      llvm::ArrayRef<double> all = site.tensorOf(op.getBias())->data;
      bias = site.weight("cut.b", {width}, all.slice(from, width).vec());
    }
    Value weight = makeWeight(
        site, "cut", llvm::ArrayRef(rows).slice(from * K, width * K), K, false);
    site.builder.setInsertionPoint(op);
    parts.push_back(
        linear(site, op.getLoc(), op.getX(), weight, bias, false, width));
  }
  Value joined = tensor::ConcatOp::create(
      site.builder, op.getLoc(), op.getType(),
      cast<RankedTensorType>(op.getType()).getRank() - 1, parts);
  op.getResult().replaceAllUsesWith(joined);
  op.erase();
  return true;
}

/// x W^T, then + b.
bool gptc::fuzz::biasAfter(Site &site) {
  auto op = site.pick<gpt::LinearOp>(
      [](gpt::LinearOp each) { return bool(each.getBias()); });
  if (!op)
    return false;
  site.builder.setInsertionPoint(op);
  Value y = linear(site, op.getLoc(), op.getX(), op.getWeight(), Value(),
                   op.getInOut(), op.outFeatures());
  Value bias = gpt::BroadcastOp::create(site.builder, op.getLoc(), y.getType(),
                                        op.getBias(), y);
  Value left = y, right = bias;
  if (site.choice.chance(50))
    std::swap(left, right);
  Value sum = arith::AddFOp::create(site.builder, op.getLoc(), left, right);
  op.getResult().replaceAllUsesWith(sum);
  op.erase();
  return true;
}
