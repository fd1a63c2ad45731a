//===- Attention.cpp - Attention, dense and over the KV cache -------------===//
//
// Twelve heads of 64, as GPT-2 has them. The cached one is that of a model of
// one layer, of whose steps only this kernel counts.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"
#include <fmt/format.h>

using namespace gptc::bench;

static constexpr int64_t H = 12, D = 64, C = H * D, V = 256, context = 4096;

static std::string denseModel() {
  std::string t = fmt::format("tensor<{}x?x{}xf32>", H, D);
  return fmt::format(
      "module attributes {{gpt.name = \"dense\"}} {{\n"
      "  func.func @attention(%q: {0} {{gpt.arg = \"q\"}}, %k: {0} {{gpt.arg = "
      "\"k\"}}, %v: {0} {{gpt.arg = \"v\"}}) -> ({0} {{gpt.result = "
      "\"out\"}}) {{\n"
      "    %o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 1 : "
      "{0}, {0}\n    return %o : {0}\n  }}\n}}\n",
      t);
}

/// tokens, embedding, three linears, attention, linear.
static std::string cachedModel() {
  std::string text = fmt::format(
      "module attributes {{gpt.name = \"cached\", gpt.context = {} : i64, "
      "gpt.vocab = {} : i64}} {{\n",
      context, V);
  auto square = fmt::format("tensor<{0}x{0}xf32>", C),
       table = fmt::format("tensor<{}x{}xf32>", V, C),
       rows = fmt::format("tensor<?x{}xf32>", C),
       heads = fmt::format("tensor<{}x?x{}xf32>", H, D),
       scores = fmt::format("tensor<{}x?x?xf32>", H),
       logits = fmt::format("tensor<?x{}xf32>", V);
  text += fmt::format("  ml_program.global private @wte(#ml_program.extern) : "
                      "{}\n",
                      table);
  for (const char *name : {"wq", "wk", "wv"})
    text += fmt::format("  ml_program.global private @{}(#ml_program.extern) : "
                        "{}\n",
                        name, square);
  text += fmt::format(
      "  func.func @forward(%tokens: tensor<?xi32>) -> ({} {{gpt.result = "
      "\"logits\"}}) {{\n"
      "    %wte = ml_program.global_load_const @wte : {}\n"
      "    %x = gpt.embedding %wte, %tokens : {}, tensor<?xi32> -> {}\n",
      logits, table, table, rows);
  for (const char *name : {"q", "k", "v"})
    text += fmt::format("    %w{0} = ml_program.global_load_const @w{0} : {1}\n"
                        "    %{0}r = gpt.linear %x, %w{0} : {2}, {1} -> {2}\n"
                        "    %{0} = gpt.split_heads %{0}r : {2} -> {3}\n",
                        name, square, rows, heads);
  text +=
      fmt::format("    %s = gpt.matmul %q, %k transpose_b : {0}, {0} -> {1}\n"
                  "    %c = gpt.scale %s by 0.125 : {1}\n"
                  "    %m = gpt.causal_mask %c : {1}\n"
                  "    %p = gpt.softmax %m : {1}\n"
                  "    %o = gpt.matmul %p, %v : {1}, {0} -> {0}\n"
                  "    %merged = gpt.merge_heads %o : {0} -> {2}\n"
                  "    %y = gpt.linear %merged, %wte : {2}, {3} -> {4}\n"
                  "    return %y : {4}\n  }}\n}}\n",
                  heads, scores, rows, table, logits);
  return text;
}

static void dense(benchmark::State &state) {
  Compiled *compiled = compiledOnce(state, denseModel());
  if (!compiled)
    return;
  int64_t tokens = state.range(0), threads = state.range(1);
  std::vector<Input> inputs;
  for (const char *name : {"q", "k", "v"})
    inputs.push_back({name, {H, tokens, D}, randomNumbers(tokens * C)});
  compiled->run(threads, "attention", inputs, "out");
  for (auto _ : state)
    state.SetIterationTime(
        compiled->run(threads, "attention", inputs, "out", "attention"));
  setRates(state, 2.0 * C * double(tokens) * double(tokens + 1),
           4.0 * 4 * C * double(tokens));
}

/// `tokens` more of each of `sequences` that have `keys` already.
static void cached(benchmark::State &state) {
  Compiled *compiled = compiledOnce(state, cachedModel());
  if (!compiled)
    return;
  int64_t sequences = state.range(0), keys = state.range(1),
          tokens = state.range(2), threads = state.range(3);
  for (int64_t at = 0; at < keys; at += 64)
    compiled->step(threads, sequences, 64, at, "");
  for (auto _ : state)
    state.SetIterationTime(
        compiled->step(threads, sequences, tokens, keys, "attention"));
  double each = double(tokens) * double(keys) + tokens * (tokens + 1) / 2.0;
  setRates(state, 4.0 * C * each * double(sequences),
           4.0 * 2 * C * double(sequences * (keys + 2 * tokens)));
}

void gptc::bench::registerAttention() {
  benchmark::RegisterBenchmark("attention/dense", dense)
      ->ArgNames({"tokens", "threads"})
      ->ArgsProduct({{64, 512, 2048}, threadCounts()})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("attention/cached", cached)
      ->ArgNames({"sequences", "keys", "tokens", "threads"})
      ->ArgsProduct({{1, 8}, {512, 3968}, {1, 64}, threadCounts()})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}
