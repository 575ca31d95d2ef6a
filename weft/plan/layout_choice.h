// One way to run a model on so many GPUs: what a search of layouts chooses, and the keys it sets.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/offload_ladder.h"

namespace weft::plan {

// Who brings tokens to their experts. Given: what the config says, where the user chose it or no
// token travels.
enum class Carrier { Given, AllToAll, DeepEp, HybridEp };
// The plain order; forwards merged with backwards (expert-parallel overlap); the same with weight
// gradients put off.
enum class StepOrder { Plain, Merged, MergedDelayed };
inline constexpr std::size_t kStepOrders = 3;
// Optimizer state: shared by data-parallel ranks (a distributed optimizer), or whole on each.
enum class StateHolder { Shared, Whole };

// CUDA graphs: of the parts of layers that have the same shape in every step, or none. Whole: of
// the whole step, whose rows have a budget, with experts in one fused operation and a paged stash
// of what they keep. Given: as the config says.
enum class Graphs { Given, Scoped, None, Whole };

std::string_view word(Carrier carrier);

struct LayoutChoice {
  // Its shape.
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1;
  std::int64_t mbs = 1;  // sequences in a micro-batch
  // Its modes.
  Carrier carrier = Carrier::Given;
  StepOrder order = StepOrder::Plain;
  StateHolder state = StateHolder::Shared;
  std::size_t recompute = 0;   // rung of the ladder below
  std::size_t offload = 0;     // rung of offload_ladder.h
  std::size_t host_state = 0;  // quarters of the optimizer's state in the host's memory
  Graphs graphs = Graphs::Given;
  std::optional<Number> number = {};  // of products; none: as the config says

  auto operator<=>(const LayoutChoice&) const = default;
};

inline bool is_offloading(const LayoutChoice& choice) {
  return choice.offload > 0 || choice.host_state > 0;
}

// What runs again in the backward, from nothing to whole layers: every rung makes again what those
// before it do, so that it keeps less and takes longer.
struct RecomputeRung {
  std::string name;  // "none", "moe_act, layernorm", "full"
  std::vector<config::RecomputeModule> modules;
  bool is_full = false;
  // Rows travel again, which the interleaved order has no place for.
  bool moves_rows = false;
  bool is_given = false;  // as the config says: nothing is set
};
std::vector<RecomputeRung> recompute_ladder(const config::ModelConfig& model);

// Keys that the user chose: a search leaves them alone.
using PinnedKeys = std::set<std::string>;

// Sets the keys of a choice in a config that has the model, the batch and the number of ranks.
class LayoutWriter {
 public:
  LayoutWriter(config::Config start,
               PinnedKeys pinned,
               std::vector<RecomputeRung> ladder,
               std::vector<OffloadRung> offloads);

  config::Config config_of(const LayoutChoice& choice) const;
  // The same into a config that this writer made, which is cheaper; only the modes may differ.
  void set_modes(const LayoutChoice& choice, config::Config& config) const;

  const config::Config& start() const { return start_; }
  const std::vector<RecomputeRung>& ladder() const { return ladder_; }
  const std::vector<OffloadRung>& offloads() const { return offloads_; }
  // What runs again: of a rung less what a fused operation does not give back.
  std::vector<config::RecomputeModule> recomputed(const LayoutChoice& choice) const;
  // What a rung of the second leaves to offload beside one of the first.
  std::vector<config::OffloadModule> offloaded(std::size_t offload, std::size_t recompute) const;
  bool is_pinned(std::string_view key) const { return pinned_.contains(std::string(key)); }

 private:
  void set_shape(const LayoutChoice& choice, config::Config& config) const;
  void set_graphs(Graphs graphs, config::Config& config) const;
  void set_recompute(const LayoutChoice& choice, config::ModelConfig& model) const;
  void set_queues(const LayoutChoice& choice, config::Config& config) const;
  void set_host(const LayoutChoice& choice, config::Config& config) const;

  config::Config start_;
  PinnedKeys pinned_;
  std::vector<RecomputeRung> ladder_;
  std::vector<OffloadRung> offloads_;
};

// Layers dealt to `stages` so that the last, with the head, has less of them by what the head
// costs, and the others as many as each other. Empty: equal stages, which need no text.
std::string balanced_layout(const config::ModelConfig& model, std::int64_t pp, std::int64_t stages);

// What graphs hold where they are Scoped: "attn, moe_router, moe_preprocess".
std::vector<config::CudaGraphScope> graph_scopes(const config::ModelConfig& model);

// In what format the products are, as keys.
void set_number(config::Config& config, Number number);

// "tp 1, pp 16, vpp 2, cp 1, ep 64, etp 1, mbs 1, hybridep, overlap, recompute moe_act"
std::string to_text(const LayoutChoice& choice, const LayoutWriter& writer);
// "pp 8, vpp 4, no graphs": how a layout differs from another; empty: in nothing.
std::string difference_text(const LayoutChoice& of,
                            const LayoutChoice& from,
                            const LayoutWriter& writer);
// {"model.tensor_model_parallel_size": 1, ...}: the keys a search sets, but for those that are off
// in most layouts and in this one.
base::Json layout_keys(const config::Config& config);
// All of them as words that Megatron Bridge takes, and Weft: "model.tensor_model_parallel_size=1".
// What is off is said too, "model.recompute_granularity=null": the recipe that they are put behind
// may have it on. Values that a shell would read otherwise are in quotes.
std::vector<std::string> layout_overrides(const config::Config& config);

}  // namespace weft::plan
