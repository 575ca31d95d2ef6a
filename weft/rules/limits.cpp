#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/memory.h"
#include "weft/rules/missing.h"

namespace weft::rules {

using namespace config;
namespace {

// Upper bounds for one process, far above what today's machines hold. A run beyond them would wait
// for impossible memory, or build its schedule for hours.
constexpr std::int64_t kMostThreadRanks = 1024;
constexpr double kMostNodes = 4e6;
constexpr double kMostBytes = 1024.0 * 1024 * 1024 * 1024;
// Nodes per layer and micro-batch, forward and backward, rounded up. Further nodes for each
// additional rank of a stepwise exchange.
constexpr double kNodesOfLayer = 25;
constexpr double kNodesOfTensorStep = 16, kNodesOfRingStep = 6;

// "what: fix"
void add(std::vector<Missing>& limits, const std::string& complaint) {
  const std::size_t colon = complaint.find(": ");
  limits.push_back({.part = kNoRoom,
                    .keys = {},
                    .message = complaint.substr(0, colon),
                    .fix = complaint.substr(colon + 2)});
}

double number(std::int64_t value) { return static_cast<double>(value); }

double nodes_of_layer(const Config& config) {
  const std::int64_t tp = config.model.tensor_model_parallel_size;
  const std::int64_t cp = config.model.context_parallel_size;
  double nodes = kNodesOfLayer;
  if (tp > 1 && config.comm_overlap.tp_comm_overlap) nodes += number(tp) * kNodesOfTensorStep;
  if (cp > 1) nodes += number(cp) * kNodesOfRingStep;
  return nodes;
}

std::int64_t ranks_of_process(const Config& config, const grid::Layout& layout) {
  switch (config.runtime.backend) {
    case CommBackend::Threads:
      return layout.world;
    case CommBackend::Mpi:
    case CommBackend::Nccl:
    case CommBackend::Fake:
    case CommBackend::Loopback:
      return 1;
  }
  return 1;
}

void check_ranks(const Config& config, const grid::Layout& layout, std::vector<Missing>& limits) {
  if (config.runtime.backend != CommBackend::Threads || layout.world <= kMostThreadRanks) return;
  add(limits,
      base::text(
          "{} ranks as threads of one process (runtime.backend = threads): use at most {}, or "
          "runtime.backend=mpi",
          layout.world,
          kMostThreadRanks));
}

// Every rank plans all stages of its pipeline, to verify them together.
void check_nodes(const Config& config,
                 const grid::Layout& layout,
                 std::int64_t ranks,
                 std::vector<Missing>& limits) {
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const std::int64_t batches = derive::micro_batches(config.train, dp);
  const double nodes =
      number(ranks) * number(batches) * number(config.model.num_layers) * nodes_of_layer(config);
  if (nodes <= kMostNodes) return;
  add(limits,
      base::text("{} of model.num_layers = {} make a schedule of about {:.3g} nodes{}, and at most "
                 "{:.3g} are built: lower train.global_batch_size, or raise train.micro_batch_size",
                 base::counted(batches, "micro-batch"),
                 config.model.num_layers,
                 nodes / number(ranks),
                 ranks == 1 ? "" : base::text(" a rank, {:.3g} on {} ranks", nodes, ranks),
                 kMostNodes));
}

void check_state_bytes(const Config& config,
                       const grid::Layout& layout,
                       std::int64_t ranks,
                       std::vector<Missing>& limits) {
  const derive::ParameterCount count = derive::parameters_of(config.model);
  const double parameters = number(count.total - count.experts) / number(layout.tp * layout.pp) +
                            number(count.experts) / number(layout.ep * layout.etp * layout.pp);
  const derive::ParameterBytes each = derive::bytes_of_parameter(config);
  const double bytes =
      number(ranks) * parameters * number(each.weight + each.gradient + each.optimizer);
  if (bytes <= kMostBytes) return;
  add(limits,
      base::text(
          "{}weights, gradients and optimizer state of {:.3g} parameters a rank on {} of this "
          "process take {}, and at most {} are allowed: {}lower model.num_layers or the widths, or "
          "raise {} under runtime.backend=mpi",
          config.hardware.gpu ? "" : "no GPU is named, and on processor cores ",
          parameters,
          base::counted(ranks, "rank"),
          base::human_bytes(bytes),
          base::human_bytes(kMostBytes),
          config.hardware.gpu ? "" : "name the GPU (hardware.gpu=h100), ",
          config.model.experts() > 0
              ? "model.expert_model_parallel_size"
              : "model.tensor_model_parallel_size or model.pipeline_model_parallel_size"));
}

// The last pipeline stage holds the logits.
void check_logits(const Config& config,
                  const grid::Layout& layout,
                  std::int64_t ranks_here,
                  std::vector<Missing>& limits) {
  const std::int64_t ranks = std::max<std::int64_t>(1, ranks_here / layout.pp);
  const double bytes = number(ranks) * number(config.train.micro_batch_size) *
                       number(config.model.seq_length) * number(config.model.vocab_size) * 4 /
                       number(static_cast<std::int64_t>(layout.tp) * layout.cp);
  if (bytes <= kMostBytes) return;
  add(limits,
      base::text("the fp32 logits of train.micro_batch_size = {}, model.seq_length = {} and "
                 "model.vocab_size "
                 "= {} on {} of this process take {}, and at most {} are allowed: lower "
                 "train.micro_batch_size",
                 config.train.micro_batch_size,
                 config.model.seq_length,
                 config.model.vocab_size,
                 base::counted(ranks, "rank"),
                 base::human_bytes(bytes),
                 base::human_bytes(kMostBytes)));
}

}  // namespace

std::vector<Missing> process_limits(const Config& config) {
  std::vector<Missing> limits;
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t ranks = ranks_of_process(config, layout);
  check_ranks(config, layout, limits);
  check_nodes(config, layout, ranks, limits);
  check_state_bytes(config, layout, ranks, limits);
  check_logits(config, layout, ranks, limits);
  return limits;
}

// One graph per pipeline stage represents all its ranks.
std::vector<Missing> schedule_limits(const Config& config) {
  std::vector<Missing> limits;
  check_nodes(config, derive::layout_of(config), 1, limits);
  return limits;
}

}  // namespace weft::rules
