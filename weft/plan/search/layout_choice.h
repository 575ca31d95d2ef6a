// Layout of a model on a number of GPUs: the values that a search chooses, and the keys they set.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/memory/offload_ladder.h"

namespace weft::plan {

// Dispatcher of tokens. Given: as in the config, because the user set it or no token travels.
enum class Carrier { Given, AllToAll, DeepEp, HybridEp };
// Plain order; forwards merged with backwards (expert-parallel overlap); merged, with delayed
// weight gradients.
enum class StepOrder { Plain, Merged, MergedDelayed };
inline constexpr std::size_t kStepOrders = 3;
// Optimizer state: sharded over data-parallel ranks (distributed optimizer), or whole on each.
enum class StateHolder { Shared, Whole };

// CUDA graphs. Scoped: parts of layers with constant shapes. Whole: the whole step, with a row
// budget, experts in one fused operation and a paged stash for their kept rows. Given: as in the
// config.
enum class Graphs { Given, Scoped, None, Whole };

std::string_view word(Carrier carrier);

struct LayoutChoice {
  // Shape.
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1;
  std::int64_t mbs = 1;  // sequences per micro-batch
  // Modes.
  Carrier carrier = Carrier::Given;
  StepOrder order = StepOrder::Plain;
  StateHolder state = StateHolder::Shared;
  std::size_t recompute = 0;   // rung of RecomputeRung's ladder
  std::size_t offload = 0;     // rung of offload_ladder.h
  std::size_t host_state = 0;  // quarters of the optimizer state in host memory
  Graphs graphs = Graphs::Given;
  std::optional<DType> number = {};  // format of products; nullopt: as in the config

  auto operator<=>(const LayoutChoice&) const = default;
};

inline bool is_offloading(const LayoutChoice& choice) {
  return choice.offload > 0 || choice.host_state > 0;
}

// Recomputed modules, from none to whole layers. Each rung recomputes at least the modules of the
// previous rung: it keeps less and takes longer.
struct RecomputeRung {
  std::string name;  // "none", "moe_act, layernorm", "full"
  std::vector<config::RecomputeModule> modules;
  bool is_full = false;
  // Recomputation dispatches rows again, which the interleaved order does not support.
  bool moves_rows = false;
  bool is_given = false;  // as in the config: sets no key
};
std::vector<RecomputeRung> recompute_ladder(const config::ModelConfig& model);

// Keys set by the user; a search does not change them.
using PinnedKeys = std::set<std::string>;

// Sets the keys of a choice in a config with model, batch and number of ranks.
class LayoutWriter {
 public:
  LayoutWriter(config::Config start,
               PinnedKeys pinned,
               std::vector<RecomputeRung> ladder,
               std::vector<OffloadRung> offloads);

  config::Config config_of(const LayoutChoice& choice) const;
  // Variant for a config that this writer made, which is cheaper; only modes may differ.
  void set_modes(const LayoutChoice& choice, config::Config& config) const;

  const config::Config& start() const { return start_; }
  const std::vector<RecomputeRung>& ladder() const { return ladder_; }
  const std::vector<OffloadRung>& offloads() const { return offloads_; }
  // Recomputed modules: the rung's, without modules inside a fused operation.
  std::vector<config::RecomputeModule> recomputed(const LayoutChoice& choice) const;
  // Modules of an offload rung that remain to offload beside a recompute rung.
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
  double head_in_layers_ = 0;
};

// Assignment of layers to `stages`: the last stage, with the head, has fewer layers by the cost of
// the head, and the others have equal numbers. Empty: equal stages, which need no text.
// `head`: head_in_layers of the model.
std::string balanced_layout(const config::ModelConfig& model,
                            std::int64_t pp,
                            std::int64_t stages,
                            double head);
// Cost of the head in layers.
double head_in_layers(const config::ModelConfig& model);

// Contents of Scoped graphs: "attn, moe_router, moe_preprocess".
std::vector<config::CudaGraphScope> graph_scopes(const config::ModelConfig& model);

// Sets the keys of a product format.
void set_number(config::Config& config, DType number);

// "tp 1, pp 16, vpp 2, cp 1, ep 64, etp 1, mbs 1, hybridep, overlap, recompute moe_act"
std::string to_text(const LayoutChoice& choice, const LayoutWriter& writer);
// Difference of a layout from another: "pp 8, vpp 4, no graphs"; empty: equal.
std::string difference_text(const LayoutChoice& of,
                            const LayoutChoice& from,
                            const LayoutWriter& writer);
}  // namespace weft::plan
