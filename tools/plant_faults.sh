#!/usr/bin/env bash
# Plants the faults of tests/faults.txt one by one, builds, and runs the test that must see each.
#
# usage: tools/plant_faults.sh [BUILD_FOLDER=build/dev] [NUMBER...]     the first fault is 1; none named: all
#
# Every file is put back as it was. Exit 1: a fault that is not seen, or a test that fails without one.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
shift || true
wanted=" $* "

promise=() file=() line=() fault=() seen_by=()
while IFS= read -r text; do
  case $text in
    "promise: "*) promise+=("${text#*: }") ;;
    "file: "*) file+=("${text#*: }") ;;
    "line: "*) line+=("${text#*: }") ;;
    "fault: "*) fault+=("${text#*: }") ;;
    "seen by: "*) seen_by+=("${text#*: }") ;;
  esac
done <tests/faults.txt

log=$(mktemp) kept=$(mktemp) planted=""
restore() {
  [ -z "$planted" ] || cp "$kept" "$planted"
  planted=""
}
trap 'restore; rm -f "$log" "$kept"' EXIT
trap 'exit 130' INT TERM

built() { cmake --build "$build" -j "$(nproc)" --target all_tests comm_mpi_ranks >"$log" 2>&1; }
# passed PROGRAM FILTER: 0 passed, 1 failed, 77 skipped.
passed() {
  timeout 600 "$build/bin/$1" --gtest_filter="$2" >"$log" 2>&1 || return 1
  grep -q '^\[  PASSED  \] [1-9]' "$log" || return 77
}

bad=0
say() { printf '%2d  %-9s %s\n' "$(($1 + 1))" "$2" "${promise[$1]}"; }
built || { cat "$log"; exit 1; }
for i in "${!promise[@]}"; do
  [ "$wanted" = "  " ] || [[ $wanted == *" $((i + 1)) "* ]] || continue
  read -r program filter <<<"${seen_by[$i]}"
  code=0
  passed "$program" "$filter" || code=$?
  if [ "$code" -ne 0 ]; then
    if [ "$code" -eq 77 ]; then say "$i" skipped; else say "$i" "FAILS WITHOUT IT" && bad=1; fi
    continue
  fi
  planted=$(grep -rlF --include="${file[$i]}" -e "${line[$i]}" weft)
  cp "$planted" "$kept"
  content=$(<"$planted")
  printf '%s\n' "${content/"${line[$i]}"/"${fault[$i]}"}" >"$planted"
  if ! built; then
    say "$i" "DOES NOT COMPILE" && bad=1
    grep -m 3 'error' "$log" || true
  elif passed "$program" "$filter"; then
    say "$i" "NOT SEEN" && bad=1
  else
    say "$i" seen
  fi
  restore
done
built || { cat "$log"; exit 1; }
exit "$bad"
