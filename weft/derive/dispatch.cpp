#include "weft/derive/dispatch.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/derive/gpu.h"
#include "weft/derive/machines.h"
#include "weft/grid/grid.h"

namespace weft::derive {

using namespace config;
namespace {

using base::number;

// A group of GPUs fills the fewest machines, evenly; CPU ranks lie by their numbers.
GroupPlace place_of(const Config& config, const grid::Layout& layout) {
  const std::optional<std::int64_t> ranks = config.runtime.ranks_per_node;
  if (!is_on_gpu(config)) {
    return most_remote(grid::Grid(layout).groups(grid::GroupKind::TpEp),
                       ranks.value_or(layout.world));
  }
  const std::int64_t joined = gpu_facts(config.hardware).nvlink_domain;
  const std::int64_t machine = std::max<std::int64_t>(1, ranks.value_or(joined));
  const std::int64_t span = layout.ep * layout.etp;
  const auto machines = std::clamp<std::int64_t>((span + machine - 1) / machine, 1, span);
  return {.machines = machines, .in_machine = (span + machines - 1) / machines};
}

double bytes_of_row(const Config& config) {
  const ModelConfig& model = config.model;
  const double width = number(model.moe_latent_size.value_or(model.hidden_size));
  if (model.moe_dispatch_fwd_dtype == base::DType::MXFP8) {
    return width * base::scaled_size_of(base::DType::MXFP8);
  }
  const bool two = model.bf16 || model.fp16 || model.params_dtype != base::DType::F32;
  return width * (two ? 2 : 4);
}

double rows_of(const DispatchTraffic& traffic) {
  return traffic.inside.rows + traffic.between.rows;
}

}  // namespace

std::int64_t tokens_of_rank(const Config& config) {
  const ModelConfig& model = config.model;
  const std::int64_t tp = model.sequence_parallel ? model.tensor_model_parallel_size : 1;
  return config.train.micro_batch_size * model.seq_length / (model.context_parallel_size * tp);
}

double distinct_parts(std::int64_t experts, std::int64_t topk, std::int64_t parts) {
  // Probability that none of the chosen experts is in a given part.
  const double elsewhere = number(experts) - number(experts) / number(parts);
  double none = 1;
  for (std::int64_t i = 0; i < topk; ++i) {
    none *= std::max(0.0, elsewhere - number(i)) / number(experts - i);
  }
  return number(parts) * (1 - none);
}

double copies_of_token(const ModelConfig& model, std::int64_t ranks, std::int64_t parts) {
  // A machine may hold fewer than all ranks that share an expert, but no part of a rank.
  const std::int64_t apart = std::min(parts, ranks / model.expert_shards());
  return number(parts) / number(apart) *
         distinct_parts(model.experts(), model.moe_router_topk, apart);
}

std::optional<std::int64_t> machines_of_hops(const Config& config) {
  const ModelConfig& model = config.model;
  const bool hybrid = dispatches_by(model, FlexBackend::HybridEp);
  if (!hybrid && !dispatches_by(model, FlexBackend::DeepEp)) return std::nullopt;
  if (!config.runtime.ranks_per_node || !model.tokens_travel()) return std::nullopt;
  const grid::Grid grid(layout_of(config));
  const std::int64_t per_node = *config.runtime.ranks_per_node;
  const std::vector<std::int64_t> first =
      members_by_machine(grid.group_of(grid::GroupKind::TpEp, 0), per_node);
  const std::int64_t machines = std::ssize(first);
  if (hybrid) return machines;  // W64 refuses uneven groups
  const auto groups = grid.groups(grid::GroupKind::TpEp);
  const bool is_even = std::ranges::all_of(groups, [&](const std::vector<int>& group) {
    const std::vector<std::int64_t> members = members_by_machine(group, per_node);
    return std::ssize(members) == machines &&
           std::ranges::count(members, members.front()) == std::ssize(members);
  });
  return is_even && machines > 1 && first.front() > 1 ? std::optional(machines) : std::nullopt;
}

DispatchNumbers dispatch_of(const Config& config) {
  const ModelConfig& model = config.model;
  const grid::Layout layout = layout_of(config);
  DispatchNumbers result{.tokens = tokens_of_rank(config), .ranks = layout.ep * layout.etp};
  if (result.ranks == 1 || model.moe_layers() == 0) return result;
  const GroupPlace place = place_of(config, layout);
  const DispatchShape shape{.ranks = result.ranks,
                            .ranks_per_node = place.in_machine,
                            .tokens = result.tokens,
                            .is_uneven = !is_on_gpu(config) && !machines_of_hops(config)};
  const DispatchTraffic traffic = expected_traffic(model, shape);
  result.machines = place.machines;
  result.rows = rows_of(traffic);
  result.rows_between_machines = traffic.between.rows;
  if (is_on_gpu(config) && model.moe_token_dispatcher_type == Dispatcher::Flex) {
    // The middle rank sends no rows to itself: one row for each other rank.
    ModelConfig by_rank = model;
    by_rank.moe_flex_dispatcher_backend = FlexBackend::DeepEp;
    DispatchShape one_hop = shape;
    one_hop.is_uneven = true;
    result.rows = rows_of(expected_traffic(by_rank, one_hop));
    const double machines = copies_of_token(model, result.ranks, place.machines);
    result.rows_between_machines =
        number(result.tokens) * machines * number(place.machines - 1) / number(place.machines);
  }
  result.bytes = result.rows * bytes_of_row(config);
  result.bytes_between_machines = result.rows_between_machines * bytes_of_row(config);
  return result;
}

}  // namespace weft::derive
