#include "weft/measure/bench/offload_bench.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/runs/one_rank.h"
#include "weft/measure/runs/rounds.h"

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
  OffloadedSteps(const OffloadBenchRequest& request, const OneRank& rank)
      : request_(request), rank_(rank), config_(rank.config()), engine_(rank.engine()) {}

  OffloadBench run() {
    count_bytes();
    measure_ceilings();
    Rounds rounds({.warm_up = kUntimedSteps,
                   .rounds = request_.steps,
                   .progress = request_.progress,
                   .stop = request_.stop});
    double end = 0;
    const Samples& steps = rounds.add([&, index = 0]() mutable { return step(index++, end); });
    const Samples& ends = rounds.add([&] { return end; });
    rounds.run();
    result_.seconds = ends.median();
    result_.step_seconds = steps.median();
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

  // Minimum of several runs: a ceiling is the machine's best. The first run allocates pages.
  static double best_seconds(const std::function<void()>& work) {
    return samples_of({.warm_up = 1, .rounds = kCopies}, work).least();
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

  // Returns the time of a step; `end`: time of its end.
  double step(int index, double& end) {
    const Batch batch = rank_.global_batch(index);
    const double seconds = seconds_of([&] { rank_.train(batch, index, exec::Tracing::On); });
    end = seconds_of_end(engine_.training().take_spans());
    return seconds;
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
  const OneRank& rank_;
  const config::Config& config_;
  Engine& engine_;
  OffloadBench result_;
};

}  // namespace

double OffloadBench::share() const { return std::max(memory_seconds(), link_seconds()) / seconds; }

OffloadBench bench_offload(const OffloadBenchRequest& request) {
  OffloadBench result;
  on_one_rank(request.config,
              [&](const OneRank& rank) { result = OffloadedSteps(request, rank).run(); });
  return result;
}

}  // namespace weft::measure
