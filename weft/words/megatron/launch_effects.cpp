#include "weft/words/megatron/launch_effects.h"

#include "weft/base/text.h"
#include "weft/derive/gpu.h"

namespace weft::words {

using base::text;

void finish_launch(const Words& read, Ledger& ledger) {
  constexpr const char* kWorld = "runtime.world_size";
  const Launch& launch = read.launch;
  std::optional<std::int64_t> each = launch.on_machine;
  if (launch.one_for_each_gpu && !ledger.has_claim(kWorld)) {
    each = ledger.config().hardware.gpus_per_node.value_or(
        derive::gpu_facts(ledger.config().hardware).gpus_per_node);
    ledger.assume(kWorld, text("{}", *each * launch.machines));
    ledger.warn("H18",
                kWorld,
                text("one rank for each GPU is started, taken as {} on {}",
                     *each,
                     base::counted(launch.machines, "machine")),
                "write world=N, or hardware.gpu for the GPUs of a machine");
  }
  if (launch.fewest) {
    ledger.warn("H18",
                kWorld,
                text("the line may start {} to {} ranks: it is judged with {}",
                     *launch.fewest,
                     *launch.processes,
                     *launch.processes),
                "write world=N for another number");
  }
  const std::int64_t world = ledger.config().runtime.world_size.value_or(0);
  if (!each || world < 1 || world % *each != 0) return;
  const bool on_gpu = ledger.config().hardware.gpu.has_value();
  // One machine may have more GPUs than the line uses.
  if (on_gpu && launch.machines == 1) return;
  const char* key = on_gpu ? "hardware.gpus_per_node" : "runtime.ranks_per_node";
  if (!ledger.has_claim(key)) ledger.assume(key, text("{}", *each));
}

}  // namespace weft::words
