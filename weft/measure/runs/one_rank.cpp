#include "weft/measure/runs/one_rank.h"

#include <optional>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/measure/runs/rounds.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/train/launch.h"
#include "weft/train/weights.h"

namespace weft::measure {

OneRank::OneRank(train::Engine& engine)
    : engine_(engine),
      dataset_(data::open_dataset(config().dataset,
                                  config().model.seq_length,
                                  config().model.vocab_size,
                                  static_cast<std::uint64_t>(config().rng.seed))) {}

void OneRank::read(std::int64_t sequence, std::span<std::int32_t> tokens) const {
  dataset_->read(data::Split::Train, static_cast<std::uint64_t>(sequence), tokens);
}

train::Batch OneRank::batch(const train::Share& share, std::int64_t first) const {
  return train::read_batch(share,
                           config().model.seq_length,
                           [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
                             read(first + sequence, tokens);
                           });
}

train::Batch OneRank::global_batch(std::int64_t step) const {
  return batch(engine_.share(), step * config().train.global_batch_size);
}

train::StepTotals OneRank::train(const train::Batch& batch,
                                 std::int64_t step,
                                 exec::Tracing tracing) const {
  const train::StepTotals totals =
      train::train_step(engine_,
                        {.batch = batch, .step = step, .learning_rate = config().optimizer.lr},
                        tracing);
  refuse_repeated(totals, config());
  return totals;
}

void OneRank::leave_inputs(const std::filesystem::path& folder, std::int64_t sequences) const {
  if (const auto failure =
          train::save_weights(engine_, folder, train::huggingface_config_for(config().model))) {
    throw base::SystemError(*failure);
  }
  std::vector<std::int32_t> tokens(base::at(config().model.seq_length + 1));
  base::write_whole(folder / "tokens.i32", [&](const base::Append& append) {
    for (std::int64_t i = 0; i < sequences; ++i) {
      read(i, tokens);
      append({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]});
    }
  });
}

// Stopped is no failure of the rank: it crosses launch() as a flag.
void on_one_rank(const rules::JudgedConfig& config,
                 const std::function<void(const OneRank& rank)>& bench) {
  bool stopped = false;
  train::launch(config, {}, [&](comm::Endpoint& endpoint) {
    train::Engine engine(config, endpoint);
    comm::poison_on_error(endpoint, [&] {
      try {
        bench(OneRank(engine));
      } catch (const Stopped&) {
        stopped = true;
      }
    });
  });
  if (stopped) throw Stopped{};
}

}  // namespace weft::measure
