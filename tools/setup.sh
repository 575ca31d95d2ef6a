#!/usr/bin/env bash
# Looks for what Weft builds with (programs, headers, libraries, wherever they come from), and installs the
# Debian or Ubuntu packages of what is missing. Says nothing and touches no network when nothing is missing.
#
# usage: tools/setup.sh [peers]     peers: also what the comparison with PyTorch needs
set -euo pipefail

compiler=${CXX:-g++}
has_program() { command -v "$1" >/dev/null; }
has_header() {
  has_program "$compiler" &&
    printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | "$compiler" -x c++ -E - >/dev/null 2>&1
}
has_module() { has_program python3 && python3 -c "import $1" 2>/dev/null; }
# A library that CMake finds by pkg-config; PKG_CONFIG_PATH is obeyed.
has_library() { has_program pkg-config && pkg-config --exists "$1"; }

missing=()   # packages
names=()     # what they hold, for those who install by other means
need() {     # need PACKAGE WHAT TEST...
  local package=$1 what=$2
  shift 2
  "$@" || { missing+=("$package"); names+=("$what"); }
}

need g++ "a C++20 compiler (g++ 12 or later)" has_program "$compiler"
need cmake "cmake 3.22 or later" has_program cmake
need ninja-build ninja has_program ninja
need pkg-config pkg-config has_program pkg-config
# A header is not asked of a compiler that is not there: with it come all packages at once.
need libopenblas-pthread-dev OpenBLAS has_library openblas
need libcli11-dev CLI11 has_header CLI/CLI.hpp
need libyaml-cpp-dev yaml-cpp has_header yaml-cpp/yaml.h
need nlohmann-json3-dev "nlohmann-json 3" has_header nlohmann/json.hpp
need libfmt-dev fmt has_header fmt/format.h
need zlib1g-dev zlib has_header zlib.h
need libgtest-dev GoogleTest has_header gtest/gtest.h
need libbenchmark-dev "Google Benchmark" has_header benchmark/benchmark.h
required=${#missing[@]}
# Without protobuf everything but event files for TensorBoard is built.
if ! has_program protoc || ! has_header google/protobuf/message_lite.h; then
  missing+=(protobuf-compiler libprotobuf-dev)
fi
# Without MPI everything but MPI ranks is built.
if ! has_program mpirun || ! has_program mpicxx; then
  missing+=(libopenmpi-dev openmpi-bin)
fi
# Without oneDNN the products of x86-64 processors with AVX-512 are OpenBLAS's, which are slower there.
if [ "$(uname -m)" = x86_64 ] && ! has_header dnnl.h; then
  missing+=(libdnnl-dev)
fi
if [ "${1:-}" = peers ]; then
  need python3-torch PyTorch has_module torch
  need python3-numpy NumPy has_module numpy
fi
[ ${#missing[@]} -eq 0 ] && exit 0

# Without what is only of use, the build goes on.
give_up() {
  [ "$required" -eq 0 ] && [ "${1:-}" != peers ] && exit 0
  echo "weft: $2" >&2
  echo "weft: missing: $(printf '%s; ' "${names[@]}" | sed 's/; $//')" >&2
  echo "weft: the packages of Debian 12 and Ubuntu 24.04 are: ${missing[*]}" >&2
  echo "weft: install them, or make them known (PATH, CPATH, PKG_CONFIG_PATH, CMAKE_PREFIX_PATH), and run make again" >&2
  exit 1
}

has_program apt-get || give_up "${1:-}" "there is no apt-get to install what is missing"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  has_program sudo || give_up "${1:-}" "installing needs root, and there is no sudo"
  as_root=(sudo)
fi
echo "weft: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq || give_up "${1:-}" "apt-get cannot read its package lists"
# Speed alone is worth no failure where no package has it.
if [[ " ${missing[*]} " == *" libdnnl-dev "* ]] && ! apt-cache show libdnnl-dev >/dev/null 2>&1; then
  kept=()
  for package in "${missing[@]}"; do [ "$package" = libdnnl-dev ] || kept+=("$package"); done
  missing=("${kept[@]}")
  [ ${#missing[@]} -eq 0 ] && exit 0
fi
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
  give_up "${1:-}" "apt-get cannot install what is missing"
