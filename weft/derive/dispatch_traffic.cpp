#include "weft/derive/dispatch_traffic.h"

#include "weft/derive/dispatch.h"

namespace weft::derive {

using namespace config;
namespace {

constexpr double kProbabilityBytes = 4, kChoiceBytes = 4, kCountBytes = 8;

// Bytes that travel with a row, and counts exchanged beforehand.
struct WireFormat {
  double dispatch_bytes = 0, combine_bytes = 0;  // payload per row
  double probabilities = 0, choices = 0;         // per row
  double counts = 0;                             // per rank
};

WireFormat format_of(const ModelConfig& model, const DispatchShape& shape) {
  const auto ranks = static_cast<double>(shape.ranks),
             machines = static_cast<double>(shape.machines());
  const auto hidden = static_cast<double>(model.hidden_size);
  const ExpertGrid grid = model.expert_grid();
  const auto k = static_cast<double>(grid.per_token);
  const double row = hidden * (model.params_dtype == base::DType::F32 ? 4 : 2);
  // With padding, every expert gets a fixed number of rows of each rank: no counts are exchanged.
  const bool told = !model.moe_pad_expert_input_to_capacity;
  switch (model.moe_token_dispatcher_type) {
    case Dispatcher::AllToAll:
    case Dispatcher::AllToAllSeq:
      return {.dispatch_bytes = row,
              .combine_bytes = row,
              .probabilities = 1,
              .choices = 0,
              .counts = told ? static_cast<double>(grid.experts) : 0};
    case Dispatcher::AllGather:
      // Outputs are summed on the way back, in fp32.
      return {.dispatch_bytes = row,
              .combine_bytes = hidden * 4,
              .probabilities = k,
              .choices = k,
              .counts = told ? ranks : 0};
    case Dispatcher::Flex:
      return {.dispatch_bytes = row,
              .combine_bytes = row,
              .probabilities = k,
              .choices = k,
              .counts = passes_on(model, shape) && shape.ranks_per_node > 1 ? machines + 2 * ranks
                                                                            : 2 * ranks};
  }
  return {};
}

struct Rows {
  double inside = 0, between = 0;
};

Rows rows_of_token(const ModelConfig& model, const DispatchShape& shape) {
  const auto ranks = static_cast<double>(shape.ranks);
  // other ranks in the machine
  const double inside = static_cast<double>(shape.ranks_per_node - 1);
  const double between = static_cast<double>(shape.ranks - shape.ranks_per_node);
  const ExpertGrid grid = model.expert_grid();
  switch (model.moe_token_dispatcher_type) {
    case Dispatcher::AllToAll:
    case Dispatcher::AllToAllSeq: {
      double each = static_cast<double>(grid.per_token) / ranks;
      if (model.moe_expert_capacity_factor && shape.tokens > 0) {
        const double room =
            static_cast<double>(grid.experts * model.expert_capacity(shape.tokens)) /
            static_cast<double>(shape.tokens) / ranks;
        // padded: the capacity, whatever was chosen; else at most the capacity
        each = model.moe_pad_expert_input_to_capacity ? room : std::min(each, room);
      }
      return {.inside = inside * each, .between = between * each};
    }
    case Dispatcher::AllGather:
      return {.inside = inside, .between = between};
    case Dispatcher::Flex:
      break;
  }
  // Probability that a token has an expert on a given rank, and in a given machine.
  const double rank = copies_of_token(model, shape.ranks, shape.ranks) / ranks;
  if (!passes_on(model, shape)) return {.inside = inside * rank, .between = between * rank};
  const auto machines = static_cast<double>(shape.machines());
  const double machine = copies_of_token(model, shape.ranks, shape.machines()) / machines;
  // A rank forwards the tokens of its peers, one in each machine.
  return {.inside = machines * inside * rank, .between = (machines - 1) * machine};
}

}  // namespace

bool passes_on(const ModelConfig& model, const DispatchShape& shape) {
  if (dispatches_by(model, FlexBackend::HybridEp)) return true;
  if (!dispatches_by(model, FlexBackend::DeepEp) || shape.is_uneven) return false;
  return shape.machines() > 1 && shape.ranks_per_node > 1 &&
         shape.ranks % shape.ranks_per_node == 0;
}

DispatchTraffic expected_traffic(const ModelConfig& model, const DispatchShape& shape) {
  const WireFormat format = format_of(model, shape);
  const Rows rows = rows_of_token(model, shape);
  const auto over = [&](double rows_of_token, std::int64_t peers) {
    const double sent = rows_of_token * static_cast<double>(shape.tokens);
    return WireTraffic{.rows = sent,
                       .payload = sent * (format.dispatch_bytes + format.combine_bytes),
                       .probabilities = sent * format.probabilities * kProbabilityBytes,
                       .metadata = sent * format.choices * kChoiceBytes +
                                   static_cast<double>(peers) * format.counts * kCountBytes};
  };
  return {.inside = over(rows.inside, shape.ranks_per_node - 1),
          .between = over(rows.between, shape.ranks - shape.ranks_per_node)};
}

}  // namespace weft::derive
