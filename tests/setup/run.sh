#!/usr/bin/env bash
# Does a newcomer's machine get along with what README says? Makes a bare root of the system that this machine
# runs (Debian 12 or Ubuntu 24.04; the smallest variant, with make and git), clones the last commit into it and
# runs make goals there as they are typed. Nothing of this machine's own packages is seen inside.
#
# usage: tests/setup/run.sh [GOAL ...]     by default: demo test
#
# Needs root, mmdebstrap and a mirror of the distribution; which one is taken from this machine's own apt
# sources. Exit 77: skipped, with the reason. The root lies under TMPDIR, takes about 3 GiB and is removed.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
goals=("$@")
[ ${#goals[@]} -gt 0 ] || goals=(demo test)

skip() {
  echo "skipped: the set-up test $1"
  exit 77
}

command -v apt-get >/dev/null || skip "needs Debian or Ubuntu: there is no apt-get"
command -v mmdebstrap >/dev/null || skip "needs mmdebstrap: install the package of that name"
[ "$(id -u)" -eq 0 ] || skip "needs root: it mounts and calls chroot"
unshare --mount true 2>/dev/null || skip "needs the right to mount: this container does not give it"
git -C "$source" rev-parse -q --verify HEAD >/dev/null || skip "needs a git clone: $source is none"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$suite" ] || skip "cannot tell which release this machine runs (/etc/os-release)"

# mmdebstrap reads both forms of sources, and takes them over into the root.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  if [ -e "$file" ] && grep -qE '^(deb |URIs:)' "$file"; then sources+=("$file"); fi
done
[ ${#sources[@]} -gt 0 ] || skip "finds no apt sources on this machine"

scratch=$(mktemp -d)
root=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT

# Without a network the first thing that fails is the package list, and that is no fault of ours.
began=$SECONDS
if ! mmdebstrap --quiet --variant=minbase --include=make,git,ca-certificates \
  "$suite" "$root" "${sources[@]}" 2>"$scratch/mmdebstrap.log"; then
  tail -5 "$scratch/mmdebstrap.log"
  skip "cannot make a bare root: is there a network?"
fi
echo "setup: a bare root of $suite after $((SECONDS - began)) s"

# The inside asks the same name server and goes through the same proxy.
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
apt-config dump Acquire | grep -i '::proxy ' >"$root/etc/apt/apt.conf.d/99proxy" || true
git clone -q --no-local "$source" "$root/srv/weft"

# The mounts belong to a namespace of their own: they are gone when the last process in it is, and what
# still runs then is ended with it.
run_inside() {
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1
    mount --rbind /dev "$root/dev"
    mount --make-rslave "$root/dev"
    mount -t proc proc "$root/proc"
    exec chroot "$root" env -i HOME=/srv TERM=dumb LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin make -C /srv/weft "$2"
  ' inside "$root" "$1"
}

for goal in "${goals[@]}"; do
  began=$SECONDS
  if ! run_inside "$goal" >"$scratch/$goal.log" 2>&1; then
    tail -60 "$scratch/$goal.log"
    echo "setup: make $goal fails on a bare $suite, after $((SECONDS - began)) s"
    exit 1
  fi
  tail -3 "$scratch/$goal.log"
  echo "setup: make $goal works on a bare $suite: $((SECONDS - began)) s"
done
