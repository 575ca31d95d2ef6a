// Cached parts of the memory of many runs. A layer's kept bytes come from its pieces' declarations.
// The micro-batches in flight on a pipeline rank follow from the order of its turns.
//
// The runs of a book differ only in layout and planner settings. Thread-safe; the content does not
// depend on the order of callers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/parameters.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/plan/memory/offloaded_layers.h"
#include "weft/schedule/builders/turns.h"

namespace weft::plan {

// Bytes per micro-batch.
struct KeptLayer {
  double kept = 0;   // between forward and backward
  double again = 0;  // additional peak during its backward
  double away = 0;   // additional bytes if nothing of it is offloaded
  double host = 0;   // in host memory meanwhile

  KeptLayer operator*(double factor) const;
};

// End of a stage: a send, on a rank that has the head in another stage (SendBesideHead) or not
// (Send), or the head.
enum class StageEnd { Send, SendBesideHead, Head };

// Properties of a layer that decide its memory.
struct LayerAsked {
  std::int64_t layer = 0;
  Recomputed whole = Recomputed::No;
  double imbalance = 1;  // rows over the mean
  std::vector<schedule::PieceName> offloaded = {};
};

// Micro-batches between their forward and the end of their backward, by chunk of the rank.
using Flight = std::vector<int>;
// Flights by chunk: one per turn, including its own micro-batch, without flights that another
// dominates in every chunk.
using ChunkFlights = std::vector<std::vector<Flight>>;

// Peak bytes besides weights, gradients and optimizer state on each pipeline rank in a training
// step, counted. Empty: not countable.
using StepCounter = std::function<std::vector<double>(const config::Config&)>;

// Key of a layer: every planner setting that its memory with one sequence depends on. A dense layer
// leaves the fields of experts at their defaults.
struct LayerOfBook {
  derive::AttentionKind attention = {};
  std::int64_t tp = 1, cp = 1;
  DType number = DType::BF16;
  bool shares_sequence = false, overlaps_tp = false;
  Recomputed whole = Recomputed::No;
  bool is_selective = false;
  std::optional<std::vector<config::RecomputeModule>> recomputed = {};  // modules, if selective
  std::vector<std::pair<schedule::Piece, schedule::Part>> offloaded = {};
  bool is_moe = false;
  std::int64_t etp = 1, ep = 1;
  config::Dispatcher dispatcher = {};
  std::int64_t slices = 1;
  bool is_stashed = false;
  double capacity = 0, imbalance = 1;

  auto operator<=>(const LayerOfBook&) const = default;
};

// Key of a pipeline's stages.
struct StagesOfBook {
  std::int64_t pp = 1, vpp = 1;
  std::string layout = {};

  auto operator<=>(const StagesOfBook&) const = default;
};
// Key of the order of a pipeline's turns.
struct TurnsOfBook {
  int pp = 1, vpp = 1, micro_batches = 1, group = 1, extra_warm_up = 0;
  schedule::TurnOrder order = {};

  auto operator<=>(const TurnsOfBook&) const = default;
};
// Key of the parameters of each pipeline rank.
struct ParametersOfBook {
  StagesOfBook stages;
  std::int64_t tp = 1, ep = 1, etp = 1;
  derive::Placement placement = derive::Placement::Ring;

  auto operator<=>(const ParametersOfBook&) const = default;
};
// Key of the parts of a layer that can be offloaded.
struct OffloadableOfBook {
  LayerOfBook layer;
  std::int64_t sequences = 1;
  std::vector<config::OffloadModule> modules = {};

  auto operator<=>(const OffloadableOfBook&) const = default;
};
// Key of the offloaded parts of all stages.
struct OffloadedOfBook {
  OffloadableOfBook last;
  StagesOfBook stages;
  bool is_full = false;

  auto operator<=>(const OffloadedOfBook&) const = default;
};
// Key of a counted short run.
struct CountedOfBook {
  LayerOfBook layer;
  std::int64_t vpp = 1, sequences = 1, batch = 1, pp = 1, ep = 1;
  bool merges = false, delays = false;
  StageEnd end = StageEnd::Send;

  auto operator<=>(const CountedOfBook&) const = default;
};

class MemoryBook {
 public:
  MemoryBook() = default;
  // Variant that counts memory inside the nodes of a layer (counted_layers.h) instead of using a
  // formula.
  explicit MemoryBook(StepCounter counter) : counter_(std::move(counter)) {}

  // Memory of a layer of the config, from a small run of such layers.
  KeptLayer layer(const config::Config& config, const LayerAsked& asked);

  bool counts() const { return counter_ != nullptr; }

  // By pipeline rank.
  const std::vector<ChunkFlights>& flights(const config::Config& config);

  // Additional peak beyond kept memory while a stage that ends as `end` works on such a layer.
  // nullopt: no counter.
  std::optional<double> counted(const config::Config& config,
                                const LayerAsked& asked,
                                StageEnd end);

  // Cached derive::stages_of, derive::rank_parameters and the results of offloaded_layers.h.
  const std::vector<derive::Stage>& stages(const config::Config& config);
  const std::vector<derive::RankParameters>& parameters(const config::Config& config);
  // Cached derive::flops_per_token.
  double flops_per_token(const config::Config& config);
  // Bytes of one gradient per weight shape of the layers on a rank.
  double dummy_gradients(const config::Config& config);
  const std::vector<OffloadablePart>& offloadable(const config::Config& config,
                                                  std::int64_t layer,
                                                  Recomputed whole);
  // By stage and layer of it; empty: nothing is offloaded.
  const OffloadedStages& offloaded(const config::Config& config);

 private:
  // Cached value of the key, made by `make` at first use. References stay valid as long as the
  // book.
  template <typename Key, typename Value, typename Make>
  const Value& look_up(std::map<Key, Value>& known, const Key& key, const Make& make);

  std::mutex mutex_;
  std::map<LayerOfBook, KeptLayer> layers_;
  StepCounter counter_;
  std::map<TurnsOfBook, std::vector<ChunkFlights>> flights_;
  std::map<CountedOfBook, std::optional<double>> counted_;
  std::map<StagesOfBook, std::vector<derive::Stage>> stages_;
  std::map<ParametersOfBook, std::vector<derive::RankParameters>> parameters_;
  std::map<std::int64_t, double> flops_;                             // by sequence length
  std::map<std::pair<std::int64_t, std::int64_t>, double> dummies_;  // by tp and etp
  std::map<OffloadableOfBook, std::vector<OffloadablePart>> offloadable_;
  std::map<OffloadedOfBook, OffloadedStages> offloaded_;
};

}  // namespace weft::plan
