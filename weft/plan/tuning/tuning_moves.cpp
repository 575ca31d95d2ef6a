#include "weft/plan/tuning/tuning_moves.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"

namespace weft::plan {
namespace {

using Moves = std::vector<TuningMove>;

constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
constexpr const char* kDelay = "comm_overlap.delay_wgrad_compute";
constexpr const char* kExpertGradients = "model.overlap_dispatch_backward_with_experts_wgrad";

// Orders of one kind exclude each other, so each move sets all of their keys.
void add_expert_moves(Moves& moves) {
  const auto order = [&](const char* overlap, const char* delay, const char* experts) {
    moves.push_back({.sets = {{kOverlap, overlap}, {kDelay, delay}, {kExpertGradients, experts}},
                     .kind = MoveKind::Order});
  };
  order("true", "true", "false");
  order("true", "false", "false");
  order("false", "false", "true");
  order("false", "false", "false");
  for (const char* slices : {"1", "2", "4"}) {
    moves.push_back({.sets = {{"comm_overlap.moe_token_slices", slices}}});
  }
  const auto dispatcher = [&](const char* type, const char* backend) {
    moves.push_back({.sets = {{"model.moe_token_dispatcher_type", type},
                              {"model.moe_flex_dispatcher_backend", backend}}});
  };
  dispatcher("alltoall", "null");
  dispatcher("allgather", "null");
  dispatcher("flex", "deepep");
  dispatcher("flex", "hybridep");
}

void add_switch(Moves& moves, const char* key, MoveKind kind) {
  for (const char* value : {"true", "false"})
    moves.push_back({.sets = {{key, value}}, .kind = kind});
}

void add_pipeline_moves(Moves& moves) {
  for (const char* overlap : {"true", "false"}) {
    const char* batched = std::string_view(overlap) == "true" ? "false" : "true";
    moves.push_back({.sets = {{"comm_overlap.overlap_p2p_comm", overlap},
                              {"comm_overlap.batch_p2p_comm", batched}},
                     .kind = MoveKind::Order});
  }
  for (const char* order : {"auto", "zb_h1", "dualpipev"}) {
    moves.push_back({.sets = {{"runtime.pipeline_schedule", order}}});
  }
}

void add_data_moves(Moves& moves, const config::Config& config) {
  const bool shards = config.ddp.use_distributed_optimizer;
  const auto both = [&](const char* reduce, const char* gather) {
    TuningMove move{.sets = {{"comm_overlap.overlap_grad_reduce", reduce},
                             {"ddp.overlap_grad_reduce", reduce}}};
    if (shards) {
      move.sets.emplace_back("comm_overlap.overlap_param_gather", gather);
      move.sets.emplace_back("ddp.overlap_param_gather", gather);
      move.sets.emplace_back("optimizer.overlap_param_gather", gather);
    }
    moves.push_back(std::move(move));
  };
  both("true", "true");
  if (shards) both("true", "false");
  both("false", "false");
}

void add_batch_moves(Moves& moves, const config::Config& config) {
  const std::int64_t now = config.train.micro_batch_size;
  for (const std::int64_t size : {2 * now, now / 2}) {
    if (size < 1) continue;
    moves.push_back({.sets = {{"train.micro_batch_size", std::to_string(size)}}});
  }
}

}  // namespace

std::string to_text(const TuningMove& move) {
  std::vector<std::string> words;
  for (const auto& [key, value] : move.sets) words.push_back(base::text("{}={}", key, value));
  return base::text("{}", fmt::join(words, " "));
}

std::vector<TuningMove> tuning_moves(const config::Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  Moves moves;
  if (config.model.experts() > 0 && layout.ep * layout.etp > 1) add_expert_moves(moves);
  if (config.model.moe_shared_expert_intermediate_size.value_or(0) > 0) {
    add_switch(moves, "model.moe_shared_expert_overlap", MoveKind::Order);
  }
  if (layout.tp > 1) add_switch(moves, "comm_overlap.tp_comm_overlap", MoveKind::Work);
  if (layout.cp > 1) add_switch(moves, "comm_overlap.cp_comm_overlap", MoveKind::Order);
  if (layout.pp > 1) add_pipeline_moves(moves);
  if (layout.world > layout.tp * layout.cp * layout.pp) add_data_moves(moves, config);
  add_batch_moves(moves, config);
  return moves;
}

MoveKind kind_of_change(std::string_view key) {
  constexpr std::string_view kOrderKeys[] = {kOverlap,
                                             kDelay,
                                             kExpertGradients,
                                             "model.moe_shared_expert_overlap",
                                             "comm_overlap.cp_comm_overlap",
                                             "comm_overlap.overlap_p2p_comm",
                                             "comm_overlap.batch_p2p_comm"};
  return std::ranges::find(kOrderKeys, key) == std::end(kOrderKeys) ? MoveKind::Work
                                                                    : MoveKind::Order;
}

config::Config with_move(const config::Config& config, const TuningMove& move) {
  config::Config changed = config;
  for (const auto& [key, value] : move.sets) {
    const config::Field* field = config::find_field(key);
    if (field == nullptr) {
      throw base::ConfigError(
          base::text("no key '{}': {}", base::shown(key), config::key_hint(key)));
    }
    if (!field->set(changed, config::written_from_text(*field, value))) {
      throw base::ConfigError(base::text("{} = {}: wanted {}, as in {}",
                                         key,
                                         base::shown(value),
                                         field->type,
                                         field->example));
    }
  }
  return changed;
}

}  // namespace weft::plan
