#include "weft/config/derived.h"
#include "weft/config/findings.h"
#include "weft/grid/grid.h"

namespace weft::config {
namespace {

// Far below where 64-bit arithmetic on the counts would overflow.
constexpr double kMostTokensOfMicroBatch = 1u << 31;
constexpr double kMostTokensOfStep = 1ull << 40;

void check_tokens(const Config& config, Findings& findings) {
  struct Batch {
    const char* key;
    std::int64_t sequences;
    double most_tokens;
  };
  const Batch batches[] = {
      {"train.micro_batch_size", config.train.micro_batch_size, kMostTokensOfMicroBatch},
      {"train.global_batch_size", config.train.global_batch_size, kMostTokensOfStep}};
  for (const Batch& batch : batches) {
    if (!findings.sound({"model.seq_length", batch.key})) continue;
    const double tokens =
        static_cast<double>(batch.sequences) * static_cast<double>(config.model.seq_length);
    if (tokens <= batch.most_tokens) continue;
    findings.complain("{} = {} of model.seq_length = {} is {:.0f} tokens: use at most {:.0f}",
                      batch.key,
                      batch.sequences,
                      config.model.seq_length,
                      tokens,
                      batch.most_tokens);
  }
}

void check_layout(const Config& config, Findings& findings) {
  if (!findings.sound({"runtime.world_size",
                       "model.num_moe_experts",
                       "model.tensor_model_parallel_size",
                       "model.pipeline_model_parallel_size",
                       "model.context_parallel_size",
                       "model.expert_model_parallel_size",
                       "model.expert_tensor_parallel_size"})) {
    return;
  }
  const grid::Layout layout = layout_of(config);
  const std::vector<std::string> complaints = grid::layout_complaints(layout);
  for (const std::string& complaint : complaints) {
    findings.complain("layout (runtime.world_size, model.*_parallel_size): {}", complaint);
  }
  if (!complaints.empty() ||
      !findings.sound({"train.micro_batch_size", "train.global_batch_size"})) {
    return;
  }
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const std::int64_t together = config.train.micro_batch_size * dp;
  if (config.train.global_batch_size % together != 0) {
    findings.complain(
        "train.global_batch_size = {} is not divisible by train.micro_batch_size * dp = {}*{} = "
        "{}: use a multiple of {}",
        config.train.global_batch_size,
        config.train.micro_batch_size,
        dp,
        together,
        together);
  }
}

void check_learning_rate(const Config& config, Findings& findings) {
  if (findings.sound({"optimizer.lr", "optimizer.min_lr"}) &&
      config.optimizer.min_lr > config.optimizer.lr) {
    findings.complain("optimizer.min_lr = {} is above optimizer.lr = {}: use at most that",
                      config.optimizer.min_lr,
                      config.optimizer.lr);
  }
  // A warm-up longer than the run is legal: the run ends inside it.
  const std::optional<std::int64_t> end = config.scheduler.lr_decay_iters;
  if (findings.sound({"scheduler.lr_warmup_iters", "scheduler.lr_decay_iters"}) && end &&
      config.scheduler.lr_warmup_iters > *end) {
    findings.complain(
        "scheduler.lr_warmup_iters = {} is above scheduler.lr_decay_iters = {}: use at most that",
        config.scheduler.lr_warmup_iters,
        *end);
  }
}

void check_dataset(const Config& config, Findings& findings) {
  const DatasetConfig& dataset = config.dataset;
  if (dataset.kind == DataKind::Mock) return;
  if (dataset.path.empty()) {
    findings.complain("dataset.kind = {} reads files: set dataset.path", word(dataset.kind));
  }
  if (dataset.kind == DataKind::Text && config.model.vocab_size < 256) {
    findings.complain(
        "dataset.kind = text has one token a byte, and model.vocab_size = {}: use at least 256",
        config.model.vocab_size);
  }
  if (config.train.eval_interval > 0 && dataset.eval_fraction == 0) {
    findings.complain(
        "train.eval_interval = {} with dataset.eval_fraction = 0 has nothing to evaluate on: set a "
        "fraction such as 0.05, or train.eval_interval=0",
        config.train.eval_interval);
  }
}

}  // namespace

void check_run(const Config& config, Findings& findings) {
  check_tokens(config, findings);
  check_layout(config, findings);
  check_learning_rate(config, findings);
  check_dataset(config, findings);
}

}  // namespace weft::config
