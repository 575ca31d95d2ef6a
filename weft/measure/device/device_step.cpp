#include "weft/measure/device/device_step.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/measure/runs/one_rank.h"
#include "weft/measure/runs/rounds.h"
#include "weft/measure/runs/timed_step.h"

namespace weft::measure {

using namespace train;
namespace {

using base::number;
using schedule::Lane;

constexpr int kWarmUpRounds = 3;

double seconds_since(std::int64_t begin_ns) { return number(tensor::now_ns() - begin_ns) * 1e-9; }

// Host side of one run of a graph: calls the program's bodies and records the times.
class Issue {
 public:
  Issue(Engine& engine, const schedule::Graph& graph) : engine_(engine), graph_(graph) {}

  void run(exec::Executor& executor, exec::Tracing tracing) {
    next_ = 0;
    busy_ns_ = 0;
    last_ns_ = tensor::now_ns();
    executor.run([&](const schedule::Node& node, tensor::Stream& stream) { call(node, stream); },
                 tracing);
    ahead_seconds_ = seconds_since(last_ns_);
  }

  double seconds_per_node() const {
    return number(busy_ns_) * 1e-9 / number(std::ssize(graph_.entries));
  }
  double ahead_seconds() const { return ahead_seconds_; }

 private:
  // Excludes host nodes, which wait for the device.
  void call(const schedule::Node& node, tensor::Stream& stream) {
    engine_.program().run(node, stream);
    const std::int64_t now = tensor::now_ns();
    if (graph_.entries[next_++].lane != Lane::Host) busy_ns_ += now - last_ns_;
    last_ns_ = now;
  }

  Engine& engine_;
  const schedule::Graph& graph_;
  std::size_t next_ = 0;
  std::int64_t last_ns_ = 0, busy_ns_ = 0;
  double ahead_seconds_ = 0;
};

class DeviceStepBench {
 public:
  DeviceStepBench(const DeviceStepRequest& request, const OneRank& rank)
      : request_(request),
        rank_(rank),
        config_(rank.config()),
        engine_(rank.engine()),
        graph_(forward_and_backward(engine_.plan().training)),
        issue_(engine_, graph_),
        whole_(graph_, engine_.lanes()),
        single_(graph_, engine_.lanes()) {}

  DeviceStep run() {
    const std::int64_t sequences = config_.train.micro_batch_size;
    if (!request_.leave_in.empty()) {
      note("weights for the peer");
      rank_.leave_inputs(request_.leave_in, sequences);
    }
    time_whole(sequences);
    for (std::int64_t i = 0; i < sequences; ++i) {
      note(base::text("loss of sequence {}/{}", i + 1, sequences));
      result_.losses.push_back(run_once(single_, batch_of(i, 1), exec::Tracing::Off).loss);
    }
    if (sequences > 1) time_single();
    trace_whole(sequences);
    time_steps(sequences);
    result_.peak_bytes = static_cast<std::int64_t>(engine_.pool().total().peak);
    return std::move(result_);
  }

 private:
  void note(const std::string& what) const {
    throw_if_stopped(request_.stop);
    if (request_.note) request_.note(what);
  }

  Batch batch_of(std::int64_t first, std::int64_t sequences) const {
    return rank_.batch({.micro_batch_size = sequences}, first);
  }

  StepTotals run_once(exec::Executor& executor, const Batch& batch, exec::Tracing tracing) {
    engine_.program().begin({.batch = batch}, &executor);
    issue_.run(executor, tracing);
    const StepTotals totals = engine_.program().read_totals();
    refuse_repeated(totals, config_);
    return totals;
  }

  BatchTime times_of(std::int64_t sequences, const Samples& seconds) const {
    BatchTime time{.sequences = sequences, .seconds = seconds.median()};
    time.tokens_per_second = number(sequences * config_.model.seq_length) / time.seconds;
    time.flops_per_second = derive::flops_per_token(config_.model) * time.tokens_per_second;
    return time;
  }

  // Rounds of one kind of step, which notes its name.
  Rounds rounds_of(const std::string& name) const {
    return Rounds(
        {.warm_up = kWarmUpRounds,
         .rounds = request_.rounds,
         .progress = [this, name](int done,
                                  int of) { note(base::text("{} {}/{}", name, done, of)); },
         .stop = request_.stop});
  }

  void time_whole(std::int64_t sequences) {
    const Batch batch = batch_of(0, sequences);
    Rounds rounds = rounds_of("forward and backward");
    const Samples& seconds =
        rounds.time([&] { result_.loss = run_once(whole_, batch, exec::Tracing::Off).loss; });
    const Samples& issue = rounds.add([&] { return issue_.seconds_per_node(); });
    const Samples& ahead = rounds.add([&] { return issue_.ahead_seconds(); });
    rounds.run();
    result_.whole = times_of(sequences, seconds);
    result_.issue_seconds_per_node = issue.median();
    result_.host_ahead_seconds = ahead.median();
  }

  void time_single() {
    const Batch batch = batch_of(0, 1);
    Rounds rounds = rounds_of("one sequence");
    const Samples& seconds = rounds.time([&] { run_once(single_, batch, exec::Tracing::Off); });
    rounds.run();
    result_.single = times_of(1, seconds);
  }

  void trace_whole(std::int64_t sequences) {
    note("a traced step");
    run_once(whole_, batch_of(0, sequences), exec::Tracing::On);
    const std::vector<trace::Span> spans = whole_.take_spans();
    result_.shares = shares_of(spans);
    result_.operations = operations_of(spans);
  }

  void time_steps(std::int64_t sequences) {
    const Batch batch = batch_of(0, sequences);
    Rounds rounds = rounds_of("step with optimizer");
    const Samples& seconds =
        rounds.time([&, index = std::int64_t{0}]() mutable { rank_.train(batch, index++); });
    rounds.run();
    result_.step_seconds = seconds.median();
  }

  const DeviceStepRequest& request_;
  const OneRank& rank_;
  const config::Config& config_;
  Engine& engine_;
  const schedule::Graph graph_;
  Issue issue_;
  exec::Executor whole_, single_;  // separate: the steps of one kind allocate alike
  DeviceStep result_;
};

bool is_operation(const trace::Span& span) {
  return !trace::is_node(span) && span.lane == trace::kComputeLane;
}

}  // namespace

schedule::Graph forward_and_backward(const schedule::Graph& training) {
  schedule::Graph graph;
  std::vector<int> place(training.entries.size(), -1);
  for (std::size_t i = 0; i < training.entries.size(); ++i) {
    schedule::Entry entry = training.entries[i];
    if (entry.node.direction == schedule::Direction::None) continue;
    for (int& wait : entry.waits) {
      wait = place[static_cast<std::size_t>(wait)];
      CHECK(wait >= 0, "{} waits for the end of a step", schedule::print(entry.node));
    }
    place[i] = static_cast<int>(graph.entries.size());
    graph.entries.push_back(std::move(entry));
  }
  return graph;
}

TimeShares shares_of(const std::vector<trace::Span>& spans) {
  TimeShares shares;
  std::int64_t begin = 0, end = 0;
  for (const trace::Span& span : spans) {
    if (!is_operation(span)) continue;
    begin = end == 0 ? span.begin_ns : std::min(begin, span.begin_ns);
    end = std::max(end, span.end_ns);
    const double seconds = number(span.end_ns - span.begin_ns) * 1e-9;
    switch (span.kind) {
      case trace::SpanKind::Gemm:
        shares.products += seconds;
        break;
      case trace::SpanKind::Attention:
        shares.attention += seconds;
        break;
      case trace::SpanKind::Memory:
      case trace::SpanKind::Copy:
      case trace::SpanKind::Communication:
      case trace::SpanKind::Node:
      case trace::SpanKind::Host:
        shares.memory += seconds;
        break;
    }
  }
  shares.idle = std::max(0.0, number(end - begin) * 1e-9 - shares.total());
  return shares;
}

std::vector<OperationTime> operations_of(const std::vector<trace::Span>& spans) {
  std::map<std::string, OperationTime> by_name;
  for (const trace::Span& span : spans) {
    if (!is_operation(span)) continue;
    OperationTime& time = by_name[span.name];
    time.name = span.name;
    ++time.calls;
    time.seconds += number(span.end_ns - span.begin_ns) * 1e-9;
  }
  std::vector<OperationTime> times;
  for (auto& [name, time] : by_name) times.push_back(std::move(time));
  std::ranges::stable_sort(times, std::ranges::greater(), &OperationTime::seconds);
  return times;
}

DeviceStep bench_device_step(const DeviceStepRequest& request) {
  DeviceStep result;
  if (request.note) request.note("random weights");
  on_one_rank(request.config,
              [&](const OneRank& rank) { result = DeviceStepBench(request, rank).run(); });
  return result;
}

}  // namespace weft::measure
