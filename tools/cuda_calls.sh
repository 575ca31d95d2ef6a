#!/usr/bin/env bash
# What a step asks of CUDA, and whether it waits where it should not. `weft train tiny` runs for 64 steps under a
# library that counts calls (tools/cuda_calls.cpp), and 16 of them are looked at, from the 40th on: by then memory
# is planned (steps 1, 2, 4, 8, 16 and 32 are watched), and no step is logged.
#
# usage: tools/cuda_calls.sh [FOLDER]
#   FOLDER   for what was counted; build/cuda_calls without one
#
# Exit code 1 where a step does what it must not; 77 where there is no GPU, or no CUPTI to count with.
#
# Never in a step: memory that is taken, pinned or given back; copies that wait; copies of memory that
# is not pinned, which wait too; anything on the default stream; a wait for the whole device; new streams and
# events.
#
# How many rows come varies, so that a step may need more memory than any before and map it (cuMemMap): that waits for no
# work of the card (a test of regions holds it). One in four steps may do so at most, of all ranks together.
#
# The thread of a rank may wait for the card
#   - once for each `sizes` node: a layer and micro-batch whose rows the host must know; none with fixed sizes;
#   - before the first node, for the numbers of the step before (1);
#   - at the end: for the sums of all ranks before it decides on the update (1), to read them (1), and for each
#     of its streams (as many as there are).
# Its waits are calls of cudaEventSynchronize; a wait for what is over already makes no call, so that there may
# be fewer. Ranks that share a card exchange rows through threads of their own, which wait for their stream
# before each exchange and after each copy (cudaStreamSynchronize): that holds up no other stream. With NCCL such a
# thread waits only where rows are counted on the card (a row budget): it reads how many to send. These waits are
# shown and not judged.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
case ${1:-} in -*) sed -n '2,9s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] && exit 0; exit 2 ;; esac

bin=$PWD/build/release/bin
weft=$bin/weft
counter=$bin/libweft_cuda_calls.so
out=${1:-build/cuda_calls}
steps=64 counted=16
mkdir -p "$out"
if [ ! -f "$counter" ]; then
  echo "no $counter: build the target weft_cuda_calls (it needs CUPTI, which is part of the CUDA toolkit)"
  exit 77
fi
if ! "$weft" doctor 2>/dev/null | grep -q '^  GPU 0'; then
  echo "no GPU that this build can use: nothing was counted"
  exit 77
fi

fixed=(train.micro_batch_size=2 train.global_batch_size=8 train.eval_interval=0 logger.log_interval=1000)
fixed+=(runtime.device=cuda)
count() {  # count NAME WORD...
  local name=$1
  shift
  rm -rf "$out/$name.run" "$out/$name.json"
  WEFT_CUDA_CALLS=$out/$name.json CUDA_INJECTION64_PATH=$counter timeout --kill-after=10 300 \
    "$weft" train tiny "${fixed[@]}" train.train_iters="$steps" runtime.run_dir="$out/$name.run" "$@" \
    >"$out/$name.log" 2>&1 && [ -s "$out/$name.json" ]
}

# judge NAME RANKS SIZES: a line of the table; exit code 1 where something is not as it must be. The threads of
# ranks are those that wait for events.
judge() {
  awk -v name="$1" -v ranks="$2" -v sizes="$3" -v steps="$counted" -v list="$out/$1.txt" '
    function field(key, text) {
      if (!match($0, "\"" key "\": *(\"[^\"]*\"|[0-9]+)")) return ""
      text = substr($0, RSTART, RLENGTH)
      sub("^\"" key "\": *", "", text)
      gsub("\"", "", text)
      return text
    }
    field("call") != "" {
      thread = field("thread")
      calls[thread, field("call")] += field("count")
      threads[thread] = 1
      names[field("call")] = 1
      if (field("call") == "cudaEventSynchronize") of_rank[thread] = 1
    }
    field("made") == "cudaStreamCreateWithPriority" { streams += field("count") }
    field("work") != "" { work[field("work")] += field("count") }
    field("work") ~ /^(dropped|failed)/ { lost += field("count") }
    function per_step(n) { return n / steps / ranks }
    END {
      for (n in names) for (t in threads) {
        more = calls[t, n]
        all[n] += more
        if (t in of_rank) own[n] += more; else others[n] += more
      }
      for (n in all) {
        total += all[n]
        if (n == "cuMemMap") mapped += all[n]
        if (n !~ /^cuMem(Create|Map|SetAccess|Release)$/ && n ~ /^cu(da)?(Malloc|Free|HostAlloc|HostRegister|HostUnregister|Mem(Alloc|Free|Host|Create|Release|Map|Unmap|SetAccess|AddressReserve|AddressFree|Pool))/) memory += all[n]
        if (n ~ /^cu(da)?(Stream|Event)(Create|Destroy)/) made += all[n]
        if (n ~ /^cu(da)?(Memcpy|Memset)/ && n !~ /Async/) waiting += all[n]
        if (n ~ /^(cudaDevice|cudaThread|cuCtx)Synchronize/) device += all[n]
        if (n ~ /^cu(da)?Launch/) launches += all[n]
        if (n ~ /^cu(da)?(Stream|Event)Synchronize/) { waits += own[n]; exchanges += others[n] }
        if (all[n] != 0) printf "%10.2f %10.2f  %s\n", per_step(own[n]), per_step(others[n]), n > list
      }
      for (w in work) {
        if (w ~ /^synchronous/) waiting += work[w]
        if (w ~ /pageable/) pageable += work[w]
        if (work[w] != 0) printf "%10.2f %10s  %s\n", per_step(work[w]), "", w > list
      }
      allowed = sizes + 3 + streams / ranks
      bad = ""
      if (memory != 0) bad = bad " memory"
      if (mapped > steps / 4) bad = bad " mapped"
      if (made != 0) bad = bad " made"
      if (waiting != 0) bad = bad " copies-that-wait"
      if (pageable != 0) bad = bad " pageable"
      if (work["on the default stream"] != 0) bad = bad " default-stream"
      if (device != 0) bad = bad " device"
      if (per_step(waits) > allowed) bad = bad " waits"
      if (lost > 0) bad = bad " not-all-counted"
      if (launches <= 0 || total <= 0) bad = bad " nothing-counted"
      printf "%-34s %6g %6g %6g %6g %8g %8g %7g %6g of %-4g %9.1f %9.1f %9.1f  %s\n", name, memory / steps,
             mapped / steps, made / steps, waiting / steps, pageable / steps, work["on the default stream"] / steps,
             device / steps, per_step(waits), allowed, per_step(exchanges), per_step(launches),
             per_step(total), bad == "" ? "passed" : "FAILED:" bad
      exit bad != ""
    }' "$out/$1.json"
}

rows=() failed=0
check() {  # check NAME RANKS WORD...
  local name=$1 ranks=$2 sizes line
  shift 2
  sizes=$("$weft" schedule tiny "${fixed[@]}" "$@" --text | grep -c '\.sizes ')
  if count "$name" "$@"; then
    line=$(judge "$name" "$ranks" "$sizes") || failed=1
  else
    line=$(printf '%-34s FAILED: see %s' "$name" "$out/$name.*.log")
    failed=1
  fi
  rows+=("$line")
}

overlap=(comm_overlap.overlap_moe_expert_parallel_comm=true comm_overlap.delay_wgrad_compute=true)
bf16=model.params_dtype=bf16
budget=(model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep runtime.ranks_per_node=2
  model.moe_expert_rank_capacity_factor=4)
padded=(model.moe_expert_capacity_factor=2 model.moe_pad_expert_input_to_capacity=true)
check 1_rank 1 world=1 ep=1
check 1_rank_bf16 1 world=1 ep=1 $bf16
check 1_rank_padded_bf16 1 world=1 ep=1 $bf16 "${padded[@]}"
check EP2_bf16 2 world=2 ep=2 $bf16
check EP2_overlap_bf16 2 world=2 ep=2 $bf16 "${overlap[@]}"
check EP2_slices_bf16 2 world=2 ep=2 $bf16 comm_overlap.moe_token_slices=2
check EP2_shared_overlap_bf16 2 world=2 ep=2 $bf16 model.moe_shared_expert_intermediate_size=128 \
  model.moe_shared_expert_overlap=true
check PP2_x_EP2_overlap_bf16 4 world=4 pp=2 vpp=2 ep=2 $bf16 "${overlap[@]}"
check TP2_bf16 2 world=2 tp=2 ep=1 model.sequence_parallel=true $bf16 comm_overlap.tp_comm_overlap=true
check CP2_bf16 2 world=2 cp=2 ep=1 $bf16
check EP2_row_budget_bf16 2 world=2 ep=2 $bf16 "${budget[@]}"
check EP2_padded_bf16 2 world=2 ep=2 $bf16 "${padded[@]}"
check EP2_padded_overlap_bf16 2 world=2 ep=2 $bf16 "${padded[@]}" "${overlap[@]}"

cat <<'TEXT'

Of one step: memory taken or given back; parts mapped, of 0.25 that are allowed; streams and events made, copies that
wait, copies of memory that is not pinned, work on the default stream, waits for the device (all ranks; each but the
parts must be 0); waits of a rank's thread, of so many that are allowed; waits of the threads that exchange rows;
launches; calls (each a rank).
TEXT
printf '%-34s %6s %6s %6s %6s %8s %8s %7s %6s %-7s %9s %9s %9s\n' \
  what memory mapped made copies pageable default device waits allowed exchanges launches calls
printf '%s\n' "${rows[@]}"
echo
echo "every call a step, of ranks' threads and of others: $out/*.txt"
exit "$failed"
