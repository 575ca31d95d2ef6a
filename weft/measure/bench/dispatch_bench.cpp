#include "weft/measure/bench/dispatch_bench.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "weft/base/median.h"
#include "weft/base/random.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/dispatch_trip.h"
#include "weft/measure/runs/rounds.h"
#include "weft/rules/validate.h"
#include "weft/tensor/transfer.h"
#include "weft/train/launch.h"

namespace weft::measure {

using namespace train;
namespace {

using derive::DispatchTraffic;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

constexpr double kWireOverCopies = 10;  // target for emulated links
// Ratio of link speeds inside a machine and between machines.
constexpr double kInsideOverBetween = 10;
constexpr double kInsideLatency = 5e-6, kBetweenLatency = 20e-6;
constexpr int kWarmUpTrips = 1;

// Times of one dispatcher's trips.
struct DispatchMeasured {
  std::vector<double> free, local, fabric, one_machine;
  TripResult last;  // traffic: mean over the ranks; peak: the largest
};

// Small integers, whose sums in any order are exact even in bf16.
float value_of(std::int64_t element) {
  return static_cast<float>(base::philox(11, static_cast<std::uint64_t>(element), 0)[0] % 3) - 1;
}

// One rank's part. All ranks take the same decisions from shared numbers.
class RankDispatchBench {
 public:
  RankDispatchBench(const DispatchBenchRequest& request,
                    const std::vector<NamedDispatcher>& dispatchers,
                    comm::Endpoint& endpoint)
      : request_(request),
        model_(request.config->model),
        endpoint_(endpoint),
        shape_{.ranks = endpoint.world(),
               .ranks_per_node = request.config->runtime.ranks_per_node.value(),
               .tokens = request.tokens},
        dispatchers_(dispatchers),
        groups_(join_dispatch_groups(endpoint, static_cast<int>(shape_.ranks_per_node))),
        device_(make_device(request.config, endpoint.local_rank())),
        pool_(*device_),
        stream_(device_->make_stream("dispatch", tensor::StreamRole::Alone)),
        measured_(dispatchers_.size()) {
    for (const NamedDispatcher& dispatcher : dispatchers_) {
      trips_.push_back(std::make_unique<DispatchTrip>(dispatcher.config->model,
                                                      groups_,
                                                      shape_,
                                                      *stream_,
                                                      pool_));
    }
  }

  DispatchBench run() {
    make_tokens();
    const auto all = static_cast<int>(dispatchers_.size());
    total_ = all * (kWarmUpTrips + 2 * request_.rounds) +
             (one_machine_apart() ? 2 * request_.rounds : 0);
    use({});
    for (int i = 0; i < kWarmUpTrips; ++i) each([&](std::size_t d) { trip(d); });
    rounds([&](std::size_t d) {
      const TripResult result = trip(d);
      measured_[d].free.push_back(result.travel_seconds);
      measured_[d].local.push_back(result.local_seconds);
    });
    if (!stopped_) choose_links();
    use(bench_.fabric);
    rounds([&](std::size_t d) { measured_[d].fabric.push_back(trip(d).travel_seconds); });
    if (one_machine_apart()) {
      use(bench_.one_machine);
      rounds([&](std::size_t d) {
        if (in_one_machine(d)) measured_[d].one_machine.push_back(trip(d).travel_seconds);
      });
    }
    return results();
  }

 private:
  bool one_machine_apart() const { return shape_.machines() > 1; }
  bool in_one_machine(std::size_t d) const {
    return dispatchers_[d].name == "alltoall" || dispatchers_[d].name == "deepep";
  }

  template <typename Body>
  void each(const Body& body) {
    for (std::size_t d = 0; d < dispatchers_.size() && !stopped_; ++d) body(d);
  }
  // Alternates the dispatchers, so that noise affects all alike.
  template <typename Body>
  void rounds(const Body& body) {
    for (int i = 0; i < request_.rounds && !stopped_; ++i) each(body);
  }

  void make_tokens() {
    const std::int64_t tokens = shape_.tokens, d = model_.hidden_size, k = model_.moe_router_topk;
    const std::int64_t first = endpoint_.rank() * tokens;
    std::vector<float> x_TD;
    for (std::int64_t i = 0; i < tokens * d; ++i) x_TD.push_back(value_of(first * d + i));
    routed_ = {
        .x_TD = Tensor(pool_, model::dtype_of(model_.params_dtype), {tokens, d}, Tag::Workspace),
        .p_Tk = Tensor(pool_, DType::F32, {tokens, k}, Tag::Workspace),
        .experts_Tk = Tensor(pool_, DType::I32, {tokens, k}, Tag::Workspace),
        .most_tokens = tokens};
    tensor::write_floats(*stream_, routed_.x_TD, x_TD);
    const std::vector<float> p_Tk(static_cast<std::size_t>(tokens * k),
                                  1.0f / static_cast<float>(k));
    tensor::write<float>(*stream_, routed_.p_Tk, p_Tk);
    tensor::write<std::int32_t>(*stream_,
                                routed_.experts_Tk,
                                uniform_choices(first, tokens, k, model_.experts()));
  }

  // Runs a trip; all ranks share its result.
  TripResult trip(std::size_t d) {
    TripResult own = trips_[d]->run(routed_);
    const bool stop = request_.stop != nullptr && request_.stop->load();
    std::vector<double> most{own.travel_seconds,
                             own.local_seconds,
                             static_cast<double>(own.peak_bytes),
                             stop ? 1.0 : 0.0};
    agree(most, comm::Reduce::Max);
    std::vector<double> sums;
    for (derive::WireTraffic* of : {&own.sent.inside, &own.sent.between}) {
      sums.insert(sums.end(), {of->rows, of->payload, of->probabilities, of->metadata});
    }
    agree(sums, comm::Reduce::Sum);
    for (double& sum : sums) sum /= static_cast<double>(shape_.ranks);
    own.sent = {.inside = {sums[0], sums[1], sums[2], sums[3]},
                .between = {sums[4], sums[5], sums[6], sums[7]}};
    own.travel_seconds = most[0];
    own.local_seconds = most[1];
    own.peak_bytes = static_cast<std::int64_t>(most[2]);
    stopped_ |= most[3] > 0;
    measured_[d].last = own;
    if (endpoint_.rank() == 0) request_.progress(++done_, total_);
    return own;
  }

  void agree(std::vector<double>& numbers, comm::Reduce reduce) {
    const auto n = static_cast<std::int64_t>(numbers.size());
    const Tensor shared(pool_, DType::F64, {n}, Tag::Workspace);
    tensor::upload<double>(*stream_, shared, numbers);
    groups_.world->all_reduce(*stream_, shared, reduce);
    tensor::read<double>(*stream_, numbers, shared);
  }

  void use(const grid::Fabric& fabric) {
    const auto barrier = [&] {
      groups_.world->barrier(*stream_);
      stream_->synchronize();
    };
    barrier();
    if (endpoint_.rank() == 0) endpoint_.set_fabric(fabric);
    barrier();
  }

  // Bytes over the links of a rank, weighted as bytes inside a machine.
  static double on_the_wire(const NamedDispatcher& dispatcher, const DispatchTraffic& sent) {
    const double inside = sent.inside.bytes(), between = sent.between.bytes() * kInsideOverBetween;
    // The two hops of hybridep follow one another; otherwise both ports work at the same time.
    return dispatcher.name == "hybridep" ? inside + between : std::max(inside, between);
  }

  void choose_links() {
    bench_.fabric = derive::fabric_of(request_.config);
    if (bench_.fabric.is_free()) {
      double rate = std::numeric_limits<double>::max(), one_machine_rate = rate;
      for (std::size_t d = 0; d < dispatchers_.size(); ++d) {
        const DispatchTraffic& sent = measured_[d].last.sent;
        const double copies = kWireOverCopies * base::median(measured_[d].free);
        rate = std::min(rate, on_the_wire(dispatchers_[d], sent) / copies);
        if (!in_one_machine(d)) continue;
        const double bytes = sent.inside.bytes() + sent.between.bytes();
        one_machine_rate = std::min(one_machine_rate, bytes / copies);
      }
      bench_.fabric.ranks_per_node = static_cast<int>(shape_.ranks_per_node);
      bench_.fabric.intra = {.bytes_per_second = rate, .latency_seconds = kInsideLatency};
      bench_.fabric.inter = {.bytes_per_second = rate / kInsideOverBetween,
                             .latency_seconds = kBetweenLatency};
      bench_.one_machine.intra = {.bytes_per_second = one_machine_rate,
                                  .latency_seconds = kInsideLatency};
    } else {
      bench_.one_machine.intra = bench_.fabric.intra;
    }
    bench_.one_machine = one_machine_apart() ? bench_.one_machine : bench_.fabric;
  }

  DispatchBench results() {
    if (stopped_) return {};
    for (std::size_t d = 0; d < dispatchers_.size(); ++d) {
      const DispatchMeasured& measured = measured_[d];
      DispatcherRun& run = bench_.runs.emplace_back();
      run.name = dispatchers_[d].name;
      run.counted = measured.last.sent;
      run.predicted = derive::expected_traffic(dispatchers_[d].config->model, shape_);
      run.free_seconds = base::median(measured.free);
      run.local_seconds = base::median(measured.local);
      run.fabric_seconds = base::median(measured.fabric);
      if (!one_machine_apart()) run.one_machine_seconds = run.fabric_seconds;
      if (!measured.one_machine.empty()) {
        run.one_machine_seconds = base::median(measured.one_machine);
      }
      run.peak_bytes = measured.last.peak_bytes;
      const bool between = shape_.machines() > 1;
      const grid::Link& slow = between ? bench_.fabric.inter : bench_.fabric.intra;
      const derive::WireTraffic& sent = between ? run.counted.between : run.counted.inside;
      if (slow.bytes_per_second > 0) {
        run.share_of_link = sent.bytes() / run.fabric_seconds / slow.bytes_per_second;
      }
    }
    return bench_;
  }

  const DispatchBenchRequest& request_;
  const config::ModelConfig& model_;
  comm::Endpoint& endpoint_;
  const derive::DispatchShape shape_;
  const std::vector<NamedDispatcher>& dispatchers_;
  const DispatchGroups groups_;
  std::unique_ptr<tensor::Device> device_;
  tensor::Pool pool_;
  std::unique_ptr<tensor::Stream> stream_;
  std::vector<std::unique_ptr<DispatchTrip>> trips_;
  std::vector<DispatchMeasured> measured_;
  model::Routed routed_;
  DispatchBench bench_;
  int done_ = 0, total_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::vector<NamedDispatcher> dispatchers_of(const config::Config& config) {
  std::vector<NamedDispatcher> all;
  const auto add =
      [&](const char* name, config::Dispatcher type, std::optional<config::FlexBackend> backend) {
        config::Config chosen = config;
        chosen.model.moe_token_dispatcher_type = type;
        chosen.model.moe_flex_dispatcher_backend = backend;
        all.push_back({name, rules::validate(chosen).judged.value()});
      };
  add("alltoall", config::Dispatcher::AllToAll, std::nullopt);
  add("allgather", config::Dispatcher::AllGather, std::nullopt);
  add("deepep", config::Dispatcher::Flex, config::FlexBackend::DeepEp);
  add("hybridep", config::Dispatcher::Flex, config::FlexBackend::HybridEp);
  return all;
}

// Floyd's algorithm over the last k experts: draws an expert up to the current one, or takes the
// current one if the draw is taken.
std::vector<std::int32_t> uniform_choices(std::int64_t first_token,
                                          std::int64_t tokens,
                                          std::int64_t k,
                                          std::int64_t experts) {
  const std::uint64_t key = base::hash("uniform routing");
  std::vector<std::int32_t> all;
  all.reserve(static_cast<std::size_t>(tokens * k));
  for (std::int64_t t = first_token; t < first_token + tokens; ++t) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    for (std::int64_t last = experts - k; last < experts; ++last) {
      const double draw = base::uniform(key, static_cast<std::uint64_t>(t * experts + last));
      const auto chosen = static_cast<std::int32_t>(draw * static_cast<double>(last + 1));
      const bool taken = std::find(all.begin() + begin, all.end(), chosen) != all.end();
      all.push_back(taken ? static_cast<std::int32_t>(last) : chosen);
    }
    std::sort(all.begin() + begin, all.end());
  }
  return all;
}

DispatchBench bench_dispatch(const DispatchBenchRequest& request) {
  DispatchBench result;
  std::mutex mutex;
  config::Config free = request.config;
  free.fabric = {};  // links follow when the copies are known
  const rules::JudgedConfig config = rules::validate(free).judged.value();
  const std::vector<NamedDispatcher> dispatchers = dispatchers_of(config);
  launch(config, {}, [&](comm::Endpoint& endpoint) {
    RankDispatchBench rank(request, dispatchers, endpoint);
    comm::poison_on_error(endpoint, [&] {
      DispatchBench own = rank.run();
      const std::lock_guard lock(mutex);
      if (endpoint.rank() == 0) result = std::move(own);
    });
  });
  if (result.runs.empty()) throw Stopped{};
  return result;
}

}  // namespace weft::measure
