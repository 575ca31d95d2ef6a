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

checkpoint=weft/checkpoint
base="weft/base/check.cpp weft/base/error.cpp weft/base/json.cpp weft/base/text.cpp"
config="weft/base/descriptor.cpp weft/base/file.cpp weft/base/file_write.cpp weft/base/pipe.cpp weft/config/*.cpp weft/derive/gpu.cpp weft/words/*.cpp"
declare -A sources=(
  [indexed]="weft/data/indexed_index.cpp"
  [safetensors]="$checkpoint/strict_json.cpp $checkpoint/file_tensor.cpp
    $checkpoint/safetensors_header.cpp"
  [huggingface_config]="weft/config/model_config.cpp weft/derive/layer_kind.cpp
    $checkpoint/strict_json.cpp
    $checkpoint/huggingface_config_read.cpp $checkpoint/huggingface_config_write.cpp
    $checkpoint/huggingface_deepseek.cpp $checkpoint/huggingface_defaults.cpp
    $checkpoint/huggingface_family.cpp $checkpoint/huggingface_keys.cpp
    $checkpoint/huggingface_rope.cpp"
  [words]="$config"
  [recipe]="$config"
)
# Libraries beside fmt.
declare -A libraries=([words]=-lyaml-cpp [recipe]=-lyaml-cpp)

have_libfuzzer() {
  mkdir -p "$build"
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' \
    >"$build/probe.cpp"
  "$compiler" -std=c++20 "$sanitizers" "$build/probe.cpp" -o "$build/probe" 2>/dev/null
}

# The files that a fuzzer calls compile as one: headers are read once for all of them. Two fuzzers with the
# same files share them.
unit_of() {
  local name=$1
  [[ ${sources[$name]} == "$config" ]] && name=config
  echo "$build/${name}_unit"
}

write_unit() {
  local source unit
  unit=$(unit_of "$1")
  for source in ${sources[$1]} $base; do echo "#include \"$source\""; done >"$unit.new"
  cmp -s "$unit.new" "$unit.cpp" && rm "$unit.new" || mv "$unit.new" "$unit.cpp"
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
  export compiler flags_text="${flags[*]}"
  export -f compile
  for name in "${!sources[@]}"; do
    write_unit "$name"
    printf '%s.cpp %s.o\n' "$(unit_of "$name")" "$(unit_of "$name")"
    printf '%s %s\n' "tests/fuzz/${name}_fuzz.cpp" "$build/${name}_fuzz.o"
  done | sort -u | xargs -P "$(nproc)" -L1 bash -c 'set -e; compile "$0" "$1"'
}

# Leaks are looked for when a fuzzer ends; after every input it would take most of the time.
fuzz() {
  local name=$1
  "$compiler" "$sanitizers" "$build/${name}_fuzz.o" "$(unit_of "$name").o" -lfmt ${libraries[$name]:-} \
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
for name in indexed safetensors huggingface_config words recipe; do fuzz "$name"; done
