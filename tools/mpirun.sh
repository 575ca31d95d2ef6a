#!/usr/bin/env bash
# Runs a program as MPI ranks on this machine, also as root and with more ranks than cores:
#
#   tools/mpirun.sh -n 2 build/release/bin/weft train ...
#
#   tools/mpirun.sh --restarts=3 -n 4 build/release/bin/weft train ... checkpoint.save=D checkpoint.load=D
#
# --restarts=N   start the job again, up to N times, where it failed or a rank was lost; it goes on from its
#                last checkpoint. Not where it was told to end, and not where its input is wrong (code 2).
# --then="R words"   the first restart has R ranks, and the words behind the command's own; given again, the
#                second, and so on; the last is for all that follow. --then="2 ep=2"
#
# Everything else is handed to mpirun, also signals (see the end). The settings below are Open MPI's environment variables, so an
# explicit option (--mca btl_tcp_if_include eth0) or a variable set by the caller wins over them.
set -euo pipefail

# A shell cannot trap what was ignored when it started, as SIGINT is in the background of a script.
if [ -z "${WEFT_MPIRUN_TRAPS-}" ] && env --default-signal=INT true 2>/dev/null; then
  exec env --default-signal=INT WEFT_MPIRUN_TRAPS=1 "$0" "$@"
fi

refuse() {
  echo "tools/mpirun.sh: $1" >&2
  exit 2
}

restarts=0
layouts=()
while :; do
  case ${1-} in
    --restarts=*) restarts=${1#*=} ;;
    --then=*) layouts+=("${1#*=}") ;;
    --restarts | --then)
      [ $# -ge 2 ] || refuse "$1 wants a value: $1=..."
      set -- "$1=$2" "${@:3}"
      continue
      ;;
    *) break ;;
  esac
  shift
done
[[ $restarts =~ ^[0-9]{1,4}$ ]] || refuse "--restarts=$restarts: a number from 0 to 9999 expected"
restarts=$((10#$restarts))
for layout in "${layouts[@]}"; do
  [[ $layout =~ ^[1-9][0-9]{0,5}(\ |$) ]] ||
    refuse "--then=\"$layout\": a number of ranks expected, and words for weft behind it"
done
given=("$@")
ranks_at=""  # where the number of ranks stands in the command
for i in "${!given[@]}"; do
  case ${given[i]} in -n | -np | --n | --np) ranks_at=$((i + 1)) && break ;; esac
done
if [ "$restarts" -gt 0 ] && [[ " $* " =~ \ checkpoint\.(ckpt_step=|load=[^\ ]*iter_[0-9]) ]]; then
  refuse "checkpoint.ckpt_step, and the folder of one step in checkpoint.load, go back at every restart: start without --restarts until the run has saved"
fi
if [ "${#layouts[@]}" -gt 0 ] && [ -z "$ranks_at" ]; then
  refuse "--then changes the number of ranks, and the command has no -n"
fi

if ! command -v mpirun >/dev/null; then
  echo "tools/mpirun.sh: no mpirun in PATH; install Open MPI (Debian: openmpi-bin libopenmpi-dev)" >&2
  exit 127
fi

default() { [ -n "${!1-}" ] || export "$1=$2"; }

# As root, in a container: allowed, and said twice because Open MPI asks twice.
default OMPI_ALLOW_RUN_AS_ROOT 1
default OMPI_ALLOW_RUN_AS_ROOT_CONFIRM 1
default PRTE_ALLOW_RUN_AS_ROOT 1
default PRTE_ALLOW_RUN_AS_ROOT_CONFIRM 1

# Few cores: ranks share them, are not pinned, and give way while they wait.
default OMPI_MCA_rmaps_base_oversubscribe 1
default OMPI_MCA_hwloc_base_binding_policy none
default OMPI_MCA_mpi_yield_when_idle 1
default PRTE_MCA_rmaps_default_mapping_policy :oversubscribe
default PRTE_MCA_hwloc_default_binding_policy none

# Shared memory, and TCP that does not leave this machine; nothing that looks for other hardware.
# Containers refuse to let one process read another's memory, so copies go through shared memory.
default OMPI_MCA_pml ob1
default OMPI_MCA_btl self,vader,tcp
default OMPI_MCA_btl_vader_single_copy_mechanism none
default OMPI_MCA_btl_tcp_if_include lo
default OMPI_MCA_oob_tcp_if_include lo
default OMPI_MCA_opal_cuda_support 0

# Quiet: no advice on hardware this machine lacks, no complaint about /tmp or the shared-memory store.
default OMPI_MCA_btl_base_warn_component_unused 0
default OMPI_MCA_btl_openib_warn_no_device_params_found 0
default OMPI_MCA_hwloc_base_mem_bind_failure_action silent
default OMPI_MCA_shmem_mmap_enable_nfs_warning 0
default PMIX_MCA_gds hash

# Open MPI looks for ssh even when every rank is local, and gives up without it.
command -v ssh >/dev/null || default OMPI_MCA_plm_rsh_agent /bin/false

# What is asked to end goes on to the ranks as SIGUSR1: they end after their step, save what they are to
# save, and print their summary. mpirun itself, told to end, would give them one second and then kill
# them; and not every mpirun hands SIGUSR1 on. The second time mpirun is told.
told=""
job=""
ranks() {  # the processes that mpirun started
  local file line
  for file in /proc/[0-9]*/stat; do
    { read -r line <"$file"; } 2>/dev/null || continue
    line=${line##*) }  # after the name: state, parent
    set -- $line
    [ "$2" = "$job" ] && basename "${file%/stat}"
  done
  true
}
hand_on() {
  if [ -z "$told" ]; then
    told=$1
    [ -n "$job" ] || return 0
    local all
    all=$(ranks)
    kill -USR1 ${all:-"$job"} 2>/dev/null || true
  elif [ -n "$job" ]; then
    kill -TERM "$job" 2>/dev/null || true
  fi
}
trap 'hand_on 130' INT
trap 'hand_on 143' TERM USR1 USR2
trap 'hand_on 129' HUP

# With job control mpirun has a process group of its own, which Ctrl-C does not reach; and where this
# script is killed, it does not stay behind.
set -m
run_once() {
  if setpriv --pdeathsig TERM true 2>/dev/null; then
    setpriv --pdeathsig TERM mpirun "$@" <&0 &
  else
    mpirun "$@" <&0 &
  fi
  job=$!
  # Who was told before there was a job to hand it on to.
  [ -z "$told" ] || kill -TERM "$job" 2>/dev/null || true
  code=0
  wait "$job" || code=$?
  # A signal ends the wait, not what is waited for.
  while kill -0 "$job" 2>/dev/null; do
    code=0
    wait "$job" || code=$?
  done
  # Where it ended while the signal was handled, its code has not been told yet; else there is none (127).
  local late=0
  wait "$job" 2>/dev/null || late=$?
  [ "$late" = 127 ] || code=$late
  job=""
}

is_worth_a_restart() {  # not what is done, wrong or told to end
  [ -z "$told" ] && case $code in 0 | 2 | 127 | 129 | 130 | 143) false ;; esac
}

# A function, so that all of it has been read: a run lasts weeks, and this file may be replaced meanwhile.
main() {
  run_once "${given[@]}"
  for ((restart = 1; restart <= restarts; ++restart)); do
    is_worth_a_restart || break
    next=("${given[@]}")
    if [ "${#layouts[@]}" -gt 0 ]; then
      read -r -a layout <<<"${layouts[restart <= ${#layouts[@]} ? restart - 1 : -1]}"
      next[ranks_at]=${layout[0]}
      next+=("${layout[@]:1}")
    fi
    echo "tools/mpirun.sh: the job ended with code $code; restart $restart of $restarts${layout:+, ranks and layout: ${layout[*]}}" >&2
    sleep 0.5  # for ranks that are still ending
    [ -z "$told" ] || { code=$told && break; }
    run_once "${next[@]}"
  done
  # Ranks that SIGUSR1 ended say 143; who started this script knows the signal that it sent.
  if [ -n "$told" ] && [ "$code" = 143 ]; then code=$told; fi
  exit "$code"
}
main
