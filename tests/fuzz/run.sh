#!/usr/bin/env bash
# Builds each fuzzer and runs it from its kept seeds.
# usage: tests/fuzz/run.sh [SECONDS_EACH=5] [BUILD_FOLDER=build/fuzz]; exit 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds_each=${1:-5}
build=${2:-build/fuzz}
compiler=${CLANGXX:-clang++}
sanitizers=-fsanitize=fuzzer,address
flags=(-std=c++20 -O1 -gline-tables-only -I. -DFMT_SHARED "$sanitizers")

# The engine's files in units that each compile as one: headers are read once for all files of a unit, and
# units compile beside each other.
checkpoint=weft/checkpoint
declare -A units=(
  [base]="weft/base/check.cpp weft/base/error.cpp weft/base/json.cpp weft/base/text.cpp"
  [indexed]="weft/data/integer_type.cpp weft/data/indexed_index.cpp"
  [npy]="weft/data/integer_type.cpp weft/data/npy.cpp"
  [safetensors]="$checkpoint/strict_json.cpp $checkpoint/file_tensor.cpp
    $checkpoint/safetensors_header.cpp"
  [manifest]="$checkpoint/strict_json.cpp $checkpoint/file_tensor.cpp $checkpoint/manifest.cpp
    $checkpoint/manifest_read.cpp $checkpoint/step_folders.cpp weft/base/crc32c.cpp
    weft/base/crc32c_instruction.cpp weft/base/shape.cpp weft/base/slice.cpp
    weft/base/files/descriptor.cpp weft/base/files/file.cpp weft/base/files/file_write.cpp"
  [huggingface_config]="weft/config/model_config.cpp weft/derive/layer_kind.cpp
    $checkpoint/strict_json.cpp $checkpoint/huggingface_balance.cpp
    $checkpoint/huggingface_config_read.cpp $checkpoint/huggingface_config_write.cpp
    $checkpoint/huggingface_deepseek.cpp $checkpoint/huggingface_defaults.cpp
    $checkpoint/huggingface_family.cpp $checkpoint/huggingface_keys.cpp
    $checkpoint/huggingface_rope.cpp"
  [chrome]="weft/trace/*.cpp weft/base/files/descriptor.cpp weft/base/files/file.cpp"
  [config]="weft/base/files/descriptor.cpp weft/base/files/file.cpp weft/base/files/file_write.cpp weft/base/files/pipe.cpp
    weft/config/*.cpp weft/derive/gpu.cpp weft/derive/evaluation_sets.cpp"
  [words]="weft/words/*.cpp"
)
# What each fuzzer links.
declare -A linked=(
  [indexed]="indexed base"
  [npy]="npy base"
  [safetensors]="safetensors base"
  [manifest]="manifest base"
  [huggingface_config]="huggingface_config base"
  [chrome]="chrome base"
  [words]="words config base"
  [recipe]="words config base"
)
# The longest first, so that no core waits for one at the end.
order="config words chrome huggingface_config manifest safetensors indexed npy base"
# Libraries beside fmt.
declare -A libraries=([words]=-lyaml-cpp [recipe]=-lyaml-cpp [chrome]=-lz)

have_libfuzzer() {
  mkdir -p "$build"
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' \
    >"$build/probe.cpp"
  "$compiler" -std=c++20 "$sanitizers" "$build/probe.cpp" -o "$build/probe" 2>/dev/null
}

write_if_new() {
  cat >"$1.new"
  cmp -s "$1.new" "$1" && rm "$1.new" || mv "$1.new" "$1"
}

write_unit() {
  local source
  for source in ${units[$1]}; do echo "#include \"$source\""; done | write_if_new "$build/${1}_unit.cpp"
}

# The heavy headers that nearly every unit reads, compiled once.
compile_headers() {
  printf '#include <%s>\n' algorithm filesystem functional map memory optional set span sstream string \
    variant vector fmt/format.h fmt/ranges.h nlohmann/json.hpp | write_if_new "$build/headers.h"
  "$compiler" "${flags[@]}" -x c++-header "$build/headers.h" -o "$build/headers.pch"
}

# Compiles one source unless its object is newer than every file of the engine.
compile() {
  if [[ ! -e $2 || $1 -nt $2 || -n $(find weft -newer "$2" -print -quit) ]]; then
    "$compiler" $flags_text -c "$1" -o "$2"
  fi
}

# Every unit and every fuzzer once, on all cores.
compile_all() {
  local name
  compile_headers
  export compiler flags_text="${flags[*]} -include-pch $build/headers.pch"
  export -f compile
  for name in $order; do
    write_unit "$name"
    printf '%s.cpp %s.o\n' "$build/${name}_unit" "$build/${name}_unit"
  done >"$build/jobs"
  for name in "${!linked[@]}"; do
    printf '%s %s\n' "tests/fuzz/${name}_fuzz.cpp" "$build/${name}_fuzz.o"
  done >>"$build/jobs"
  xargs -P "$(nproc)" -L1 bash -c 'set -e; compile "$0" "$1"' <"$build/jobs"
}

# Leaks are looked for when a fuzzer ends; after every input it would take most of the time.
fuzz() {
  local name=$1 unit objects=()
  for unit in ${linked[$name]}; do objects+=("$build/${unit}_unit.o"); done
  "$compiler" "$sanitizers" "$build/${name}_fuzz.o" "${objects[@]}" -lfmt ${libraries[$name]:-} \
    -o "$build/${name}_fuzz"
  mkdir -p "$build/corpus/$name"
  if ! "$build/${name}_fuzz" -max_total_time="$seconds_each" -max_len=65536 -timeout=10 -detect_leaks=0 \
    -rss_limit_mb=2048 -artifact_prefix="$build/$name-" \
    "$build/corpus/$name" "tests/fuzz/seeds/$name" >"$build/$name.log" 2>&1; then
    echo "$name: a finding; the input is kept beside $build/$name.log"
    tail -40 "$build/$name.log"
    exit 1
  fi
  echo "$name: $(tail -1 "$build/$name.log")"
}

if ! have_libfuzzer; then
  echo "skipped: no clang++ with libFuzzer"
  exit 77
fi
compile_all
for name in indexed npy safetensors manifest huggingface_config chrome words recipe; do fuzz "$name"; done
