#include "weft/measure/bench/overlap_bench.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/data/dataset.h"
#include "weft/measure/bench/emulated_links.h"
#include "weft/measure/bench/endless_copies.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/plan/hardware/slow_down.h"
#include "weft/plan/price/overlap_prediction.h"
#include "weft/schedule/text/plan_files.h"
#include "weft/tensor/transfer.h"
#include "weft/trace/step_parts.h"
#include "weft/train/log/gather_timelines.h"

namespace weft::measure {

using namespace train;
namespace {

constexpr int kTracedRounds = 2;
constexpr int kCorrectingSteps = 2;  // on each emulated fabric, with one rank alone
constexpr int kCorrections = 2;      // corrections of links that must add a share to the step
constexpr int kSettingRounds = 3;    // one step each with and without a trace
constexpr int kCopyingSteps = 1;     // beside endless copies

// Measurements of one order on one fabric.
struct OverlapMeasured {
  std::vector<double> seconds;
  std::vector<trace::Timeline> timelines;
  int traced = 0;
  std::int64_t peak_bytes = 0;
};

// Adds a run of a rank to its earlier runs.
void add_run(std::vector<trace::Timeline>& timelines, trace::Timeline run) {
  const auto found = std::ranges::find(timelines, run.rank, &trace::Timeline::rank);
  if (found == timelines.end()) {
    timelines.push_back(std::move(run));
  } else {
    std::ranges::move(run.spans, std::back_inserter(found->spans));
  }
}

// Compute time alone, from the plain order on free links.
struct ComputeAlone {
  double seconds = 0;
  double layers_seconds = 0;  // without embedding, head and optimizer
};

// Treatment of local copies on free links. Threads: they are the links. One rank alone: copies
// inside the device that a network would not need; they do not count as compute.
enum class OwnCopies { Count, DoNotCount };

ComputeAlone compute_alone(const OverlapMeasured& plain, OwnCopies copies) {
  ComputeAlone alone{.seconds = base::median(plain.seconds)};
  if (copies == OwnCopies::DoNotCount) {
    alone.seconds -= trace::analyse(plain.timelines).total.exposed_ms * 1e-3;
  }
  alone.layers_seconds = alone.seconds - trace::step_parts(plain.timelines).compute_apart_ms * 1e-3;
  return alone;
}

// One rank's part. All ranks take the same decisions from rank 0's clock.
class RankOverlapBench {
 public:
  RankOverlapBench(const OverlapBenchRequest& request, comm::Endpoint& endpoint)
      : request_(request),
        endpoint_(endpoint),
        orders_(request.orders),
        config_(orders_.front().config),
        engine_(orders_.front().config, endpoint) {}

  OverlapBench run() {
    dataset_ = data::open_dataset(config_.dataset,
                                  config_.model.seq_length,
                                  config_.model.vocab_size,
                                  static_cast<std::uint64_t>(config_.rng.seed));
    for (const OverlapOrder& order : orders_) runners_.push_back(runner_of(order));
    const auto in_a_round = static_cast<int>(request_.targets.size() * orders_.size());
    total_ = kWarmUpSteps + (emulates() ? 2 * kSettingRounds : 0) + correcting_steps() +
             (copies_beside_compute() ? kCopyingSteps : 0) +
             (request_.rounds + kTracedRounds) * in_a_round;
    for (int i = 0; i < kWarmUpSteps && !stopped_; ++i) {
      train(static_cast<std::size_t>(i) % orders_.size(), exec::Tracing::Off);
    }
    set_fabrics();
    measure(request_.rounds, exec::Tracing::Off);
    measure(kTracedRounds, exec::Tracing::On);
    return results();
  }

 private:
  static constexpr int kWarmUpSteps = 4;

  // Engine and executor of an order.
  struct Runner {
    std::unique_ptr<Engine> own;  // for an order with its own nodes
    std::unique_ptr<schedule::RankPlan> plan;
    std::unique_ptr<exec::Executor> executor;  // runs the plan on the plain order's engine
  };

  Runner runner_of(const OverlapOrder& order) {
    if (order.nodes == Nodes::Own) {
      return {.own = std::make_unique<Engine>(order.config, endpoint_),
              .plan = nullptr,
              .executor = nullptr};
    }
    const int pp_rank = engine_.groups().self.pp;
    std::vector<schedule::RankPlan> plans =
        schedule::plan_step(order.config, engine_.groups().grid);
    const std::string& folder = order.config->runtime.schedule;
    if (!folder.empty()) schedule::take_orders_from(folder, plans);
    const std::vector<std::string> complaints = schedule::verify_plan(plans);
    CHECK(complaints.empty(), "the schedule is wrong: {}", fmt::join(complaints, "; "));
    schedule::note_sends_over(plans, pp_rank);
    auto plan =
        std::make_unique<schedule::RankPlan>(std::move(plans[static_cast<std::size_t>(pp_rank)]));
    auto executor =
        std::make_unique<exec::Executor>(plan->training, engine_.lanes(), plan->training_over);
    return {.own = nullptr, .plan = std::move(plan), .executor = std::move(executor)};
  }

  Engine& engine_of(std::size_t order) {
    return runners_[order].own ? *runners_[order].own : engine_;
  }
  exec::Executor& executor_of(std::size_t order) {
    return runners_[order].own ? runners_[order].own->training() : *runners_[order].executor;
  }

  // True if links can be emulated in this process.
  bool emulates() const { return !config::are_processes(config_.runtime.backend); }
  bool is_alone() const { return config::is_pretended(config_.runtime.backend); }
  OwnCopies copies() const { return is_alone() ? OwnCopies::DoNotCount : OwnCopies::Count; }

  // On host cores copies are threads, and an order has as many as it has links.
  bool copies_beside_compute() { return is_alone() && !engine_.device().is_the_host(); }

  static bool has_share(const FabricTarget& target) {
    return target.communication_share.value_or(0) > 0;
  }
  static bool is_added(const FabricTarget& target) {
    return has_share(target) && target.share == WireShare::Added;
  }
  int correcting_steps() const {
    if (!is_alone()) {
      return kCorrections * kSettingRounds *
             static_cast<int>(std::ranges::count_if(request_.targets, is_added));
    }
    return kCorrectingSteps * static_cast<int>(std::ranges::count_if(request_.targets, has_share));
  }

  // Each round runs one step of every order on every fabric.
  void measure(int rounds, exec::Tracing tracing) {
    measured_.resize(fabrics_.size());
    for (int round = 0; round < rounds; ++round, ++round_) {
      for (std::size_t fabric = 0; fabric < fabrics_.size(); ++fabric) {
        if (stopped_) return;
        use(fabrics_[fabric]);
        measured_[fabric].resize(orders_.size());
        for (std::size_t order = 0; order < orders_.size(); ++order) {
          if (stopped_) return;
          add(measured_[fabric][order], train(order, tracing), tracing, order);
        }
      }
    }
  }

  void add(OverlapMeasured& measured, double seconds, exec::Tracing tracing, std::size_t order) {
    measured.peak_bytes = std::max(measured.peak_bytes, last_peak_);
    if (tracing == exec::Tracing::Off) {
      measured.seconds.push_back(seconds);
      return;
    }
    trace::Timeline own{.rank = engine_.rank(),
                        .label = engine_.label(),
                        .spans = executor_of(order).take_spans()};
    // Each traced step is a run of its own.
    const int run = measured.traced++;
    for (trace::Span& span : own.spans) span.run = run;
    if (is_alone()) return add_run(measured.timelines, std::move(own));
    GatheredTimelines gathered = gather_timelines(engine_, own);
    clocks_ = gathered.clocks;
    for (trace::Timeline& timeline : gathered.timelines) {
      add_run(measured.timelines, std::move(timeline));
    }
  }

  // Trains a step in one order; returns its time.
  double train(std::size_t order, exec::Tracing tracing) {
    const Batch batch = read();
    Engine& engine = engine_of(order);
    engine.pool().reset_peaks();
    // Occasional replanning of the previous step's memory (decision 26) stays outside of the timed
    // step, which may belong to another order.
    engine.pool().settle();
    barrier();
    const auto start = std::chrono::steady_clock::now();
    const StepTotals totals =
        step_in_order(engine,
                      executor_of(order),
                      {.batch = batch, .step = step_, .learning_rate = config_.optimizer.lr},
                      tracing);
    barrier();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    stopped_ |= totals.stop_requested;
    last_peak_ = static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).peak +
                                           engine.pool().use(tensor::Tag::Communication).peak);
    ++step_;
    ++done_;
    if (engine_.rank() == 0) request_.progress(std::min(done_, total_), total_);
    return agreed(seconds);
  }

  // Broadcasts rank 0's number and its stop request.
  double agreed(double seconds) {
    tensor::Stream& stream = engine_.lanes()[schedule::Lane::Compute];
    tensor::Tensor number(engine_.pool(), tensor::DType::F64, {3}, tensor::Tag::Workspace);
    std::array<double, 3> numbers{engine_.rank() == 0 ? seconds : 0,
                                  request_.stop != nullptr && request_.stop->load() ? 1.0 : 0.0,
                                  static_cast<double>(last_peak_)};
    tensor::upload<double>(stream, number, numbers);
    engine_.groups().world->all_reduce(stream, number, comm::Reduce::Max);
    tensor::read<double>(stream, numbers, number);
    stopped_ |= numbers[1] > 0;
    last_peak_ = static_cast<std::int64_t>(numbers[2]);
    return numbers[0];
  }

  void barrier() {
    tensor::Stream& stream = engine_.lanes()[schedule::Lane::Compute];
    engine_.groups().world->barrier(stream);
    stream.synchronize();
  }

  Batch read() const {
    const std::int64_t first = round_ * config_.train.global_batch_size;
    return read_batch(
        engine_.share(),
        config_.model.seq_length,
        [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
          dataset_->read(data::Split::Train, static_cast<std::uint64_t>(first + sequence), tokens);
        });
  }

  void use(const std::optional<grid::Fabric>& fabric) {
    barrier();
    if (emulates() && engine_.rank() == 0) endpoint_.set_fabric(fabric);
    barrier();
  }

  // Chooses links on which communication takes its share of compute alone. Plain steps on free
  // links give both: the nodes' cost there stays, and the wire is added.
  void set_fabrics() {
    fabrics_.resize(request_.targets.size());
    if (!emulates()) return;
    use(grid::Fabric());
    OverlapMeasured plain;
    for (int i = 0; i < kSettingRounds && !stopped_; ++i) {
      for (const exec::Tracing tracing : {exec::Tracing::Off, exec::Tracing::On}) {
        add(plain, train(0, tracing), tracing, 0);
      }
    }
    if (copies_beside_compute() && !stopped_) measure_beside_copies(plain);
    // Rank 0 has the traces and sets the links for all.
    if (!stopped_ && engine_.rank() == 0) simulate_fabrics(plain);
    for (std::size_t i = 0; i < fabrics_.size() && !stopped_; ++i) {
      if (is_added(request_.targets[i])) correct(fabrics_[i], request_.targets[i], plain);
    }
  }

  void measure_beside_copies(const OverlapMeasured& plain) {
    const EndlessCopies copies(engine_.device());
    OverlapMeasured beside;
    for (int i = 0; i < kCopyingSteps && !stopped_; ++i) {
      add(beside, train(0, exec::Tracing::On), exec::Tracing::On, 0);
    }
    if (!stopped_) {
      slower_beside_copies_ = plan::slower_compute(plain.timelines, beside.timelines);
    }
  }

  void simulate_fabrics(const OverlapMeasured& plain) {
    const ComputeAlone alone = compute_alone(plain, copies());
    const plan::OverlapPrediction free(config_,
                                       grid::Fabric(),
                                       plain.timelines,
                                       base::median(plain.seconds));
    const double compute = undisturbed_seconds(alone.seconds, free.compute_seconds());
    const double of_layers = undisturbed_seconds(alone.layers_seconds, free.compute_seconds());
    for (std::size_t i = 0; i < fabrics_.size() && !stopped_; ++i) {
      const FabricTarget& target = request_.targets[i];
      if (target.communication_share) fabrics_[i] = grid::Fabric();
      if (!has_share(target)) continue;
      fabrics_[i] =
          is_alone()
              ? links_alone(*target.communication_share * of_layers, free)
              : links_for(*target.communication_share * compute,
                          [&](const grid::Fabric& links) { return share_of(target, free, links); });
    }
  }

  static double share_of(const FabricTarget& target,
                         const plan::OverlapPrediction& free,
                         const grid::Fabric& links) {
    return target.share == WireShare::Alone ? free.communication_seconds(links)
                                            : free.added_seconds(links);
  }

  // Measures the time that links add, since ranks wake later from a wire than simulated ones. Uses
  // the least disturbed steps. All ranks take part.
  void correct(std::optional<grid::Fabric>& links,
               const FabricTarget& target,
               const OverlapMeasured& plain) {
    const std::optional<grid::Fabric> found = links;
    for (int i = 0; i < kCorrections; ++i) {
      use(links);
      std::vector<double> seconds;
      for (int step = 0; step < kSettingRounds && !stopped_; ++step) {
        seconds.push_back(train(0, exec::Tracing::Off));
      }
      if (stopped_ || engine_.rank() != 0) continue;
      const double compute = std::ranges::min(plain.seconds);
      links = corrected(*links,
                        *found,
                        std::ranges::min(seconds) - compute,
                        *target.communication_share * compute);
    }
  }

  // Corrects the bandwidth by measurement. On free links device copies dominate an operation's
  // cost, and they overlap with the wire instead of preceding it.
  grid::Fabric links_alone(double communication_seconds, const plan::OverlapPrediction& free) {
    const auto seconds_over = [&](const grid::Fabric& any) {
      return free.layers_communication_seconds(any);
    };
    if (seconds_over(links_of(kSlowestLink)) <= seconds_over(links_of(kFastestLink))) {
      throw base::ConfigError(
          base::text("the layers of this run send nothing to another rank, so that there is "
                     "nothing to overlap: it needs MoE layers, and "
                     "model.expert_model_parallel_size (now {}) of 2 or more",
                     config_.model.expert_model_parallel_size));
    }
    const grid::Fabric found = links_for(communication_seconds, seconds_over);
    grid::Fabric links = found;
    for (int i = 0; i < kCorrectingSteps && !stopped_; ++i) {
      use(links);
      OverlapMeasured plain;
      add(plain, train(0, exec::Tracing::On), exec::Tracing::On, 0);
      const plan::OverlapPrediction over(config_, links, plain.timelines, 0);
      links = corrected(links, found, over.layers_communication_seconds(), communication_seconds);
    }
    return links;
  }

  OverlapBench results() {
    OverlapBench bench{.compute_seconds = {},
                       .layers_compute_seconds = {},
                       .fabrics = {},
                       .slower_beside_copies = slower_beside_copies_,
                       .clocks = clocks_,
                       .is_rank_zero = engine_.rank() == 0,
                       .interrupted = stopped_};
    if (stopped_ || !bench.is_rank_zero) return bench;
    for (std::size_t i = 0; i < fabrics_.size(); ++i) {
      FabricRuns& fabric = bench.fabrics.emplace_back();
      fabric.name = request_.targets[i].name;
      fabric.fabric = fabrics_[i];
      if (fabrics_[i] && fabrics_[i]->is_free()) {
        const ComputeAlone alone = compute_alone(measured_[i].front(), copies());
        bench.compute_seconds = alone.seconds;
        bench.layers_compute_seconds = alone.layers_seconds;
      }
      for (std::size_t order = 0; order < orders_.size(); ++order) {
        OverlapMeasured& measured = measured_[i][order];
        fabric.runs.push_back({.name = orders_[order].name,
                               .seconds = std::move(measured.seconds),
                               .timelines = std::move(measured.timelines),
                               .peak_activation_bytes = measured.peak_bytes});
      }
    }
    return bench;
  }

  const OverlapBenchRequest& request_;
  comm::Endpoint& endpoint_;
  const std::vector<OverlapOrder>& orders_;
  const config::Config& config_;  // plain order
  Engine engine_;                 // plain order
  std::unique_ptr<data::Dataset> dataset_;
  std::vector<Runner> runners_;  // by order
  std::vector<std::optional<grid::Fabric>> fabrics_;
  std::vector<std::vector<OverlapMeasured>> measured_;  // by fabric and order
  std::int64_t step_ = 0;                               // optimizer step
  std::int64_t round_ = 0;                              // all steps of a round use the same tokens
  std::int64_t last_peak_ = 0;
  double slower_beside_copies_ = 0;
  int done_ = 0, total_ = 0;
  bool stopped_ = false;
  trace::Clocks clocks_ = trace::Clocks::Shared;
};

}  // namespace

double OverlapRun::step_seconds() const { return base::median(seconds); }
double OverlapRun::best_seconds() const { return std::ranges::min(seconds); }

OverlapBench bench_overlap(const OverlapBenchRequest& request) {
  OverlapBench result;
  std::mutex mutex;
  const rules::JudgedConfig& plain = request.orders.front().config;
  launch(plain, request.process, [&](comm::Endpoint& endpoint) {
    RankOverlapBench rank(request, endpoint);
    comm::poison_on_error(endpoint, [&] {
      OverlapBench own = rank.run();
      const std::lock_guard lock(mutex);
      if (own.is_rank_zero) result = std::move(own);
    });
  });
  return result;
}

}  // namespace weft::measure
