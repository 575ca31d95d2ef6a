#include "weft/schedule/dispatch_bytes.h"

#include <algorithm>

#include "weft/schedule/element_bytes.h"

namespace weft::schedule {
namespace {

// An expert-parallel group as a dispatcher sees it.
struct Group {
  std::int64_t ranks = 1, nodes = 1, k = 1;
  config::Dispatcher type = config::Dispatcher::AllToAll;

  std::int64_t per_node() const { return ranks / nodes; }
  std::int64_t peers() const { return ranks - 1; }
  bool is_flex() const { return type == config::Dispatcher::Flex; }
  bool is_gathered() const { return type == config::Dispatcher::AllGather; }
};

// deepep: every rank is a node of its own.
Group group_of(const config::ModelConfig& model, const TokenFlow& flow) {
  const bool hybrid = config::dispatches_by(model, config::FlexBackend::HybridEp);
  const std::int64_t ranks = model.expert_model_parallel_size;
  return {.ranks = ranks,
          .nodes = hybrid ? flow.nodes : ranks,
          .k = model.moe_router_topk,
          .type = model.moe_token_dispatcher_type};
}

// Numbers that a rank tells the others of a slice.
std::int64_t counts_of(const config::ModelConfig& model, const Group& group) {
  if (group.is_flex()) return group.nodes + (group.per_node() > 1 ? group.ranks : 0) + group.ranks;
  if (model.moe_pad_expert_input_to_capacity) return 0;
  return group.is_gathered() ? group.ranks : model.experts();
}

// With each row: its probability and, where the receiver sorts, those of all its slots and which
// they are; back, the gradients of the probabilities.
std::int64_t beside_a_row(const Group& group, Direction direction) {
  if (group.type == config::Dispatcher::AllToAll) return kFp32;
  return group.k * (direction == Direction::F ? kFp32 + kInt32 : kFp32);
}

// What the experts read, and where what arrived is, by expert.
Bytes arranged_bytes(const config::ModelConfig& model, const Group& group) {
  const std::int64_t row = model.hidden_size * element_bytes(model) + kFp32;
  if (group.is_flex()) return {.per_row = row + kInt32, .per_copy = group.k * kInt32};
  if (group.is_gathered()) {
    return {.per_token = group.ranks * group.k * kInt32, .per_row = row + kInt32};
  }
  // One rank's experts read the rows as they were permuted, with room for slots that were dropped.
  if (group.ranks == 1 && !model.moe_pad_expert_input_to_capacity) {
    return {.per_token = group.k * row};
  }
  return {.per_row = row};
}

// How many rows go where, as long as only the device knows.
std::int64_t splits_bytes(const config::ModelConfig& model,
                          const TokenFlow& flow,
                          const Group& group) {
  if (row_counts_of(model, flow.budget) != RowCounts::Device) return 0;
  return (2 * group.nodes + 2 * group.per_node() + 1) * kInt64;
}

}  // namespace

Bytes dispatch_kept_bytes(const config::ModelConfig& model, const TokenFlow& flow, Piece piece) {
  const Group group = group_of(model, flow);
  const std::int64_t first = std::min(group.k, group.nodes);
  const std::int64_t second = std::min(group.k, group.per_node());
  switch (piece) {
    case Piece::Route:  // which rows are a token's, and which token a row is of
      if (group.is_gathered()) return {};
      // Padded, there are as many rows as come from the others.
      if (!group.is_flex() && model.moe_pad_expert_input_to_capacity) {
        return {.per_token = kInt32 * group.k, .per_row = kInt32};
      }
      return {.per_token = 2 * kInt32 * (group.is_flex() ? first : group.k)};
    case Piece::Dispatch: {  // the same of the rows that are fanned out
      const std::int64_t splits = splits_bytes(model, flow, group);
      if (!group.is_flex() || group.per_node() == 1) return {.fixed = splits};
      return {.fixed = splits, .per_passing = second * kInt32, .per_onward = kInt32};
    }
    case Piece::Experts:
      return arranged_bytes(model, group);
    default:
      return {};
  }
}

Bytes dispatch_sent_bytes(const config::ModelConfig& model,
                          const TokenFlow& flow,
                          Piece piece,
                          Direction direction) {
  const Group group = group_of(model, flow);
  const std::int64_t row = model.hidden_size * element_bytes(model);
  const bool forward = direction == Direction::F;
  if (piece == Piece::Counts) {
    return {.fixed = forward ? group.peers() * counts_of(model, group) * kInt64 * flow.slices : 0};
  }
  const std::int64_t beside = piece == Piece::Dispatch ? beside_a_row(group, direction) : 0;
  if (!group.is_gathered()) return {.per_row = row + beside};
  // Every token goes to every rank, and sums come back in fp32.
  const bool gathers = (piece == Piece::Dispatch) == forward;
  return {.per_token = group.peers() * ((gathers ? row : model.hidden_size * kFp32) + beside)};
}

}  // namespace weft::schedule
