#include "weft/measure/bench/step_bench.h"

#include <iterator>

#include "weft/derive/derived.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/runs/one_rank.h"
#include "weft/measure/runs/rounds.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {

using namespace train;
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

constexpr int kWarmUp = 2;

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
    const Samples seconds = samples_of({.rounds = 3}, [&] {
      kernels::linear_forward(stream_, y_, x_, w_);
      stream_.synchronize();
    });
    return 2.0 * kSize * kSize * kSize / seconds.least();
  }

 private:
  static constexpr std::int64_t kSize = 2048;
  tensor::Stream& stream_;
  tensor::Pool pool_;  // separate: does not count in the step's peaks
  Tensor y_, x_, w_;
};

class Bench {
 public:
  Bench(const StepBenchRequest& request, const OneRank& rank)
      : request_(request), rank_(rank), config_(rank.config()), ceiling_(rank.engine()) {}

  StepBench run() {
    if (!request_.leave_in.empty()) {
      rank_.leave_inputs(request_.leave_in,
                         (kWarmUp + request_.steps) * config_.train.global_batch_size);
    }
    Rounds rounds({.warm_up = kWarmUp,
                   .rounds = request_.steps,
                   .progress = request_.progress,
                   .stop = request_.stop});
    const Samples& ceilings = rounds.add([&] {
      const bool is_halfway = std::ssize(result_.losses) == kWarmUp + request_.steps / 2;
      if (is_halfway && request_.between) request_.between();
      return ceiling_.flops_per_second();
    });
    const Samples& seconds = rounds.add([&] { return step(std::ssize(result_.losses)); });
    rounds.run();
    result_.step_seconds = seconds.median();
    result_.tokens_per_second =
        static_cast<double>(derive::tokens_per_step(config_)) / result_.step_seconds;
    result_.flops_per_second = derive::flops_per_token(config_.model) * result_.tokens_per_second;
    result_.sgemm_peak = ceilings.median();
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      result_.peak_bytes[static_cast<std::size_t>(tag)] =
          rank_.engine().pool().use(static_cast<tensor::Tag>(tag)).peak;
    }
    return result_;
  }

 private:
  double step(std::int64_t index) {
    const Batch batch = rank_.global_batch(index);
    return seconds_of([&] { result_.losses.push_back(rank_.train(batch, index).loss); });
  }

  const StepBenchRequest& request_;
  const OneRank& rank_;
  const config::Config& config_;
  Ceiling ceiling_;
  StepBench result_;
};

}  // namespace

StepBench bench_step(const StepBenchRequest& request) {
  StepBench result;
  on_one_rank(request.config, [&](const OneRank& rank) { result = Bench(request, rank).run(); });
  return result;
}

}  // namespace weft::measure
