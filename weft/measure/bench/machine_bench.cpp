#include "weft/measure/bench/machine_bench.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/parallel/cores.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/device/device_ceilings.h"
#include "weft/plan/cost/workload.h"
#include "weft/tensor/pool.h"

namespace weft::measure {
namespace {

using base::number;
using config::DeviceKind;
using tensor::DType;
using tensor::Tensor;

// Sizes for processor cores: large enough for the rate, done within seconds on a slow core.
constexpr std::int64_t kProductOfCores = 1024;
constexpr std::int64_t kBytesOfCores = std::int64_t{128} << 20;
// A copy within a core's caches, like the activations of small runs.
constexpr std::int64_t kCachedBytes = 256 << 10;
constexpr TimerOptions kTimerOfCores{.rounds = 3, .calls = 3, .lead_bytes = 4};
constexpr CeilingShapes kShapesOfCores{.product = kProductOfCores,
                                       .copy_bytes = kBytesOfCores,
                                       .link_bytes = kBytesOfCores};
constexpr std::int64_t kFewRows[] = {8, 16, 32, 64, 128, 256};
constexpr std::int64_t kWidth = 512;  // width of the products with few rows

// Host time to issue one of many small kernels on a concurrent stream.
double launch_seconds(tensor::Device& device) {
  constexpr int kKernels = 1000, kTimes = 5;
  tensor::Pool pool(device);
  const auto stream = device.make_stream("launches", tensor::StreamRole::Compute);
  const Tensor small(pool, DType::F32, {64}, tensor::Tag::Workspace);
  Rounds rounds({.rounds = kTimes});
  const Samples& seconds = rounds.add([&] {
    const double issued = seconds_of([&] {
      for (int i = 0; i < kKernels; ++i) kernels::zero(*stream, small);
    });
    stream->synchronize();
    return issued / kKernels;
  });
  rounds.run();
  return seconds.median();
}

std::unique_ptr<tensor::Device> device_of(const config::Config& config) {
  if (config.runtime.device == DeviceKind::Cuda) return kernels::make_cuda_device(0);
  return kernels::make_cpu_device(static_cast<int>(config.runtime.threads_per_rank));
}

double host_copy_rate(const std::atomic<bool>* stop) {
  const auto host = kernels::make_cpu_device(static_cast<int>(base::usable_cores().size()));
  TimerOptions options = kTimerOfCores;
  options.stop = stop;
  DeviceTimer timer(*host, options);
  return copy_rate(timer, kBytesOfCores);
}

}  // namespace

plan::TimedMachine bench_machine(const MachineBenchRequest& request) {
  const config::Config& config = request.config;
  const bool is_cpu = config.runtime.device == DeviceKind::Cpu;
  const auto device = device_of(config);
  TimerOptions options = is_cpu ? kTimerOfCores : TimerOptions{};
  options.stop = request.stop;
  plan::TimedMachine machine{.device = config.runtime.device};
  {
    DeviceTimer timer(*device, options);
    const CeilingShapes shapes = is_cpu ? kShapesOfCores : CeilingShapes{};
    request.note("ceilings");
    const DeviceCeilings ceilings = bench_ceilings(timer, shapes);
    machine.copy_rate = ceilings.copy;
    machine.link_rate = std::max(ceilings.upload, ceilings.download);
    machine.link_rate_both = ceilings.both;
    machine.flop_rate[DType::BF16] = ceilings.flops;
    const ProductSize square{shapes.product, shapes.product, shapes.product};
    machine.flop_rate[DType::F32] = product_rate(timer, DType::F32, square);
    if (is_cpu) {
      request.note("copies in caches");
      machine.copy_rate = std::max(machine.copy_rate, copy_rate(timer, kCachedBytes));
    }
    const bool is_fp32 = plan::number_of(config.model) == DType::F32;
    const DType own = is_fp32 ? DType::F32 : DType::BF16;
    for (const std::int64_t rows : kFewRows) {
      request.note("products of few rows");
      const ProductSize size{.rows = rows, .n = kWidth, .k = kWidth};
      const double flop = product_flop(number(rows), number(kWidth), number(kWidth));
      machine.products.push_back({.m = number(rows),
                                  .n = number(kWidth),
                                  .k = number(kWidth),
                                  .seconds = flop / product_rate(timer, own, size)});
    }
  }
  request.note("launches");
  machine.launch_seconds = launch_seconds(*device);
  if (!is_cpu) machine.host_copy_rate = host_copy_rate(request.stop);
  return machine;
}

}  // namespace weft::measure
