#!/usr/bin/env bash
# Builds the preset asan (ASan, UBSan, leaks) or tsan (data races) and runs every
# test under it: test/sanitize.sh PRESET [ctest arguments]
# A test may well expect a program to fail, or not look at what it says, so all
# reports go to files of build/PRESET/reports, and any fails the run.
# Not instrumented: LLVM's libraries and the code of packages.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/setup.sh"
preset=${1:-}
case $preset in
asan | tsan) shift ;;
*) fail "expected asan or tsan, got '$preset'" ;;
esac
build=${GPTC_SANITIZE_BUILD:-$root/build/$preset}
reports=$build/reports

install_packages
mkdir -p "$build"
cmake -S "$root" --preset "$preset" -B "$build" "-DPython3_EXECUTABLE=$(python_with numpy)" "-DGPTC_SMOLLM2_GGUF=$smollm2" >"$build/configure.log" ||
  fail "cmake failed; its output is in $build/configure.log"
ninja -C "$build" -j "$(nproc)"
fetch_smollm2
fetch_gpt2_vocabulary
export GPTC_SMOLLM2_GGUF="$smollm2" GPTC_GPT2_VOCAB_DIR="$gpt2_vocab"

# A status that none of our programs has, so that a test of a refusal fails too.
common="exitcode=99 log_path='$reports/report'"
# Slabs and containers that LLVM's headers poison here are unpoisoned by code of
# the same headers in LLVM's libraries, which does not do so: no manual marks.
export ASAN_OPTIONS="$common detect_leaks=1 strict_string_checks=1 allow_user_poisoning=0"
export UBSAN_OPTIONS="print_stacktrace=1"
# An unlock that libMLIR leaves to its caller's return (a tail call) counts as
# ours, its lock does not (test/Sanitizers/races.txt). LLVM's crash recovery
# jumps out of the signal handler, in which TSan then takes us to be for good.
export TSAN_OPTIONS="$common suppressions='$root/test/Sanitizers/races.txt' report_mutex_bugs=0 report_signal_unsafe=0"
export ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-22/bin/llvm-symbolizer
export TSAN_SYMBOLIZER_PATH=$ASAN_SYMBOLIZER_PATH
# Tests that measure what a program costs allow for the sanitizer.
export GPTC_SANITIZER=$preset

rm -rf "$reports"
mkdir -p "$reports"
status=0
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@" || status=$?
for report in "$reports"/*; do
  [ -e "$report" ] || break
  cat "$report" >&2
  status=1
done
exit "$status"
