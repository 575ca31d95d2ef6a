#!/usr/bin/env bash
# Installs what Weft builds with, on Debian 12 and Ubuntu 24.04. Says what is missing before it installs;
# says nothing and touches no network when nothing is.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libopenblas-pthread-dev libopenmpi-dev openmpi-bin
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
  libgtest-dev libbenchmark-dev
)
# `tools/setup.sh peers` adds what the comparison with PyTorch needs.
[ "${1:-}" = peers ] && packages+=(python3-torch python3-numpy)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "weft: missing packages, and no apt-get to install them: ${missing[*]}" >&2
  echo "weft: install their counterparts of your system, then run make again" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "weft: run as root, or install sudo, to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "weft: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
