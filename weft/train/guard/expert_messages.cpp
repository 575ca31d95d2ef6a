#include "weft/train/guard/expert_messages.h"

#include "weft/derive/derived.h"
#include "weft/derive/dispatch.h"
#include "weft/grid/grid.h"
#include "weft/kernels/kernels.h"
#include "weft/train/groups.h"

namespace weft::train {
namespace {

// Ranks of an expert-parallel group by machine; one per machine if rows take one hop.
struct Ranks {
  std::int64_t machines = 1, per_machine = 1;

  std::int64_t count() const { return machines * per_machine; }
  std::int64_t turned_machine(std::int64_t machine, std::int64_t by) const {
    return (machine + by) % machines;
  }
  // Rank at the distance `by` from `rank`, counted in machines and in positions within a machine.
  std::int64_t turned(std::int64_t rank, std::int64_t by) const {
    const std::int64_t machine = turned_machine(rank / per_machine, by / per_machine);
    return machine * per_machine + (rank + by) % per_machine;
  }
};

using CountedAt = std::function<std::int64_t(int member, std::int64_t place)>;

// Counts per expert, slice after slice.
CountedAt by_expert(const Ranks& ranks, std::int64_t local) {
  return [=](int member, std::int64_t place) {
    const std::int64_t expert = place % (ranks.count() * local);
    return place - expert + ranks.turned(expert / local, member) * local + expert % local;
  };
}

// Counts per rank, list after list.
CountedAt by_rank(const Ranks& ranks) {
  return [=](int member, std::int64_t place) {
    const std::int64_t rank = place % ranks.count();
    return place - rank + ranks.turned(rank, member);
  };
}

// Counts per machine, then per rank, slice after slice (kernels::Hops).
CountedAt by_machine_and_rank(const Ranks& ranks) {
  const std::int64_t numbers =
      kernels::Hops{.ranks = ranks.count(), .per_machine = ranks.per_machine}.counts();
  return [=, of_rank = by_rank(ranks)](int member, std::int64_t place) {
    const std::int64_t number = place % numbers, slice = place - number;
    if (number < ranks.machines) {
      return slice + ranks.turned_machine(number, member / ranks.per_machine);
    }
    return slice + ranks.machines + of_rank(member, number - ranks.machines);
  };
}

CountedAt counted_at(config::Dispatcher dispatcher, const Ranks& ranks, std::int64_t local) {
  if (dispatcher == config::Dispatcher::AllToAll) return by_expert(ranks, local);
  // With one rank per machine the counts per rank suffice.
  return ranks.per_machine > 1 ? by_machine_and_rank(ranks) : by_rank(ranks);
}

}  // namespace

std::map<std::string, comm::ExpertMessages> expert_messages(const rules::JudgedConfig& config) {
  const config::ModelConfig& model = config->model;
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<int> ep = grid.group_of(grid::GroupKind::TpEp, 0);
  const std::int64_t size = std::ssize(ep);
  if (size == 1 || model.experts() == 0) return {};
  const std::int64_t local = model.expert_grid().local();
  const bool has_machines = derive::machines_of_hops(config).has_value();
  Ranks ranks{.machines = size};
  if (has_machines) {
    const auto per_node = static_cast<int>(config->runtime.ranks_per_node.value());
    ranks.per_machine = std::ssize(machine_members(ep, 0, per_node).within);
    ranks.machines = size / ranks.per_machine;
  }
  std::map<std::string, comm::ExpertMessages> messages;
  messages[kEp] = {.each = local,
                   .counted_at = counted_at(model.moe_token_dispatcher_type, ranks, local)};
  if (!has_machines) return messages;
  messages[kEpAcross] = {.each = local * ranks.per_machine};
  messages[kEpWithin] = {.each = local};
  return messages;
}

}  // namespace weft::train
