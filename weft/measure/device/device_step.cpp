#include "weft/measure/device/device_step.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/measure/device/device_timer.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"
#include "weft/train/weights.h"

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
  DeviceStepBench(const DeviceStepRequest& request, Engine& engine)
      : request_(request),
        config_(request.config),
        engine_(engine),
        graph_(forward_and_backward(engine.plan().training)),
        issue_(engine, graph_),
        whole_(graph_, engine.lanes()),
        single_(graph_, engine.lanes()),
        dataset_(data::open_dataset(config_.dataset,
                                    config_.model.seq_length,
                                    config_.model.vocab_size,
                                    static_cast<std::uint64_t>(config_.rng.seed))) {}

  DeviceStep run() {
    const std::int64_t sequences = config_.train.micro_batch_size;
    if (!request_.leave_in.empty()) leave_inputs();
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
    if (request_.stop != nullptr && request_.stop->load()) throw Stopped{};
    if (request_.note) request_.note(what);
  }

  Batch batch_of(std::int64_t first, std::int64_t sequences) const {
    return read_batch({.micro_batch_size = sequences},
                      config_.model.seq_length,
                      [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
                        read(first + sequence, tokens);
                      });
  }
  void read(std::int64_t sequence, std::span<std::int32_t> tokens) const {
    dataset_->read(data::Split::Train, static_cast<std::uint64_t>(sequence), tokens);
  }

  StepTotals run_once(exec::Executor& executor, const Batch& batch, exec::Tracing tracing) {
    engine_.program().begin({.batch = batch}, &executor);
    issue_.run(executor, tracing);
    const StepTotals totals = engine_.program().read_totals();
    refuse_repeated(totals, config_);
    return totals;
  }

  BatchTime times_of(std::int64_t sequences, const std::vector<double>& seconds) const {
    BatchTime time{.sequences = sequences, .seconds = base::median(seconds)};
    time.tokens_per_second = number(sequences * config_.model.seq_length) / time.seconds;
    time.flops_per_second = derive::flops_per_token(config_.model) * time.tokens_per_second;
    return time;
  }

  void time_whole(std::int64_t sequences) {
    const Batch batch = batch_of(0, sequences);
    std::vector<double> seconds, issue, ahead;
    for (int i = 0; i < kWarmUpRounds + request_.rounds; ++i) {
      note(base::text("forward and backward {}/{}", i + 1, kWarmUpRounds + request_.rounds));
      const std::int64_t begin = tensor::now_ns();
      result_.loss = run_once(whole_, batch, exec::Tracing::Off).loss;
      if (i < kWarmUpRounds) continue;
      seconds.push_back(seconds_since(begin));
      issue.push_back(issue_.seconds_per_node());
      ahead.push_back(issue_.ahead_seconds());
    }
    result_.whole = times_of(sequences, seconds);
    result_.issue_seconds_per_node = base::median(issue);
    result_.host_ahead_seconds = base::median(ahead);
  }

  void time_single() {
    const Batch batch = batch_of(0, 1);
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUpRounds + request_.rounds; ++i) {
      note(base::text("one sequence {}/{}", i + 1, kWarmUpRounds + request_.rounds));
      const std::int64_t begin = tensor::now_ns();
      run_once(single_, batch, exec::Tracing::Off);
      if (i >= kWarmUpRounds) seconds.push_back(seconds_since(begin));
    }
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
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUpRounds + request_.rounds; ++i) {
      note(base::text("step with optimizer {}/{}", i + 1, kWarmUpRounds + request_.rounds));
      const std::int64_t begin = tensor::now_ns();
      train_step(engine_,
                 {.batch = batch, .step = i, .learning_rate = config_.optimizer.lr},
                 exec::Tracing::Off);
      if (i >= kWarmUpRounds) seconds.push_back(seconds_since(begin));
    }
    result_.step_seconds = base::median(seconds);
  }

  void leave_inputs() {
    note("weights for the peer");
    if (const auto failure =
            save_weights(engine_, request_.leave_in, huggingface_config_for(config_.model))) {
      throw base::SystemError(*failure);
    }
    std::vector<std::int32_t> tokens(base::at(config_.model.seq_length + 1));
    base::write_whole(request_.leave_in / "tokens.i32", [&](const base::Append& append) {
      for (std::int64_t i = 0; i < config_.train.micro_batch_size; ++i) {
        read(i, tokens);
        append({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]});
      }
    });
  }

  const DeviceStepRequest& request_;
  const config::Config& config_;
  Engine& engine_;
  const schedule::Graph graph_;
  Issue issue_;
  exec::Executor whole_, single_;  // separate: the steps of one kind allocate alike
  std::unique_ptr<data::Dataset> dataset_;
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
  bool stopped = false;
  launch(request.config, {}, [&](comm::Endpoint& endpoint) {
    Engine engine(request.config, endpoint);
    comm::poison_on_error(endpoint, [&] {
      try {
        result = DeviceStepBench(request, engine).run();
      } catch (const Stopped&) {
        stopped = true;
      }
    });
  });
  if (stopped) throw Stopped{};
  return result;
}

}  // namespace weft::measure
