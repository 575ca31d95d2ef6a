#include "weft/plan/memory/counted_layers.h"

#include <algorithm>
#include <numeric>

#include "weft/base/casts.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/layers_alone.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/short_step.h"
#include "weft/schedule/memory/offload_share.h"

namespace weft::plan {
namespace {

using config::Config;

constexpr std::int64_t kLayersOfStage = 3, kLayersOfChunk = 2;
// Micro-batches of a pipeline of two stages, and of one stage.
constexpr std::int64_t kPipelineBatches = 4, kStageBatches = 3;

// Modules with offloaded parts in such a layer.
std::vector<config::OffloadModule> modules_of(const Config& config, const LayerAsked& asked) {
  std::vector<config::OffloadModule> modules;
  Config whole = config;
  whole.runtime.offload_layers_share = 1;
  for (const schedule::OffloadedModule& module : schedule::offloaded_modules(whole)) {
    const bool goes = std::ranges::any_of(module.parts, [&](const schedule::PieceName& name) {
      return std::ranges::find(asked.offloaded, name) != asked.offloaded.end();
    });
    if (goes) modules.push_back(module.module);
  }
  return modules;
}

// Chunks of a rank with this end. With merged turns the rank works on two chunks at once.
std::vector<std::size_t> chunks_with(const Config& small, StageEnd end) {
  std::vector<std::size_t> chunks(base::at(derive::virtual_stages(small.model)));
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  const bool merges = small.comm_overlap.overlap_moe_expert_parallel_comm;
  if (end == StageEnd::SendBesideHead && !merges) chunks.pop_back();
  return chunks;
}

}  // namespace

Config small_pipeline(const Config& config, const LayerAsked& asked, StageEnd end) {
  Config small = layers_alone(config, asked.layer, asked.whole);
  config::ModelConfig& model = small.model;
  const bool is_pipeline = config.model.pipeline_model_parallel_size > 1;
  const bool has_chunks = derive::virtual_stages(config.model) > 1 && end != StageEnd::Head;
  const std::int64_t ranks = is_pipeline ? 2 : 1;
  model.num_layers = ranks * (has_chunks ? 2 * kLayersOfChunk : kLayersOfStage);
  model.pipeline_model_parallel_size = ranks;
  model.microbatch_group_size_per_vp_stage.reset();  // applies to the whole pipeline only
  small.runtime.world_size = *small.runtime.world_size * ranks;
  if (has_chunks) {
    model.virtual_pipeline_model_parallel_size = 2;
  } else if (is_pipeline && small.comm_overlap.overlap_moe_expert_parallel_comm) {
    model.virtual_pipeline_model_parallel_size = 1;
  }
  if (end == StageEnd::SendBesideHead) {
    // The head belongs to another stage.
    model.vocab_size = 2 * model.tensor_model_parallel_size;
    model.should_pad_vocab = false;
  }
  // Its formats require a distributed optimizer.
  const bool is_aware = small.optimizer.use_precision_aware_optimizer;
  small.ddp.use_distributed_optimizer = small.optimizer.use_distributed_optimizer = is_aware;
  small.ddp.num_distributed_optimizer_instances = 1;
  small.dataset = {};
  small.dataset.seq_length = model.seq_length;
  model.offload_modules = modules_of(config, asked);
  model.fine_grained_activation_offloading = !model.offload_modules.empty();
  small.runtime.offload_layers_share = 1;
  const std::int64_t all = std::max<std::int64_t>(1, micro_batches_of(config));
  return with_micro_batches(std::move(small),
                            std::min(all, is_pipeline ? kPipelineBatches : kStageBatches));
}

std::optional<double> counted_extra(const Config& small, StageEnd end, const StepCounter& counter) {
  const std::vector<double> counted = counter(small);
  if (counted.empty()) return std::nullopt;
  const std::size_t rank = end == StageEnd::Send ? 0 : counted.size() - 1;
  MemoryBook book;
  double kept = 0;
  for (const std::size_t chunk : chunks_with(small, end)) {
    kept = std::max(kept, kept_in_chunk(small, static_cast<int>(rank), chunk, book));
  }
  return std::max(0.0, counted[rank] - kept);
}

}  // namespace weft::plan
