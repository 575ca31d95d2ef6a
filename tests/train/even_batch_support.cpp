#include "even_batch_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "weft/train/step.h"

namespace weft::train {
namespace {

Batch even_batch(const Engine& engine) {
  const config::ModelConfig& model = engine.config().model;
  const std::int64_t tokens = engine.config().train.micro_batch_size * model.seq_length;
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 1);
  MicroBatch part{.ids = ids, .labels = ids, .experts = {}};
  for (int layer = 0; layer < model.num_layers; ++layer) {
    std::vector<std::int32_t>& experts = part.experts.emplace_back();
    if (!model.is_moe_layer(layer)) continue;
    const std::int64_t k = model.moe_router_topk, stride = model.experts() / k;
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t j = 0; j < k; ++j) {
        experts.push_back(static_cast<std::int32_t>(j * stride + token % stride));
      }
    }
  }
  return Batch(static_cast<std::size_t>(engine.share().micro_batches), part);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Peaks& peaks) {
  return out << fmt::format("{} at one time, by tag {}", peaks.total, peaks.tags);
}

Peaks peaks_of(const tensor::Pool& pool) {
  Peaks peaks{.total = pool.total().peak};
  for (std::size_t tag = 0; tag < peaks.tags.size(); ++tag) {
    peaks.tags[tag] = pool.use(static_cast<tensor::Tag>(tag)).peak;
  }
  return peaks;
}

void run_even_steps(Engine& engine, std::int64_t steps) {
  const Batch batch = even_batch(engine);
  for (std::int64_t step = 0; step < steps; ++step) {
    train_step(engine, {.batch = batch, .step = step}, exec::Tracing::Off);
  }
  evaluate_step(engine, {.batch = batch});
}

}  // namespace weft::train
