#include "weft/measure/bench/offload_bench.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/median.h"
#include "weft/data/dataset.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"

namespace weft::measure {

using namespace train;
namespace {

using base::number;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

constexpr int kUntimedSteps = 2, kCopies = 5;
constexpr std::int64_t kLinkElements = 64 << 20, kMemoryElements = 256 << 20;
constexpr double kFp32 = 4;

class OffloadedSteps {
 public:
  OffloadedSteps(const OffloadBenchRequest& request, Engine& engine)
      : request_(request),
        config_(request.config),
        engine_(engine),
        dataset_(data::open_dataset(config_.dataset,
                                    config_.model.seq_length,
                                    config_.model.vocab_size,
                                    static_cast<std::uint64_t>(config_.rng.seed))) {}

  OffloadBench run() {
    count_bytes();
    measure_ceilings();
    const int total = kUntimedSteps + request_.steps;
    for (int i = 0; i < total; ++i) {
      if (request_.stop != nullptr && request_.stop->load()) return {};
      step(i);
      request_.progress(i + 1, total);
    }
    result_.seconds = base::median(ends_);
    result_.step_seconds = base::median(steps_);
    return result_;
  }

 private:
  void count_bytes() {
    const bool is_fp32 = config_.model.params_dtype == DType::F32;
    const double weight = is_fp32 ? kFp32 : kFp32 / 2;
    for (const schedule::OffloadedAnatomy& one : engine_.plan().anatomy.offloaded) {
      result_.parameters += one.elements.count;
      ++result_.buckets;
    }
    CHECK(result_.parameters > 0, "a bench of offloaded state without any");
    const double parameters = number(result_.parameters);
    // The gradient is read; two moments and the master weight are read and written; the new weight
    // is written unless it is the master itself.
    const bool are_wide = derive::main_gradients(config_) == DType::F32;
    const double gradient = are_wide ? kFp32 : kFp32 / 2;
    result_.memory_bytes = parameters * (gradient + 6 * kFp32 + (is_fp32 ? 0 : weight));
    result_.down_bytes = parameters * gradient;
    result_.up_bytes = parameters * weight;
  }

  // Minimum of several runs: a ceiling is the machine's best.
  template <typename Work>
  static double best_seconds(const Work& work) {
    double best = 0;
    for (int i = 0; i <= kCopies; ++i) {
      const std::int64_t begin = tensor::now_ns();
      work();
      const double seconds = number(tensor::now_ns() - begin) * 1e-9;
      // The first run allocates pages.
      if (i > 0) best = i == 1 ? seconds : std::min(best, seconds);
    }
    return best;
  }

  // Sizes limited to the offloaded bytes: a small model's run stays small.
  void measure_ceilings() {
    tensor::Stream& host = *engine_.host();
    tensor::Stream& down = engine_.lanes()[schedule::Lane::Copy];
    tensor::Stream& up = engine_.lanes()[schedule::Lane::CopyIn];
    tensor::Pool pool(engine_.device());  // separate: does not count in the run's peaks
    {
      const tensor::Shape shape{std::min(kMemoryElements, result_.parameters)};
      const Tensor from = Tensor::host_visible(pool, DType::F32, shape, Tag::Offloaded);
      const Tensor to = Tensor::host_visible(pool, DType::F32, shape, Tag::Offloaded);
      kernels::zero(host, from);
      result_.memory_rate = 2 * number(from.bytes()) / best_seconds([&] {
                              kernels::copy(host, to, from);
                              host.synchronize();
                            });
    }
    const tensor::Shape shape{std::min(kLinkElements, result_.parameters)};
    const Tensor near = Tensor::host_visible(pool, DType::F32, shape, Tag::Offloaded);
    const Tensor far(pool, DType::F32, shape, Tag::Workspace);
    kernels::zero(host, near);
    result_.up_rate = number(near.bytes()) / best_seconds([&] {
                        up.upload(far.raw(up), near.raw(up), near.bytes());
                        up.synchronize();
                      });
    result_.down_rate = number(near.bytes()) / best_seconds([&] {
                          down.download(near.raw(down), far.raw(down), near.bytes());
                          down.synchronize();
                        });
  }

  void step(int index) {
    const std::int64_t first = index * config_.train.global_batch_size;
    const Batch batch = read_batch(
        engine_.share(),
        config_.model.seq_length,
        [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
          dataset_->read(data::Split::Train, static_cast<std::uint64_t>(first + sequence), tokens);
        });
    const std::int64_t begin = tensor::now_ns();
    const StepTotals totals =
        train_step(engine_,
                   {.batch = batch, .step = index, .learning_rate = config_.optimizer.lr},
                   exec::Tracing::On);
    const double seconds = number(tensor::now_ns() - begin) * 1e-9;
    refuse_repeated(totals, config_);
    const double end = seconds_of_end(engine_.training().take_spans());
    if (index < kUntimedSteps) return;
    ends_.push_back(end);
    steps_.push_back(seconds);
  }

  // From the time at which the host knows the norm until the last weights are uploaded.
  static double seconds_of_end(const std::vector<trace::Span>& spans) {
    std::int64_t begin = 0, end = 0;
    for (const trace::Span& span : spans) {
      if (!trace::is_node(span)) continue;
      if (span.name == "clip") begin = span.end_ns;
      if (span.name.starts_with("upload.")) end = std::max(end, span.end_ns);
    }
    CHECK(begin > 0 && end > begin, "no uploads behind the norm");
    return number(end - begin) * 1e-9;
  }

  const OffloadBenchRequest& request_;
  const config::Config& config_;
  Engine& engine_;
  std::unique_ptr<data::Dataset> dataset_;
  std::vector<double> ends_, steps_;
  OffloadBench result_;
};

}  // namespace

double OffloadBench::share() const { return std::max(memory_seconds(), link_seconds()) / seconds; }

OffloadBench bench_offload(const OffloadBenchRequest& request) {
  OffloadBench result;
  launch(request.config, {}, [&](comm::Endpoint& endpoint) {
    Engine engine(request.config, endpoint);
    comm::poison_on_error(endpoint, [&] { result = OffloadedSteps(request, engine).run(); });
  });
  return result;
}

}  // namespace weft::measure
