#include "weft/schedule/memory/dispatch_bytes.h"

#include <algorithm>

#include "weft/schedule/memory/element_bytes.h"

namespace weft::schedule {
namespace {

// Expert-parallel group as a dispatcher sees it.
struct Group {
  std::int64_t ranks = 1, machines = 1, k = 1, shards = 1;
  config::Dispatcher type = config::Dispatcher::AllToAll;

  std::int64_t per_machine() const { return ranks / machines; }
  std::int64_t peers() const { return ranks - 1; }
  bool is_flex() const { return type == config::Dispatcher::Flex; }
  bool is_gathered() const { return type == config::Dispatcher::AllGather; }
};

// With deepep in one hop, every rank counts as a machine.
Group group_of(const config::ModelConfig& model, const TokenFlow& flow) {
  const bool is_passed_on =
      config::dispatches_by(model, config::FlexBackend::HybridEp) ||
      (config::dispatches_by(model, config::FlexBackend::DeepEp) && flow.machines > 1);
  const config::ExpertGrid grid = model.expert_grid();
  return {.ranks = grid.ranks,
          .machines = is_passed_on ? flow.machines : grid.ranks,
          .k = grid.per_token,
          .shards = grid.shards,
          .type = model.moe_token_dispatcher_type};
}

// Numbers that a rank sends to the others per slice.
std::int64_t counts_of(const config::ModelConfig& model, const Group& group) {
  if (group.is_flex())
    return group.machines + (group.per_machine() > 1 ? group.ranks : 0) + group.ranks;
  if (model.moe_pad_expert_input_to_capacity) return 0;
  return group.is_gathered() ? group.ranks : model.expert_grid().experts;
}

// Bytes besides a row: its probability, or all its slots' probabilities and choices if the receiver
// sorts; in the backward, the probabilities' gradients.
std::int64_t beside_a_row(const Group& group, Direction direction) {
  if (group.type == config::Dispatcher::AllToAll) return kFp32;
  return group.k * (direction == Direction::D ? kFp32 : kFp32 + kInt32);
}

// True if a single rank's experts read the rows as permuted, with room for dropped slots.
bool reads_as_permuted(const config::ModelConfig& model, const Group& group) {
  return group.type == config::Dispatcher::AllToAll && group.ranks == 1 &&
         !model.moe_pad_expert_input_to_capacity;
}

Bytes row_bytes(const config::ModelConfig& model, const Group& group) {
  const std::int64_t row = model.hidden_size * element_bytes(model);
  if (reads_as_permuted(model, group)) return {.per_token = group.k * row};
  return {.per_row = row};
}

// Experts' input, and places of received rows by expert.
Bytes arranged_bytes(const config::ModelConfig& model, const Group& group) {
  const std::int64_t row = model.hidden_size * element_bytes(model) + kFp32;
  if (group.is_flex()) return {.per_row = row + kInt32, .per_copy = group.k * kInt32};
  if (group.is_gathered()) {
    return {.per_token = group.ranks * group.k * kInt32, .per_row = row + kInt32};
  }
  if (reads_as_permuted(model, group)) return {.per_token = group.k * row};
  return {.per_row = row};
}

// Row splits that only the device knows.
std::int64_t splits_bytes(const config::ModelConfig& model,
                          const TokenFlow& flow,
                          const Group& group) {
  if (row_counts_of(model, flow.budget) != RowCounts::Device) return 0;
  return (2 * group.machines + 2 * group.per_machine() + 1) * kInt64;
}

// Rows of each token, and token of each row; places of the choices' copies.
Bytes route_bytes(const config::ModelConfig& model, const Group& group) {
  const std::int64_t shared = group.shards > 1 ? kInt32 * group.k : 0;
  if (group.is_gathered()) return {.per_token = shared};
  // With padding, equally many rows are sent and received.
  if (!group.is_flex() && model.moe_pad_expert_input_to_capacity) {
    return {.per_token = shared + kInt32 * group.k, .per_row = kInt32};
  }
  const std::int64_t copies = group.is_flex() ? std::min(group.k, group.machines) : group.k;
  return {.per_token = shared + 2 * kInt32 * copies};
}

// Same for forwarded rows.
Bytes passing_bytes(const config::ModelConfig& model, const TokenFlow& flow, const Group& group) {
  Bytes bytes{.fixed = splits_bytes(model, flow, group)};
  if (!group.is_flex() || group.per_machine() == 1) return bytes;
  bytes.per_passing = std::min(group.k, group.per_machine()) * kInt32;
  bytes.per_onward = kInt32;
  return bytes;
}

}  // namespace

DispatchKept dispatch_kept_bytes(const config::ModelConfig& model, const TokenFlow& flow) {
  const Group group = group_of(model, flow);
  return {.route = route_bytes(model, group),
          .dispatch = passing_bytes(model, flow, group),
          .experts = arranged_bytes(model, group),
          .rows = row_bytes(model, group)};
}

DispatchSent dispatch_sent_bytes(const config::ModelConfig& model,
                                 const TokenFlow& flow,
                                 Direction direction) {
  const Group group = group_of(model, flow);
  const std::int64_t row = model.hidden_size * element_bytes(model);
  const std::int64_t beside = beside_a_row(group, direction);
  const bool forward = direction != Direction::D;
  const std::int64_t told =
      forward ? group.peers() * counts_of(model, group) * kInt64 * flow.slices : 0;
  if (!group.is_gathered()) {
    return {.counts = {.fixed = told},
            .dispatch = {.per_row = row + beside},
            .combine = {.per_row = row}};
  }
  // Every token goes to every rank; sums return in fp32.
  const std::int64_t sums = model.hidden_size * kFp32;
  return {.counts = {.fixed = told},
          .dispatch = {.per_token = group.peers() * ((forward ? row : sums) + beside)},
          .combine = {.per_token = group.peers() * (forward ? sums : row)}};
}

}  // namespace weft::schedule
