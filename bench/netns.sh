#!/bin/bash
# The overlap bench over a real network: two network namespaces joined by a veth pair that `tc tbf`
# shapes, one rank in each, Open MPI's TCP between them. Nothing is emulated.
#
#   sudo bench/netns.sh [RATE] [weft bench overlap arguments ...]
#
# RATE is what tc takes (1000mbit by default, at which communication alone takes about as long as
# compute alone for the recipe overlap_bench on two cores of 2020). Needs root, iproute2, mpirun and
# build/release/bin/weft (`make`).
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
weft=$root/build/release/bin/weft
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  exit 0
fi
rate=1000mbit
if [[ ${1:-} =~ ^[0-9.]+[kmg]?bit$ ]]; then
  rate=$1
  shift
fi
[[ $(id -u) == 0 ]] || { echo "netns.sh: network namespaces need root" >&2; exit 2; }
for tool in ip tc mpirun; do
  command -v "$tool" >/dev/null || { echo "netns.sh: $tool is missing" >&2; exit 2; }
done
[[ -x $weft ]] || { echo "netns.sh: no $weft: run make first" >&2; exit 2; }

cores=$(nproc)
a=weft-a-$$ b=weft-b-$$ net=10.213.77
scratch=$(mktemp -d)
clean() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean EXIT

ip netns add "$a"
ip netns add "$b"
ip link add weft0 netns "$a" type veth peer name weft0 netns "$b"
for side in "$a 1" "$b 2"; do
  read -r space last <<<"$side"
  ip -n "$space" link set lo up
  ip -n "$space" addr add "$net.$last/24" dev weft0
  ip -n "$space" link set weft0 up
  ip netns exec "$space" tc qdisc add dev weft0 root tbf rate "$rate" burst 128kb latency 200ms
done

# Each rank on a core of its own: seen as two machines they could not tell that they share one.
# What mpirun uses in place of ssh: the second namespace, under a host name of its own, so that the
# two ranks count as two machines. Its first argument is the host.
cat >"$scratch/enter" <<END
#!/bin/bash
shift
exec taskset -c $((cores > 1 ? 1 : 0)) ip netns exec $b unshare --uts sh -c "hostname $b; \$*"
END
chmod +x "$scratch/enter"

echo "two namespaces, veth shaped to $rate each way, Open MPI over TCP" >&2
taskset -c 0 ip netns exec "$a" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$a" \
  mpirun --allow-run-as-root --host "$net.1:1,$net.2:1" -n 2 \
  --mca plm_rsh_agent "$scratch/enter" --mca plm_rsh_no_tree_spawn 1 \
  --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include "$net.0/24" \
  --mca oob_tcp_if_include "$net.0/24" --mca orte_keep_fqdn_hostnames 1 \
  --bind-to none \
  "$weft" bench overlap "$@"
