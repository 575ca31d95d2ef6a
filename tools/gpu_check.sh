#!/usr/bin/env bash
# Everything that is known of Weft on a GPU, tried on the GPU of this machine: all GPU tests, every reference
# run under every layout, training against the CPU, and repeatability. One table at the end; exit code 1 where
# something failed, 77 where there is no GPU to try it on.
#
# usage: tools/gpu_check.sh [--sanitize] [--bench] [--no-build] [--only=PART[,PART...]]
#   --sanitize   also compute-sanitizer on the kernels (about ten minutes more)
#   --no-build   take build/release as it is
#   --bench      also the speed bars of `weft bench` (about 15 minutes more; a bar that is not met is a failure)
#   --only       of tests, verify, train, calls, memory, sanitize and bench, these parts and no others
#
# What every step printed is in build/gpu_check.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

parts_known=" tests verify train calls memory sanitize bench "
chosen=" tests verify train calls memory " more="" build=yes
usage() { sed -n '2,13s/^# \{0,1\}//p' "$0"; }
for option in "$@"; do
  case $option in
    --sanitize | --bench) more+="${option#--} " ;;
    --no-build) build="" ;;
    --only=*) chosen=" ${option#--only=} " chosen=${chosen//,/ } ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
chosen+=$more
for part in $chosen; do
  case $parts_known in
    *" $part "*) ;;
    *) echo "--only=$part: no part; the parts are$parts_known" >&2; exit 2 ;;
  esac
done
[ -n "${chosen// /}" ] || { echo "--only: names no part; the parts are$parts_known" >&2; exit 2; }
wants() { case $chosen in *" $1 "*) true ;; *) false ;; esac; }

bin=build/release/bin
weft=$bin/weft
logs=build/gpu_check
golden=tests/golden
mkdir -p "$logs"
scratch=""
# What was started beside this script does not see Ctrl-C: each job is a shell with a `timeout`, which passes it on.
leave() {
  local job
  for job in $(jobs -p); do
    pkill -P "$job"
    kill "$job"
  done 2>/dev/null
  [ -z "$scratch" ] || rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 130' INT TERM

# Rows of the table: what, result, seconds.
rows=()
failed=0
row() {  # row WHAT RESULT SECONDS
  rows+=("$(printf '%-68s %-34s %7s' "$1" "$2" "$3")")
  printf '%s s\n' "${rows[-1]}" >&2
  case $2 in FAILED*) failed=1 ;; esac
}
table() {
  printf '\n%-68s %-34s %7s\n' what result seconds
  printf '%s\n' "${rows[@]}"
  echo
  if [ "$failed" = 0 ]; then echo "everything that was tried passed"; else echo "something FAILED: see $logs"; fi
}

# limited SECONDS LOG COMMAND...: its exit code; 124 or 137 where the time was over.
limited() {
  local seconds=$1 log=$2
  shift 2
  { printf '+ %s\n' "$*"; timeout --foreground --kill-after=10 "$seconds" "$@"; } >"$log" 2>&1
}
why() {  # why CODE LOG: a short reason
  case $1 in
    124 | 137) echo "FAILED: out of time" ;;
    *) echo "FAILED: $2" ;;
  esac
}

# Building.
programs=(weft weft_cuda weft_nccl weft_cuda_calls devices_test tensor_test kernels_test comm_test train_test
  measure_test optim_test)
if [ -n "$build" ]; then
  SECONDS=0
  if limited 300 "$logs/configure.log" cmake --preset release &&
    limited 3600 "$logs/build.log" cmake --build --preset release --target "${programs[@]}"; then
    row "build (release, with CUDA)" passed "$SECONDS"
  else
    row "build (release, with CUDA)" "$(why $? "$logs/build.log")" "$SECONDS"
    tail -qn 15 "$logs/configure.log" "$logs/build.log"
    table
    exit 1
  fi
fi

SECONDS=0
if ! limited 120 "$logs/doctor.log" "$weft" doctor; then
  row "weft doctor" "FAILED: $logs/doctor.log" "$SECONDS"
  table
  exit 1
fi
grep -v '^+' "$logs/doctor.log"
if ! grep -q '^  GPU 0' "$logs/doctor.log"; then
  echo "no GPU that this build can use: nothing was tried"
  exit 77
fi
row "weft doctor" passed "$SECONDS"

# Tests, in parts beside each other, since one uses little of the card. Those that skip, and a filter that fits
# nothing, are no success.
parts=$(nproc)
if [ "$parts" -gt 10 ]; then parts=10; fi
sum_of() {  # sum_of WORD LOG...: how many tests, by the last lines of the logs
  local word=$1
  shift
  cat "$@" | sed -n "s/^\[ *$word *\] \([0-9]*\) test.*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}
# in_parts LOG SECONDS COMMAND...: a test program, its parts' logs in LOG.0.log and so on; the last bad exit code
in_parts() {
  local log=$1 seconds=$2 part code=0 pids=()
  shift 2
  rm -f "$log".[0-9].log
  for ((part = 0; part < parts; ++part)); do
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part limited "$seconds" "$log.$part.log" "$@" &
    pids[part]=$!
  done
  for ((part = 0; part < parts; ++part)); do wait "${pids[part]}" || code=$?; done
  return "$code"
}
# A part that gets no GPU (the card has no room for one more process) fails: its tables would lack all tests of GPUs.
export WEFT_TEST_NEEDS_GPU=1
# By name, those that run on the card; and those that go over all devices in one test.
on_card='*Cuda*:*Gpu*:*Nccl*:AdamW*:ChooseShards.*:CrossEntropy.*:Rows.*:RunFake.*:Mpi.*:ContextSavings.*:LogitsMemory.*'
on_card+=':HuggingFaceOut.*:Checkpoints.GoFrom*:*Bytes*:Failure*:State*:Gather*:-*_Cpu*:*HiddenCpu*:*/Cpu*'
run_tests() {  # run_tests FOLDER SECONDS
  local log=$logs/$1 code=0 ran skipped
  SECONDS=0
  in_parts "$log" "$2" "$bin/$1_test" --gtest_filter="$on_card" --gtest_brief=0 || code=$?
  ran=$(sum_of PASSED "$log".[0-9].log) skipped=$(sum_of SKIPPED "$log".[0-9].log)
  if [ "$code" -ne 0 ]; then
    row "tests of $1" "$(why "$code" "$log.*.log")" "$SECONDS"
  elif [ "$ran" -eq 0 ]; then
    row "tests of $1" "FAILED: no test ran" "$SECONDS"
  elif [ "$skipped" -gt 0 ]; then
    row "tests of $1" "passed: $ran tests, $skipped skipped" "$SECONDS"
  else
    row "tests of $1" "passed: $ran tests" "$SECONDS"
  fi
}
all_tests() {
  run_tests devices 120
  run_tests tensor 600
  run_tests kernels 1200
  WEFT_SOAK=1 run_tests comm 900  # every case on the card, as in make soak
  run_tests train 1800
  run_tests measure 600
  run_tests optim 120
}
if wants tests; then all_tests; fi

# Reference runs.
models=()
for folder in "$golden"/*/model.safetensors; do models+=("$(basename "$(dirname "$folder")")"); done

# The model of DeepSeek has three layers: stages of equal size do not exist.
stages_of() {  # stages_of MODEL: words for two pipeline ranks
  case $1 in deepseek_v3_tiny) echo 'model.pipeline_model_parallel_layout=Et|ttL' ;; esac
}
chunks_of() {  # chunks_of MODEL: words for two pipeline ranks with two chunks each
  case $1 in
    deepseek_v3_tiny) echo 'model.pipeline_model_parallel_layout=E|t|t|tL' ;;
    qwen3_moe_deep) ;;
    *) echo 'model.pipeline_model_parallel_layout=E|t|t|L' ;;
  esac
}
fusion_of() {  # fusion_of MODEL: a word for one operation of norm and rotation, where heads are normed
  case $1 in qwen3_*) echo 'model.apply_rope_fusion=true' ;; esac
}
verify() {  # verify NAME MODELS WORD...: every model of the list; STAGES, CHUNKS and FUSION stand for the model's words
  local name=$1 list=$2 model word bad="" count=0
  local -A pids=()
  shift 2
  SECONDS=0
  for model in $list; do
    local words=(runtime.device=cuda)
    for word in "$@"; do
      case $word in
        STAGES) word=$(stages_of "$model") ;;
        CHUNKS) word=$(chunks_of "$model") ;;
        FUSION) word=$(fusion_of "$model") ;;
      esac
      [ -n "$word" ] && words+=("$word")
    done
    limited 120 "$logs/verify.$model.${name// /_}.log" "$weft" verify "$golden/$model" "${words[@]}" &
    pids[$model]=$!
  done
  for model in $list; do
    wait "${pids[$model]}" || bad+=" $model"
    count=$((count + 1))
  done
  if [ -z "$bad" ]; then
    row "verify: $name" "passed: $count folder(s)" "$SECONDS"
  else
    row "verify: $name" "FAILED:$bad" "$SECONDS"
  fi
}

overlap=comm_overlap.overlap_moe_expert_parallel_comm=true
delay=comm_overlap.delay_wgrad_compute=true
all_references() {
  local all=${models[*]}
  local over_logits=model.cross_entropy_loss_fusion=true
  local merged=model.moe_permute_fusion=true
  local capacity=model.moe_expert_capacity_factor=16 padded=model.moe_pad_expert_input_to_capacity=true
  local slices=comm_overlap.moe_token_slices=2
  local flex=model.moe_token_dispatcher_type=flex
  local hybridep=("$flex" model.moe_flex_dispatcher_backend=hybridep runtime.ranks_per_node=2)
  verify "1 rank" "$all"
  verify "1 rank, NCCL" "$all" runtime.backend=nccl
  verify "EP2" "$all" world=2 ep=2
  verify "EP4" "$all" world=4 ep=4
  verify "DP2 x EP2" "$all" world=4 ep=2
  verify "PP2 x EP2" "$all" world=4 pp=2 ep=2 STAGES
  verify "EP4 allgather" "$all" world=4 ep=4 model.moe_token_dispatcher_type=allgather
  verify "EP4 deepep" "$all" world=4 ep=4 "$flex" model.moe_flex_dispatcher_backend=deepep
  verify "EP4 hybridep" "$all" world=4 ep=4 "${hybridep[@]}"
  verify "EP4 hybridep, row budget" "$all" world=4 ep=4 "${hybridep[@]}" model.moe_expert_rank_capacity_factor=4
  # With room for every choice; one that drops some differs from the reference.
  verify "EP2, capacity" "$all" world=2 ep=2 "$capacity"
  verify "EP4 hybridep, capacity, padded" "$all" world=4 ep=4 "${hybridep[@]}" "$capacity" "$padded"
  verify "DP2 x EP2 capacity, padded, overlap, delayed" "$all" world=4 ep=2 "$capacity" "$padded" "$overlap" "$delay"
  verify "EP2 overlap" "$all" world=2 ep=2 "$overlap"
  verify "EP2 overlap, delayed weight gradients" "$all" world=2 ep=2 "$overlap" "$delay"
  verify "EP2 slices" "$all" world=2 ep=2 "$slices"
  verify "DP2 x EP2 overlap, delayed, slices" "$all" world=4 ep=2 "$overlap" "$delay" "$slices"
  verify "EP4 hybridep overlap, delayed" "$all" world=4 ep=4 "${hybridep[@]}" "$overlap" "$delay"
  verify "PP2 x EP2 overlap, delayed" "$all" world=4 pp=2 vpp=2 ep=2 CHUNKS "$overlap" "$delay"
  verify "EP2 shared experts overlapped" deepseek_v3_tiny world=2 ep=2 model.moe_shared_expert_overlap=true
  verify "EP2 overlap, ranks come late" "$all" world=2 ep=2 "$overlap" "$delay" fabric.jitter_us=300

  # The axes that cut a micro-batch.
  local spread=ddp.use_distributed_optimizer=true
  local sequence=model.sequence_parallel=true
  verify "TP2 x CP2 x PP2" "$all" world=8 tp=2 cp=2 pp=2 STAGES "$sequence"
  verify "DP2 x EP4" "$all" world=8 ep=4
  verify "TP4" "$all" world=4 tp=4 "$sequence"
  verify "TP4, overlap" "$all" world=4 tp=4 "$sequence" comm_overlap.tp_comm_overlap=true
  verify "CP4" "$all" world=4 cp=4
  verify "EP2 x ETP2" "$all" world=4 ep=2 etp=2
  verify "DP4, distributed optimizer" "$all" world=4 "$spread"

  # What is made again, or lies in host memory meanwhile.
  local again="model.recompute_granularity=selective"
  local away="model.fine_grained_activation_offloading=true"
  verify "EP2, recomputed" "$all" world=2 ep=2 "$again" 'model.recompute_modules=[layernorm,moe_act,mlp]'
  verify "EP2, offloaded" "$all" world=2 ep=2 "$away" 'model.offload_modules=[core_attn,attn_proj]'

  # In bf16, against Transformers in bf16 on such a card; the experts are those that fp32 chose.
  verify "1 rank, bf16" "$all" model.bf16=true FUSION "$merged"
  verify "EP2, bf16" "$all" world=2 ep=2 model.bf16=true "$over_logits" FUSION "$merged"
  verify "PP2 x EP2, bf16" "$all" world=4 pp=2 ep=2 STAGES model.bf16=true "$merged"
  verify "EP4 hybridep, bf16" "$all" world=4 ep=4 "${hybridep[@]}" model.bf16=true "$merged"
  verify "DP2 x EP2 overlap, delayed, bf16" "$all" world=4 ep=2 "$overlap" "$delay" model.bf16=true "$over_logits" FUSION "$merged"
}
if wants verify; then all_references; fi

# Training the demo: 200 steps, losses of every step.
if wants train; then scratch=$(mktemp -d); fi
train() {  # train NAME SECONDS WORD...
  local name=$1 seconds=$2
  shift 2
  limited "$seconds" "$logs/train.$name.log" \
    "$weft" train tiny train.eval_interval=0 runtime.run_dir="$scratch/$name" --overwrite "$@"
}
losses() { grep -o '"lm_loss":[^,]*\|"grad_norm":[^,]*' "$scratch/$1/metrics.jsonl" 2>/dev/null; }
last_loss() { losses "$1" | sed -n 's/"lm_loss"://p' | tail -n 1; }

# One run says little: at step 200 losses of runs that differ in the last bit are up to 2 % apart. So several seeds,
# the demo's own first, and the means of their last losses.
close_to_cpu() {
  SECONDS=0
  local what="train tiny, 200 steps, 7 seeds: bf16 on the GPU, fp32 on the CPU" result seed runs=() run bad=""
  local seeds=(1234 1 2 3 4 5 6) gpu cpu
  for seed in "${seeds[@]}"; do
    train "cpu.$seed" 900 rng.seed="$seed" &
    runs+=($!)
    train "bf16.$seed" 900 rng.seed="$seed" runtime.device=cuda model.params_dtype=bf16 &
    runs+=($!)
  done
  for run in "${runs[@]}"; do wait "$run" || bad=yes; done
  mean_loss() {  # mean_loss NAME: of all seeds
    for seed in "${seeds[@]}"; do last_loss "$1.$seed"; done | awk -v wanted=${#seeds[@]} '{ s += $1 } END { print (NR == wanted ? s / NR : "") }'
  }
  cpu=$(mean_loss cpu) gpu=$(mean_loss bf16)
  if [ -n "$bad" ] || [ -z "$cpu" ] || [ -z "$gpu" ]; then
    result="FAILED: $logs/train.*.log"
  elif awk -v a="$gpu" -v b="$cpu" 'BEGIN { d = a - b; exit !(b > 0 && (d < 0 ? -d : d) <= 0.01 * b) }'; then
    result=passed
  else
    result=FAILED
  fi
  case $result in passed | FAILED) result=$(LC_ALL=C printf '%s: means %.4f, %.4f' "$result" "$gpu" "$cpu") ;; esac
  for seed in "${seeds[@]}"; do
    LC_ALL=C printf '  seed %-6s bf16 on the GPU %.4f, fp32 on the CPU %.4f\n' "$seed" "$(last_loss "bf16.$seed")" \
      "$(last_loss "cpu.$seed")"
  done
  row "$what" "$result" "$SECONDS"
}
# What of a larger world one card plays: every loss is a number.
pretended() {  # pretended NAME WORD...
  local name=$1 count
  shift
  SECONDS=0
  if train "pretended.$name" 300 runtime.device=cuda train.train_iters=4 "$@" &&
    count=$(losses "pretended.$name" | grep -c '"lm_loss":[0-9.]*$') && [ "$count" = 4 ]; then
    row "train tiny: $name" "passed: 4 finite losses" "$SECONDS"
  else
    row "train tiny: $name" "FAILED: $logs/train.pretended.$name.log" "$SECONDS"
  fi
}
all_pretended() {
  local loopback=runtime.backend=loopback pipeline="pp=2 vpp=2" bf16=model.params_dtype=bf16
  pretended "loopback EP8" "$loopback" world=8 gbs=32 ep=8 $bf16
  pretended "loopback EP8, overlap" "$loopback" world=8 gbs=32 ep=8 "$overlap" "$delay" $bf16
  # shellcheck disable=SC2086
  pretended "loopback PP2 x EP4" "$loopback" world=8 gbs=32 ep=4 $pipeline $bf16
  pretended "loopback TP2 x DP4" "$loopback" world=8 gbs=32 ep=1 tp=2 model.sequence_parallel=true $bf16
  pretended "no traffic EP8" runtime.backend=fake world=8 gbs=32 ep=8 $bf16
}
# Memory taken from the card over what is counted, on a model of full width.
memory() {  # memory NAME WORD...
  local name=$1 ratio
  shift
  SECONDS=0
  limited 300 "$logs/memory.$name.log" "$weft" train qwen3_30b_a3b_gpu model.num_layers=6 model.num_moe_experts=32 \
    train.micro_batch_size=1 train.global_batch_size=16 train.train_iters=3 --json "$@"
  ratio=$(sed -n 's/.*"peak_bytes":\([0-9]*\),.*"reserved_bytes":\([0-9]*\).*/\1 \2/p' "$logs/memory.$name.log" |
    awk '{ printf "%.4f", $2 / $1 }')
  if [ -n "$ratio" ] && awk -v r="$ratio" 'BEGIN { exit !(r <= 1.05) }'; then
    row "memory taken over counted: $name" "passed: $ratio" "$SECONDS"
  else
    row "memory taken over counted: $name" "FAILED: ${ratio:-$logs/memory.$name.log}" "$SECONDS"
  fi
}
same_bits() {  # same_bits WHAT ONE OTHER SECONDS: runs whose losses and norms agree to the last digit
  local one other
  one=$(losses "$2") other=$(losses "$3")
  if [ -n "$one" ] && [ "$one" = "$other" ]; then
    row "$1" "passed: same digits" "$4"
  else
    row "$1" "FAILED: losses differ" "$4"
  fi
}
repeated() {
  local dtype name
  for dtype in fp32 bf16; do
    name=again.$dtype
    SECONDS=0
    train "$name" 600 runtime.device=cuda model.params_dtype=$dtype &&
      train "$name.twice" 600 runtime.device=cuda model.params_dtype=$dtype
    same_bits "train tiny twice, $dtype" "$name" "$name.twice" "$SECONDS"
    SECONDS=0
    train "$name.overlap" 600 runtime.device=cuda model.params_dtype=$dtype "$overlap" "$delay"
    same_bits "train tiny with overlap on and off, $dtype" "$name" "$name.overlap" "$SECONDS"
  done
  local layout words
  for layout in "PP2 x EP2" "EP4 hybridep" "DP2 x EP2, slices"; do
    case $layout in
      PP2*) words="world=4 pp=2 vpp=2 ep=2" ;;
      EP4*) words="world=4 ep=4 model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep runtime.ranks_per_node=2" ;;
      DP2*) words="world=4 ep=2 comm_overlap.moe_token_slices=2" ;;
    esac
    words+=" gbs=16 runtime.device=cuda model.params_dtype=bf16 train.train_iters=20"
    name=order.${layout// /_}
    SECONDS=0
    # shellcheck disable=SC2086
    train "$name" 600 $words && train "$name.overlap" 600 $words "$overlap" "$delay" fabric.jitter_us=200
    same_bits "train tiny with overlap on and off, $layout, bf16" "$name" "$name.overlap" "$SECONDS"
  done
}
if wants train; then
  close_to_cpu
  repeated
  all_pretended
fi
if wants memory; then
  memory "EP2" world=2 ep=2
  memory "EP2, overlap" world=2 ep=2 "$overlap" "$delay"
  memory "PP2 x EP2" world=4 pp=2 ep=2
fi

# What a step asks of CUDA: it waits only where it must.
calls() {
  local code=0
  SECONDS=0
  limited 1800 "$logs/cuda_calls.log" tools/cuda_calls.sh "$logs/cuda_calls" || code=$?
  sed 1d "$logs/cuda_calls.log"
  case $code in
    0) row "calls of CUDA in a step" "passed: no hidden wait" "$SECONDS" ;;
    77) row "calls of CUDA in a step" "skipped: $(tail -n 1 "$logs/cuda_calls.log")" "$SECONDS" ;;
    *) row "calls of CUDA in a step" "$(why "$code" "$logs/cuda_calls.log")" "$SECONDS" ;;
  esac
}
if wants calls; then calls; fi

# compute-sanitizer. The libraries' kernels are theirs: races and unset memory are looked for in ours.
ours='Swiglu/*Cuda*:RmsNorm/*Cuda*:Rotary/*Cuda*:NormRotary/*Cuda*:Attention/*Cuda*'
ours+=':CrossEntropy/*Cuda*:Embedding/*Cuda*:Router/*Cuda*:SortRows/*Cuda*:Rows/*Cuda*:Capacity/*Cuda*:Elementwise/*Cuda*'
ours+=':SharedNorm/*Cuda*:AttentionParts/*Cuda*:ChooseShards/*Cuda*:Gate/*Cuda*:RouterLosses/*Cuda*:RouterNoise/*Cuda*:LatentKeys/*Cuda*:PlanHops/*Cuda*:SealedCounts/*Cuda*:*AdamW*Cuda*:AdamW.*:Rows.*'
sanitized() {  # sanitized TOOL WHAT FILTER
  local log=$logs/sanitize.$1.$2 code=0 ran
  SECONDS=0
  in_parts "$log" 3600 compute-sanitizer --tool "$1" --error-exitcode 9 "$bin/kernels_test" --gtest_filter="$3" \
    --gtest_brief=0 || code=$?
  ran=$(sum_of PASSED "$log".[0-9].log)
  if [ "$code" -eq 0 ] && [ "$ran" -gt 0 ]; then
    row "compute-sanitizer $1, $2" "passed: $ran tests" "$SECONDS"
  else
    row "compute-sanitizer $1, $2" "$(why "$code" "$log.*.log")" "$SECONDS"
  fi
}
if ! wants sanitize; then
  row "compute-sanitizer" "skipped: ask with --sanitize" 0
elif ! command -v compute-sanitizer >/dev/null; then
  row "compute-sanitizer" "FAILED: not in PATH (CUDA toolkit)" 0
else
  sanitized memcheck kernels "$ours:Linear/*Cuda*:GroupedLinear/*Cuda*:*GpuAttention.*"
  sanitized racecheck kernels "$ours"
  sanitized racecheck products 'GroupedLinear/*Cuda*'
  sanitized initcheck kernels "$ours:GroupedLinear/*Cuda*"
fi

# Speed, against the bars that the benches name.
benched() {  # benched NAME SECONDS WORD...
  local name=$1 seconds=$2 log=$logs/bench.${1// /_}.log code=0
  shift 2
  SECONDS=0
  limited "$seconds" "$log" "$weft" bench "$@" || code=$?
  local met missed
  met=$(grep -c '^ *met ' "$log") missed=$(grep -c 'NOT MET' "$log")
  if [ "$code" -eq 0 ]; then
    row "bench: $name" "passed: $met bars met" "$SECONDS"
  else
    row "bench: $name" "FAILED: $missed bars not met, $met met" "$SECONDS"
  fi
}
if wants bench; then
  benched "step, kernels and products" 1200 gpu
  benched "overlap" 1200 overlap overlap_bench_gpu
  benched "dispatch" 600 dispatch runtime.device=cuda
fi

row "several GPUs" "skipped: not part of this script" 0

table
exit "$failed"
