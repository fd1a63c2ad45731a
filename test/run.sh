#!/usr/bin/env bash
# Installs what is missing, builds, fetches the two models that tests read, and
# runs every test. Arguments go to ctest: test/run.sh -R golden
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/setup.sh"

# Lesser CPUs, and a locale with decimal commas.
programs+=(qemu-x86_64:qemu-user localedef:locales)
install_packages
build
fetch_smollm2
fetch_gpt2_vocabulary
export GPTC_SMOLLM2_GGUF="$smollm2" GPTC_GPT2_VOCAB_DIR="$gpt2_vocab"
exec ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"
