#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (default 2) from its seeds
# and the inputs kept in test/Regression: test/Fuzz/run.sh [SECONDS] [TARGET...]
# GPTC_FUZZ_RUNS=N: N executions each instead, GPTC_FUZZ_SEED=N: the same ones
# every time. What was found lies in build/fuzz/found; the grown corpora in
# build/fuzz/corpus are used again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/setup.sh"
packages+=(libclang-rt-22-dev)
install_packages
build=${GPTC_FUZZ_BUILD:-$root/build/fuzz}
seconds=${1:-2}
shift || true

mkdir -p "$(dirname "$build")"
cmake -S "$root" --preset fuzz -B "$build" > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
targets=("$@")
if [ $# = 0 ]; then
  ninja -C "$build" fuzzers fuzzers-mlir
  for binary in "$build"/bin/fuzz-*; do
    targets+=("${binary##*/fuzz-}")
  done
else
  ninja -C "$build" "${targets[@]/#/fuzz-}"
fi
python3 "$root/test/Fuzz/seeds.py" "$build/seeds"
mkdir -p "$build/found"

# Bytes of an input: what a format needs to be whole, and no more, for speed.
declare -A longest=([gguf]=2048 [torch-zip]=1600 [llmc-bin]=160 [safetensors]=1024 [tokenizer-json]=3072 [tokenizer-gpt2]=3072 [tokenizer-file]=2300 [tokenizer-text]=128 [chat-template]=1500 [package]=1400 [import]=1200 [import-gguf]=4096 [mlir]=3000 [ptx]=1024)
limit=(-max_total_time="$seconds")
[ -z "${GPTC_FUZZ_RUNS:-}" ] || limit=(-runs="$GPTC_FUZZ_RUNS")
[ -z "${GPTC_FUZZ_SEED:-}" ] || limit+=(-seed="$GPTC_FUZZ_SEED")
failed=()
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target kept=$root/test/Regression/fuzz-$target
  mkdir -p "$corpus"
  folders=("$corpus" "$build/seeds/$target")
  [ ! -d "$kept" ] || folders+=("$kept")
  if "$build/bin/fuzz-$target" "${limit[@]}" -max_len="${longest[$target]:-512}" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 \
      -artifact_prefix="$build/found/$target-" -print_final_stats=1 "${folders[@]}" > "$build/found/$target.log" 2>&1; then
    echo "$target: $(sed -n 's/.*number_of_executed_units: *//p' "$build/found/$target.log") executions"
  else
    echo "$target: FAILED, see $build/found/$target.log"
    failed+=("$target")
  fi
done
[ ${#failed[@]} = 0 ]
