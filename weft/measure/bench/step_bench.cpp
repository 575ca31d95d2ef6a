#include "weft/measure/bench/step_bench.h"

#include <algorithm>
#include <chrono>

#include "weft/base/files/file.h"
#include "weft/base/median.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/tensor/transfer.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"
#include "weft/train/weights.h"

namespace weft::measure {

using namespace train;
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

constexpr int kWarmUp = 2;

template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Product of square matrices on the engine's own compute threads.
class Ceiling {
 public:
  explicit Ceiling(Engine& engine)
      : stream_(engine.lanes()[schedule::Lane::Compute]), pool_(engine.device()) {
    const std::vector<float> halves(kSize * kSize, 0.5f);
    for (Tensor* t : {&y_, &x_, &w_}) {
      *t = Tensor(pool_, DType::F32, {kSize, kSize}, Tag::Workspace);
      tensor::write<float>(stream_, *t, halves);
    }
  }

  // Best of three: a ceiling is the machine's best, not its average.
  double flops_per_second() {
    double best = 0;
    for (int i = 0; i < 3; ++i) {
      const double seconds = seconds_of([&] {
        kernels::linear_forward(stream_, y_, x_, w_);
        stream_.synchronize();
      });
      best = std::max(best, 2.0 * kSize * kSize * kSize / seconds);
    }
    return best;
  }

 private:
  static constexpr std::int64_t kSize = 2048;
  tensor::Stream& stream_;
  tensor::Pool pool_;  // separate: does not count in the step's peaks
  Tensor y_, x_, w_;
};

class Bench {
 public:
  Bench(const StepBenchRequest& request, Engine& engine)
      : request_(request),
        config_(request.config),
        engine_(engine),
        dataset_(data::open_dataset(config_.dataset,
                                    config_.model.seq_length,
                                    config_.model.vocab_size,
                                    static_cast<std::uint64_t>(config_.rng.seed))),
        ceiling_(engine) {}

  StepBench run() {
    if (!request_.leave_in.empty()) leave_inputs();
    const int total = kWarmUp + request_.steps;
    for (int i = 0; i < total; ++i) {
      if (request_.stop != nullptr && request_.stop->load()) return {};
      if (i == kWarmUp + request_.steps / 2 && request_.between) request_.between();
      step(i);
      request_.progress(i + 1, total);
    }
    result_.step_seconds = base::median(step_seconds_);
    result_.tokens_per_second =
        static_cast<double>(derive::tokens_per_step(config_)) / result_.step_seconds;
    result_.flops_per_second = derive::flops_per_token(config_.model) * result_.tokens_per_second;
    result_.sgemm_peak = base::median(ceilings_);
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      result_.peak_bytes[static_cast<std::size_t>(tag)] =
          engine_.pool().use(static_cast<tensor::Tag>(tag)).peak;
    }
    return result_;
  }

 private:
  void read(std::int64_t sequence, std::span<std::int32_t> tokens) const {
    dataset_->read(data::Split::Train, static_cast<std::uint64_t>(sequence), tokens);
  }

  void step(int index) {
    const std::int64_t first = index * config_.train.global_batch_size;
    const Batch batch = read_batch(engine_.share(),
                                   config_.model.seq_length,
                                   [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
                                     read(first + sequence, tokens);
                                   });
    StepTotals totals;
    const double ceiling = ceiling_.flops_per_second();
    const double seconds = seconds_of([&] {
      totals = train_step(engine_,
                          {.batch = batch, .step = index, .learning_rate = config_.optimizer.lr},
                          exec::Tracing::Off);
    });
    refuse_repeated(totals, config_);
    result_.losses.push_back(totals.loss);
    if (index < kWarmUp) return;
    step_seconds_.push_back(seconds);
    ceilings_.push_back(ceiling);
  }

  void leave_inputs() {
    save_weights(engine_, request_.leave_in, huggingface_config_for(config_.model));
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(config_.model.seq_length + 1));
    const std::int64_t sequences = (kWarmUp + request_.steps) * config_.train.global_batch_size;
    base::write_whole(request_.leave_in / "tokens.i32", [&](const base::Append& append) {
      for (std::int64_t i = 0; i < sequences; ++i) {
        read(i, tokens);
        append({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]});
      }
    });
  }

  const StepBenchRequest& request_;
  const config::Config& config_;
  Engine& engine_;
  std::unique_ptr<data::Dataset> dataset_;
  Ceiling ceiling_;
  std::vector<double> step_seconds_, ceilings_;
  StepBench result_;
};

}  // namespace

StepBench bench_step(const StepBenchRequest& request) {
  StepBench result;
  launch(request.config, {}, [&](comm::Endpoint& endpoint) {
    Engine engine(request.config, endpoint);
    comm::poison_on_error(endpoint, [&] { result = Bench(request, engine).run(); });
  });
  return result;
}

}  // namespace weft::measure
