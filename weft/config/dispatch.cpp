#include "weft/config/dispatch.h"

#include <algorithm>

#include "weft/config/derived.h"
#include "weft/config/dispatch_traffic.h"
#include "weft/config/gpu.h"

namespace weft::config {
namespace {

// GPUs joined by one NVLink switch in a rack of GB200, GB300 or VR200.
constexpr std::int64_t kRackOfGpus = 72;

double number(std::int64_t value) { return static_cast<double>(value); }

bool is_in_rack(const std::string& device) {
  constexpr const char* kNames[] = {"NVIDIA GB200", "NVIDIA GB300", "NVIDIA VR200"};
  return std::ranges::any_of(kNames, [&](const char* start) { return device.starts_with(start); });
}

std::int64_t ranks_of_node(const Config& config, std::int64_t world) {
  if (config.runtime.ranks_per_node) return *config.runtime.ranks_per_node;
  if (!is_on_gpu(config)) return world;
  const GpuFacts gpu = gpu_facts(config.hardware);
  return is_in_rack(gpu.name) ? kRackOfGpus : gpu.gpus_per_node;
}

double bytes_of_row(const Config& config) {
  const ModelConfig& model = config.model;
  const double width = number(model.moe_latent_size.value_or(model.hidden_size));
  // Blocks of 32 values share a scale of one byte.
  if (model.moe_dispatch_fwd_dtype == WireDtype::Mxfp8) return width * (1 + 1.0 / 32);
  const bool two = model.bf16 || model.fp16 || model.params_dtype != Precision::Fp32;
  return width * (two ? 2 : 4);
}

// Rows of one token that leave their part, of `parts` that share the experts.
double rows_of_token(const ModelConfig& model, std::int64_t parts) {
  const double others = number(parts - 1) / number(parts);
  switch (model.moe_token_dispatcher_type) {
    case Dispatcher::AllToAll:
    case Dispatcher::AllToAllSeq:
      return number(model.moe_router_topk) * others;
    case Dispatcher::AllGather:
      return number(parts - 1);
    case Dispatcher::Flex:
      return distinct_parts(model.experts(), model.moe_router_topk, parts) * others;
  }
  return 0;
}

}  // namespace

double distinct_parts(std::int64_t experts, std::int64_t topk, std::int64_t parts) {
  // The chance that none of the chosen experts is in one given part.
  const double elsewhere = number(experts) - number(experts) / number(parts);
  double none = 1;
  for (std::int64_t i = 0; i < topk; ++i) {
    none *= std::max(0.0, elsewhere - number(i)) / number(experts - i);
  }
  return number(parts) * (1 - none);
}

DispatchNumbers dispatch_of(const Config& config) {
  const ModelConfig& model = config.model;
  const grid::Layout layout = layout_of(config);
  const std::int64_t shared_by = layout.cp * (model.sequence_parallel ? layout.tp : 1);
  DispatchNumbers result{.tokens = config.train.micro_batch_size * model.seq_length / shared_by,
                         .ranks = layout.ep};
  if (layout.ep == 1 || model.experts() == 0) return result;
  const std::int64_t node = std::max<std::int64_t>(1, ranks_of_node(config, layout.world));
  const std::int64_t span = layout.ep * layout.etp;
  result.nodes = std::clamp<std::int64_t>((span + node - 1) / node, 1, layout.ep);
  if (!is_on_gpu(config) && layout.ep % result.nodes == 0) {
    const DispatchTraffic traffic = expected_traffic(
        model,
        {.ranks = layout.ep, .ranks_per_node = layout.ep / result.nodes, .tokens = result.tokens});
    result.rows = traffic.inside.rows + traffic.between.rows;
    result.rows_between_nodes = traffic.between.rows;
    result.bytes = result.rows * bytes_of_row(config);
    result.bytes_between_nodes = result.rows_between_nodes * bytes_of_row(config);
    return result;
  }
  // On GPUs both flex backends cross nodes once for a token, and fan out on the other side.
  result.rows = number(result.tokens) * rows_of_token(model, result.ranks);
  result.rows_between_nodes = number(result.tokens) * rows_of_token(model, result.nodes);
  if (model.moe_token_dispatcher_type == Dispatcher::AllGather) {
    // Every rank of the other nodes gets its own copy.
    result.rows_between_nodes = result.rows * number(result.nodes - 1) / number(result.nodes) *
                                number(layout.ep) / number(layout.ep - 1);
  }
  result.bytes = result.rows * bytes_of_row(config);
  result.bytes_between_nodes = result.rows_between_nodes * bytes_of_row(config);
  return result;
}

}  // namespace weft::config
