#include "weft/trace/exposure/device_exposure.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/trace/exposure/rank_exposure.h"

namespace weft::trace {
namespace {

struct DeviceSets {
  Intervals busy, gemm, copies;
  std::vector<ComputeLane::Node> nodes;
  Communications communications;
  Interval window;
};

// Adds a stretch of compute; the host was late until the stretch was launched.
void add_stretch(const Interval& stretch,
                 std::int64_t launched_ns,
                 std::vector<ComputeLane::Node>& nodes) {
  const std::int64_t before = nodes.empty() ? stretch.begin : nodes.back().end;
  const std::int64_t launched = std::min(launched_ns, stretch.begin);
  if (launched_ns != Kernel::kUnknown && launched > before) {
    nodes.push_back({.begin = before, .end = launched, .ready = before});
  }
  nodes.push_back({.begin = stretch.begin, .end = stretch.end, .ready = stretch.begin});
}

// Kernels come by begin; touching kernels form one stretch, launched with the first of them.
std::vector<ComputeLane::Node> nodes_of(const std::vector<Kernel>& kernels) {
  std::vector<ComputeLane::Node> nodes;
  Interval stretch{0, 0};
  std::int64_t launched = Kernel::kUnknown;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == SpanKind::Communication || kernel.kind == SpanKind::Copy) continue;
    if (kernel.begin_ns > stretch.end || stretch.end == stretch.begin) {
      if (stretch.end > stretch.begin) add_stretch(stretch, launched, nodes);
      stretch = {kernel.begin_ns, kernel.end_ns};
      launched = kernel.launched_ns;
    } else {
      stretch.end = std::max(stretch.end, kernel.end_ns);
    }
  }
  if (stretch.end > stretch.begin) add_stretch(stretch, launched, nodes);
  return nodes;
}

DeviceSets sets_of(const DeviceTrace& trace, const std::vector<std::string>& communications) {
  DeviceSets sets;
  sets.window = {trace.kernels.front().begin_ns, trace.kernels.front().end_ns};
  for (const Kernel& kernel : trace.kernels) {
    const Interval time{kernel.begin_ns, kernel.end_ns};
    sets.window.end = std::max(sets.window.end, time.end);
    if (kernel.kind == SpanKind::Communication) {
      const std::string& kind = communications[base::at(kernel.communication)];
      const Communication one{.time = time, .waited_until = time.begin};
      sets.communications[kind].push_back(one);
      sets.communications[std::string(kAllKinds)].push_back(one);
    } else if (kernel.kind == SpanKind::Copy) {
      sets.copies.push_back(time);
    } else {
      sets.busy.push_back(time);
      const bool is_gemm = kernel.kind == SpanKind::Gemm || kernel.kind == SpanKind::Attention;
      if (is_gemm) sets.gemm.push_back(time);
    }
  }
  sets.busy = unite(std::move(sets.busy));
  sets.gemm = unite(std::move(sets.gemm));
  sets.copies = unite(std::move(sets.copies));
  sets.nodes = nodes_of(trace.kernels);
  return sets;
}

void divide(Walls& walls, double by) {
  for (double* part : {&walls.step,
                       &walls.compute,
                       &walls.host,
                       &walls.communication,
                       &walls.bubble,
                       &walls.late,
                       &walls.copy,
                       &walls.idle,
                       &walls.gemm}) {
    *part /= by;
  }
}

}  // namespace

DeviceTimes analyse_devices(const DeviceTraces& traces) {
  DeviceTimes times;
  std::vector<RankSums> ranks;
  double longest_ms = 0;
  for (const DeviceTrace& trace : traces.devices) {
    if (trace.kernels.empty()) continue;
    DeviceSets sets = sets_of(trace, traces.communications);
    const ComputeLane compute(std::move(sets.busy), std::move(sets.gemm), std::move(sets.nodes));
    const std::string label = base::text("GPU {}", trace.device);
    ranks.push_back({.rank = trace.device,
                     .label = label,
                     .sums = rank_exposure(sets.communications, compute)});
    Walls walls =
        walls_of(sets.communications[std::string(kAllKinds)], compute, sets.copies, sets.window);
    divide(walls, traces.steps);
    longest_ms = std::max(longest_ms, walls.step);
    times.walls.push_back({.rank = trace.device, .label = label, .walls = walls});
  }
  times.exposure = mean_exposure(ranks, static_cast<std::size_t>(traces.steps), {longest_ms});
  return times;
}

}  // namespace weft::trace
