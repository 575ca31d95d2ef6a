// Nodes and the emulated links between ranks.
#include "weft/config/derived.h"
#include "weft/config/findings.h"

namespace weft::config {
namespace {

// 1 kB/s. Slower ones are typing errors that would look like a run that hangs.
constexpr double kSlowest = 1e-6;

bool between_nodes(const FabricConfig& fabric) {
  return fabric.inter_node_gb_per_second != 0 || fabric.inter_node_latency_us != 0;
}

bool emulates(const FabricConfig& fabric) {
  return fabric.intra_node_gb_per_second != 0 || fabric.intra_node_latency_us != 0 ||
         between_nodes(fabric) || fabric.jitter_us != 0;
}

void check_nodes(const Config& config, Findings& findings) {
  const std::optional<std::int64_t> ranks = config.runtime.ranks_per_node;
  if (!ranks || !findings.sound({"runtime.ranks_per_node", "runtime.world_size"}) ||
      !findings.sound_section("model.")) {
    return;
  }
  const std::int64_t world = layout_of(config).world;
  if (world % *ranks != 0) {
    findings.complain(
        "runtime.ranks_per_node = {} does not divide the {} ranks of the run: use a divisor, or "
        "change runtime.world_size",
        *ranks,
        world);
  }
}

void check_links(const Config& config, Findings& findings) {
  if (!findings.sound_section("fabric.")) return;
  const FabricConfig& fabric = config.fabric;
  struct Bandwidth {
    const char* key;
    double value;
  };
  for (const Bandwidth& link :
       {Bandwidth{"fabric.intra_node_gb_per_second", fabric.intra_node_gb_per_second},
        Bandwidth{"fabric.inter_node_gb_per_second", fabric.inter_node_gb_per_second}}) {
    if (link.value > 0 && link.value < kSlowest) {
      findings.complain(
          "{} = {} GB/s is slower than any link: use 0 (bytes take no time) or at least {}",
          link.key,
          link.value,
          kSlowest);
    }
  }
  if (config.runtime.backend != CommBackend::Threads && emulates(fabric)) {
    findings.complain(
        "fabric.* emulates links between threads of one process, and runtime.backend = {}: use "
        "runtime.backend=threads, or leave fabric.* at its defaults (real networks are measured "
        "with MPI)",
        word(config.runtime.backend));
  }
  if (between_nodes(fabric) && !config.runtime.ranks_per_node) {
    findings.complain(
        "fabric.inter_node_* is for links between nodes, and all ranks are in one: set "
        "runtime.ranks_per_node, or use fabric.intra_node_*");
  }
}

}  // namespace

void check_fabric(const Config& config, Findings& findings) {
  check_nodes(config, findings);
  check_links(config, findings);
}

}  // namespace weft::config
