// Machines and the emulated links between ranks.
#include <algorithm>

#include "weft/derive/derived.h"
#include "weft/derive/machines.h"
#include "weft/grid/grid.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// 1 kB/s. Slower links are typing errors that would look like a hang.
constexpr double kSlowest = 1e-6;

bool between_machines(const FabricConfig& fabric) {
  return fabric.inter_node_gb_per_second != 0 || fabric.inter_node_latency_us != 0;
}

bool emulates(const FabricConfig& fabric) {
  return fabric.intra_node_gb_per_second != 0 || fabric.intra_node_latency_us != 0 ||
         between_machines(fabric) || fabric.jitter_us != 0;
}

void judge_machines(Judge& judge) {
  const std::optional<std::int64_t> ranks = judge.config().runtime.ranks_per_node;
  if (!ranks || !judge.sound({"runtime.ranks_per_node", "runtime.world_size"}) ||
      !judge.sound_section("model.")) {
    return;
  }
  const std::int64_t world = derive::layout_of(judge.config()).world;
  if (world % *ranks == 0) return;
  judge.report(
      "runtime.ranks_per_node",
      text("runtime.ranks_per_node = {} does not divide the {} ranks of the run", *ranks, world),
      "use a divisor, or change runtime.world_size");
}

void judge_bandwidths(Judge& judge) {
  if (!judge.sound_section("fabric.")) return;
  const FabricConfig& fabric = judge.config().fabric;
  struct Bandwidth {
    const char* key;
    double value;
  };
  for (const Bandwidth& link :
       {Bandwidth{"fabric.intra_node_gb_per_second", fabric.intra_node_gb_per_second},
        Bandwidth{"fabric.inter_node_gb_per_second", fabric.inter_node_gb_per_second}}) {
    if (link.value <= 0 || link.value >= kSlowest) continue;
    judge.report(link.key,
                 text("{} = {} GB/s is slower than any link", link.key, link.value),
                 text("use 0 (bytes take no time) or at least {}", kSlowest));
  }
}

void judge_backend(Judge& judge) {
  const Config& config = judge.config();
  if (!emulates(config.fabric)) return;
  switch (config.runtime.backend) {
    case CommBackend::Threads:
    case CommBackend::Loopback:
      return;
    case CommBackend::Mpi:
    case CommBackend::Nccl:
    case CommBackend::Fake:
      break;
  }
  judge.report(
      "runtime.backend",
      text("fabric.* emulates links inside one process, and runtime.backend = {}",
           word(config.runtime.backend)),
      "use runtime.backend=threads, or loopback for one rank alone, or leave fabric.* at its "
      "defaults (real networks are measured with MPI)");
}

void judge_inter_node(Judge& judge) {
  const Config& config = judge.config();
  if (!between_machines(config.fabric) || config.runtime.ranks_per_node) return;
  judge.report("runtime.ranks_per_node",
               "fabric.inter_node_* is for links between machines, and all ranks are in one",
               "set runtime.ranks_per_node, or use fabric.intra_node_*");
}

std::string ranks_text(const std::vector<int>& group) {
  return text("[{}]", fmt::join(group, " "));
}

// Difference between two groups in machines, or in ranks per machine; nullopt: none.
std::optional<std::string> unlike(const std::vector<int>& first,
                                  const std::vector<int>& group,
                                  std::int64_t per_machine) {
  const std::vector<std::int64_t> counts = derive::members_by_machine(group, per_machine);
  if (std::ranges::count(counts, counts.front()) != std::ssize(counts)) {
    return text(
        "the {} expert-parallel ranks {} lie [{}] in their machines, and hybridep wants as "
        "many in each",
        group.size(),
        ranks_text(group),
        fmt::join(counts, " "));
  }
  const std::size_t machines = derive::members_by_machine(first, per_machine).size();
  if (counts.size() == machines) return std::nullopt;
  return text(
      "the expert-parallel ranks {} span {} of the machines and {} span {}, and hybridep wants "
      "every group in as many",
      ranks_text(first),
      machines,
      ranks_text(group),
      counts.size());
}

void judge_hybrid_machines(Judge& judge) {
  const Config& config = judge.config();
  if (judge.on_gpu() || !dispatches_by(config.model, FlexBackend::HybridEp)) return;
  if (!config.model.tokens_travel()) return;
  if (!config.runtime.ranks_per_node) {
    judge.report(
        "runtime.ranks_per_node",
        text("model.moe_flex_dispatcher_backend = hybridep sends a token once to each machine "
             "of its {} expert-parallel ranks, and runtime.ranks_per_node = null",
             config.model.expert_grid().ranks),
        "set runtime.ranks_per_node, or use model.moe_flex_dispatcher_backend=deepep");
    return;
  }
  if (!judge.sound({"runtime.ranks_per_node", "runtime.world_size"}) ||
      !judge.sound_section("model.") || !judge.dp()) {
    return;
  }
  const grid::Layout layout = derive::layout_of(config);
  if (!grid::layout_complaints(layout).empty()) return;  // V1 reports it
  const std::int64_t per_machine = *config.runtime.ranks_per_node;
  const auto groups = grid::Grid(layout).groups(grid::GroupKind::TpEp);
  for (const std::vector<int>& group : groups) {
    const std::optional<std::string> complaint = unlike(groups.front(), group, per_machine);
    if (!complaint) continue;
    judge.report(
        "runtime.ranks_per_node",
        text("with runtime.ranks_per_node = {} {}", per_machine, *complaint),
        "use a number of ranks a machine that divides model.expert_model_parallel_size, or a "
        "multiple of it");
    return;
  }
}

constexpr Rule kFabricRules[] = {
    {.id = "W15",
     .when = "runtime.ranks_per_node does not divide the world",
     .then = "refused",
     .why = "Machines are equal.",
     .example = "runtime.world_size=4 runtime.ranks_per_node=3 train.global_batch_size=4",
     .judge = judge_machines},
    {.id = "W16",
     .when = "an emulated bandwidth above 0 and below 1 kB/s",
     .then = "refused",
     .why = "It would look like a run that hangs.",
     .example = "fabric.intra_node_gb_per_second=1e-9",
     .judge = judge_bandwidths},
    {.id = "W17",
     .when = "an emulated fabric with runtime.backend other than threads and loopback",
     .then = "refused",
     .why = "Links are emulated inside one process; a real network is what it is.",
     .example = "fabric.intra_node_gb_per_second=1 runtime.backend=mpi",
     .judge = judge_backend},
    {.id = "W18",
     .when = "fabric.inter_node_* without runtime.ranks_per_node",
     .then = "refused",
     .why = "All ranks are in one machine, so that link carries nothing.",
     .example = "fabric.inter_node_gb_per_second=1",
     .judge = judge_inter_node},
    {.id = "W64",
     .when =
         "hybridep on CPU ranks with ep > 1 and without runtime.ranks_per_node, or with machines "
         "that hold unequal parts of an expert-parallel group, or groups in different numbers of "
         "machines",
     .then = "refused",
     .why = "A token goes to the rank with its sender's place in the other machine, and every rank "
            "follows one schedule: machines and groups are alike.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=hybridep",
     .judge = judge_hybrid_machines},
};

}  // namespace

std::span<const Rule> fabric_rules() { return kFabricRules; }

}  // namespace weft::rules
