//===- ToyModel.cpp - Kernels and program of the toy package --------------===//
//
// With TOY_SINGLE the step entry sees one sequence at a time, as -O0 code does,
// and keeps its scores in a [T, S] buffer. With TOY_FATBIN, a file of the
// functions of ToyKernels.cu, the package is one for a GPU.
//
//===----------------------------------------------------------------------===//

#include "ToyModel.h"
#include "gptc/Format/Program.h"
#include "gptc/Format/WeightLayout.h"
#include <cstring>

using namespace toy;

namespace {

constexpr int64_t panels = (V + NR - 1) / NR;

float table(const void *packed, int64_t token, int64_t d) {
  return static_cast<const float *>(
      packed)[(token / NR * D + d) * NR + token % NR];
}

/// Calls f(token index, run) for this thread's share of the tokens.
template <typename F>
void eachToken(const gptc_kv_view &view, int64_t thread, int64_t threads, F f) {
  for (int64_t r = 0; r < view.run_count; ++r)
    for (int64_t i = 0; i < view.runs[r].count; ++i)
      if ((view.runs[r].first + i) % threads == thread)
        f(view.runs[r].first + i, view.runs[r]);
}

float *key(const gptc_kv_view &view, int64_t sequence, int64_t position,
           int64_t d) {
  int64_t p = view.pages[sequence * view.max_pages + position / page];
  char *block = view.pool + p * layers * blockBytes;
  return reinterpret_cast<float *>(block) + d * page + position % page;
}

/// args: tokens, positions, table, bias, cache 0, cache 1; dims: T
void append(void *const *args, const int64_t *, void *, int64_t thread,
            int64_t threads) {
  auto *tokens = static_cast<const int32_t *>(args[0]);
  auto *positions = static_cast<const int32_t *>(args[1]);
  auto *bias = static_cast<const float *>(args[3]);
  for (int64_t l = 0; l < layers; ++l) {
    auto &view = *static_cast<const gptc_kv_view *>(args[4 + l]);
    eachToken(view, thread, threads, [&](int64_t t, const gptc_run_desc &run) {
      for (int64_t d = 0; d < D; ++d)
        *key(view, run.sequence, positions[t], d) =
            float(l + 1) *
            (table(args[2], tokens[t], d) + bias[d] * float(positions[t]));
    });
  }
}

/// args: positions, cache 0, cache 1, h [T, D], scores; dims: T (, S)
void attend(void *const *args, const int64_t *dims, void *scratch,
            int64_t thread, int64_t threads) {
  auto *positions = static_cast<const int32_t *>(args[0]);
  auto &first = *static_cast<const gptc_kv_view *>(args[1]);
  auto *h = static_cast<float *>(args[3]);
  auto *sum = static_cast<float *>(scratch);
  eachToken(first, thread, threads, [&](int64_t t, const gptc_run_desc &run) {
    for (int64_t d = 0; d < D; ++d)
      sum[d] = 0;
    for (int64_t j = 0; j <= positions[t]; ++j)
      for (int64_t l = 0; l < layers; ++l)
        for (int64_t d = 0; d < D; ++d)
          sum[d] += float(j + 1) *
                    *key(*static_cast<const gptc_kv_view *>(args[1 + l]),
                         run.sequence, j, d);
    for (int64_t d = 0; d < D; ++d)
      h[t * D + d] = sum[d];
#ifdef TOY_SINGLE
    for (int64_t s = 0; s < dims[1]; ++s) // must be there to be written
      static_cast<float *>(args[4])[t * dims[1] + s] = 1;
#endif
  });
}

/// args: h, rows, table, logits [R, V]; dims: R
void head(void *const *args, const int64_t *dims, void *, int64_t thread,
          int64_t threads) {
  auto *h = static_cast<const float *>(args[0]);
  auto *rows = static_cast<const int32_t *>(args[1]);
  auto *logits = static_cast<float *>(args[3]);
  for (int64_t r = 0; r < dims[0]; ++r)
    for (int64_t v = thread; v < V; v += threads) {
      float sum = 0;
      for (int64_t d = 0; d < D; ++d)
        sum += table(args[2], v, d) * h[rows[r] * D + d];
      logits[r * V + v] = sum;
    }
}

/// args: x, index, table, y; dims: n
void gather(void *const *args, const int64_t *dims, void *scratch,
            int64_t thread, int64_t threads) {
  auto *x = static_cast<const float *>(args[0]);
  auto *index = static_cast<const int32_t *>(args[1]);
  auto *y = static_cast<float *>(args[3]);
  auto *row = static_cast<float *>(scratch);
  for (int64_t i = thread; i < dims[0]; i += threads)
    for (int64_t d = 0; d < D; ++d) {
      row[d] = table(args[2], index[i], d);
      y[i * D + d] = x[i * D + d] + row[d];
    }
}

constexpr gptc_arg in(int i) { return {GPTC_ARG_INPUT, i}; }
constexpr gptc_arg out(int i) { return {GPTC_ARG_OUTPUT, i}; }
constexpr gptc_arg buffer(int i) { return {GPTC_ARG_BUFFER, i}; }
constexpr gptc_arg weight(int i) { return {GPTC_ARG_WEIGHT, i}; }
constexpr gptc_arg cache(int i) { return {GPTC_ARG_CACHE, i}; }

#ifdef TOY_SINGLE
constexpr int32_t attendDims = 2, keysDim = 2, kind = GPTC_ENTRY_STEP_SINGLE;
#else
constexpr int32_t attendDims = 1, keysDim = -1, kind = GPTC_ENTRY_STEP;
#endif

const gptc_arg appendArgs[] = {in(0),     in(1),    weight(0),
                               weight(1), cache(0), cache(1)};
const gptc_arg attendArgs[] = {in(1), cache(0), cache(1), buffer(0), buffer(1)};
const gptc_arg headArgs[] = {buffer(0), in(3), weight(0), out(0)};
const gptc_arg gatherArgs[] = {in(0), in(1), weight(0), out(0)};

#ifdef TOY_FATBIN
#define TOY_TEXT(x) #x
#define TOY_PATH(x) TOY_TEXT(x)
extern "C" const char toyFatbin[];
asm(".section .rodata\n.balign 16\n.globl toyFatbin\ntoyFatbin:\n.incbin "
    "\"" TOY_PATH(TOY_FATBIN) "\"\n.previous\n");

const char *const functions[] = {"toy_append", "toy_attend", "toy_head",
                                 "toy_gather"};
const gptc_device_code deviceCode = {toyFatbin, functions, 4, 80};
const gptc_device_code *const device = &deviceCode;

/// A thread for each of the first dimension times `each`.
constexpr gptc_launch launchOf(int32_t function, int64_t each) {
  gptc_extent one = {1, 1, {-1, -1, -1, -1, -1, -1, -1, -1}};
  return {
      function, 32, 0, {{each, 32, {0, -1, -1, -1, -1, -1, -1, -1}}, one, one}};
}
const gptc_launch launches[] = {launchOf(0, 1), launchOf(1, 1), launchOf(2, V),
                                launchOf(3, D)};
const gptc_variant variants[] = {{INT64_MAX, launches + 0, 1},
                                 {INT64_MAX, launches + 1, 1},
                                 {INT64_MAX, launches + 2, 1},
                                 {INT64_MAX, launches + 3, 1}};
/// Of all tokens.
constexpr int8_t scratchDim = 0;

constexpr gptc_call_desc callOf(gptc_kernel_fn, const char *name,
                                const gptc_arg *args, int32_t argCount,
                                int32_t dimCount, int8_t dim, int8_t second,
                                int64_t scratch, int32_t kernel) {
  return {nullptr,
          name,
          args,
          argCount,
          dimCount,
          {dim, second},
          scratch,
          scratch ? scratchDim : int8_t(-1),
          {},
          1,
          variants + kernel};
}
#else
const gptc_device_code *const device = nullptr;

constexpr gptc_call_desc callOf(gptc_kernel_fn fn, const char *name,
                                const gptc_arg *args, int32_t argCount,
                                int32_t dimCount, int8_t dim, int8_t second,
                                int64_t scratch, int32_t) {
  return {fn,      name, args, argCount, dimCount, {dim, second},
          scratch, -1,   {},   0,        nullptr};
}
#endif

/// More than a step's.
constexpr int64_t gatherScratch = D * 256;

const gptc_call_desc stepCalls[] = {
    callOf(append, "append", appendArgs, 6, 1, 0, 0, 0, 0),
    callOf(attend, "attend", attendArgs, 5, attendDims, 0, 2, D * 4, 1),
    callOf(head, "head", headArgs, 4, 1, 1, 0, 0, 2)};
const gptc_call_desc gatherCalls[] = {
    callOf(gather, "gather", gatherArgs, 4, 1, 0, 0, gatherScratch, 3)};

const gptc_size buffers[] = {{D * 4, {0, -1, -1, -1}, 0},
                             {4, {0, keysDim, -1, -1}, 1}};
const gptc_value_desc stepInputs[] = {{"tokens", GPTC_I32, 1, {-1}},
                                      {"positions", GPTC_I32, 1, {-1}},
                                      {"sequences", GPTC_I32, 1, {-1}},
                                      {"rows", GPTC_I32, 1, {-2}}};
const gptc_value_desc stepOutputs[] = {{"logits", GPTC_F32, 2, {-2, V}}};
const gptc_value_desc gatherInputs[] = {
    {"x", GPTC_F32, 2, {-1, D}},
    {"index", GPTC_I32, 1, {-1, 0, 0, 0, 0, 0, 0, V}}};
const gptc_value_desc gatherOutputs[] = {{"y", GPTC_F32, 2, {-1, D}}};

const gptc_entry_desc entries[] = {
    {"step", kind, kind == GPTC_ENTRY_STEP_SINGLE ? 3 : 2, 0, 1, keysDim, 4, 1,
     2, 2, 3, stepInputs, stepOutputs, buffers, stepCalls, nullptr},
    {"gather", GPTC_ENTRY_PLAIN, 1, -1, -1, -1, 2, 1, 0, 0, 1, gatherInputs,
     gatherOutputs, nullptr, gatherCalls, nullptr}};

constexpr uint64_t tableBytes = panels * NR * D * 4, biasBytes = 256;
const gptc_weight_desc weightTable[] = {
    {"table", GPTC_F32, GPTC_F32, GPTC_LAYOUT_PANEL, 0, V, D, 0, V, 0, 0, D, NR,
     64, tableBytes, 0},
    {"bias", GPTC_F32, GPTC_F32, GPTC_LAYOUT_VECTOR, 0, 1, D, 0, D, 0, 0, 1, 1,
     64 + tableBytes, biasBytes, 0}};

const gptc_info info = {sizeof(gptc_info),
                        "toy",
                        "any",
                        "f32",
                        context,
                        V,
                        page,
                        layers *blockBytes,
                        tableBytes + biasBytes,
                        /*eos=*/-1,
                        /*bos=*/-1,
                        2};

constexpr uint64_t sectionBytes = 64 + tableBytes + biasBytes;
constexpr uint64_t packageHash = 0x1234;
const gptc_program program = {sizeof(gptc_program),
                              &info,
                              packageHash,
                              2,
                              2,
                              entries,
                              weightTable,
                              0,
                              sectionBytes,
                              sectionBytes,
                              {layers, 1, D, page, blockBytes, GPTC_F32, 0},
                              "sse2",
                              device};
/// For a CPU that there is not: passed over.
const gptc_info futureInfo = [] {
  gptc_info info = {};
  info.name = info.target = "future";
  return info;
}();
const gptc_program future = {sizeof(gptc_program),
                             &futureInfo,
                             packageHash,
                             0,
                             0,
                             nullptr,
                             nullptr,
                             0,
                             0,
                             sectionBytes,
                             {},
                             "sse2,no-such-feature",
                             device};
const gptc_program *const programs[] = {&future, &program};

} // namespace

extern "C" {
extern const uint64_t toyPackageHash = packageHash;
extern const gptc_programs gptc_the_programs
    __attribute__((visibility("hidden")));
const gptc_programs gptc_the_programs = {2, programs};
/// What makes a shared library of it a package for gptc-run.
const gptc_api *toy_api(void) { return gptc_core_api(); }
}

toy::Weights::Weights() : table(V * D), bias(D) {
  for (int64_t v = 0; v < V; ++v)
    for (int64_t d = 0; d < D; ++d)
      table[v * D + d] = tableAt(v, d);
  for (int64_t d = 0; d < D; ++d)
    bias[d] = biasAt(d);
  tensors[0] = {"unused", GPTC_F16, 1, {3}, nullptr, 0};
  tensors[1] = {"bias", GPTC_F32, 1, {D}, bias.data(), 0};
  tensors[2] = {"table", GPTC_F32, 2, {V, D}, table.data(), 0};
}

std::vector<char> toy::weightsFile() {
  Weights weights;
  std::vector<char> file(program.weights_file_bytes);
  gptc_pack_weight(&weightTable[0], weights.table.data(), file.data() + 64);
  gptc_pack_weight(&weightTable[1], weights.bias.data(),
                   file.data() + weightTable[1].offset);
  gptc_weights_header header{};
  std::memcpy(header.magic, GPTC_WEIGHTS_MAGIC, 8);
  header.package_hash = toyPackageHash;
  header.file_bytes = file.size();
  header.checksum = gptc_checksum(0, file.data() + 64, file.size() - 64);
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}
