#include "tests/model/moe/layer_support.h"

#include <cmath>
#include <mutex>
#include <numeric>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/model/moe/exchange.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace {

// Element i of a list named by number; equal on all ranks.
float value_of(std::uint64_t list, std::int64_t i) {
  return static_cast<float>(base::uniform(list, static_cast<std::uint64_t>(i)) - 0.5);
}

class Rank {
 public:
  Rank(const LayerCase& layer, comm::Endpoint& endpoint, const Tap& tap)
      : layer_(layer), config_(model_of(layer)), rank_(endpoint.rank()) {
    std::vector<int> all(layer.tokens.size());
    std::iota(all.begin(), all.end(), 0);
    ep_ = endpoint.group("ep", all);
    const auto through = [&](comm::Communicator& group) -> comm::Communicator& {
      return tap ? tap(group) : group;
    };
    EpGroups groups{.ep = through(*ep_)};
    if (layer.per_machine > 0) {
      const int n = layer.per_machine, machine = rank_ / n;
      std::vector<int> across, within;
      for (int i = 0; i < layer.ranks(); ++i) {
        if (i % n == rank_ % n) across.push_back(i);
        if (i / n == machine) within.push_back(i);
      }
      across_ = endpoint.group("across", across);
      within_ = endpoint.group("within", within);
      groups.across = &through(*across_);
      groups.within = &through(*within_);
    }
    tapped_ = &groups.ep;
    dispatcher_ = make_dispatcher(config_, groups, config::RowBudget::AsConfigured);
    first_ = std::accumulate(layer.tokens.begin(), layer.tokens.begin() + rank_, std::int64_t{0});
    tokens_ = layer.tokens[static_cast<std::size_t>(rank_)];
    local_ = layer.experts * layer.shards / layer.ranks();
  }

  void run() {
    const std::int64_t d = layer_.hidden, k = layer_.k, f = layer_.width / layer_.shards;
    const Context context{.stream = *stream_, .pool = pool_, .config = config_, .rotary_SD = {}};
    routed_ = {.x_TD = floats(1, first_ * d, {tokens_, d}),
               .p_Tk = floats(2, first_ * k, {tokens_, k}),
               .experts_Tk = choices(),
               .most_tokens = *std::ranges::max_element(layer_.tokens)};
    weights_.fc1_LFD.weight.values = floats(3, fc1_part(), {local_, 2 * f, d});
    weights_.fc2_LDF.weight.values = floats(4, fc2_part(), {local_, d, f});
    forward(context);
    backward(context);
    stream_->synchronize();
  }

  // Writes this rank's part at its place.
  void give(LayerOutcome& all) const {
    const std::int64_t d = layer_.hidden, k = layer_.k, f = layer_.width;
    put(all.y, first_ * d, y_TD_, layer_.all_tokens() * d);
    put(all.dx, first_ * d, gradient_.dx_TD, layer_.all_tokens() * d);
    put(all.dp, first_ * k, gradient_.dp_Tk, layer_.all_tokens() * k);
    put(all.dfc1, fc1_part(), weights_.fc1_LFD.weight.gradient, layer_.experts * 2 * f * d);
    put(all.dfc2, fc2_part(), weights_.fc2_LDF.weight.gradient, layer_.experts * d * f);
    all.overflow += tensor::read<double>(*stream_, overflow_1_).front();
    all.sent.resize(layer_.tokens.size());
    std::vector<comm::Sent> sent = ep_->sent();
    const auto add = [&](const comm::Communicator* group) {
      if (group == nullptr) return;
      const std::vector<comm::Sent> theirs = group->sent();
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        comm::Sent& place = sent[static_cast<std::size_t>(group->members()[i])];
        place.payload += theirs[i].payload;
        place.probabilities += theirs[i].probabilities;
        place.metadata += theirs[i].metadata;
      }
    };
    add(across_.get());
    add(within_.get());
    all.sent[static_cast<std::size_t>(rank_)] = sent;
  }

 private:
  void forward(const Context& context) {
    const std::int64_t numbers = dispatcher_->counts(), d = layer_.hidden;
    Tensor counts_N;
    if (numbers > 0) counts_N = Tensor(pool_, DType::I64, {numbers}, Tag::Activations);
    overflow_1_ = Tensor(pool_, DType::F64, {1}, Tag::Activations);
    tensor::write<double>(*stream_, overflow_1_, std::vector<double>{0});
    dispatcher_->lay_out(context, state_, routed_, counts_N);
    if (numbers > 0) {
      kernels::seal_counts(*stream_, counts_N, tapped_->rank());
      plan(context, gather_counts(context, *tapped_, std::move(counts_N)));
    }
    dispatcher_->permute_forward(context, state_, routed_);
    dispatcher_->dispatch_forward(context, state_);
    experts_arrange_forward(context, experts_, *dispatcher_, state_);
    experts_fc1_forward(context, experts_, weights_);
    experts_act_forward(context, experts_);
    experts_fc2_forward(context, experts_, weights_, *dispatcher_, state_);
    dispatcher_->combine_forward(context, state_);
    y_TD_ = context.activation({tokens_, d});
    dispatcher_->merge_forward(context, state_, y_TD_, floats(5, first_ * d, {tokens_, d}));
  }

  void plan(const Context& context, const Tensor& table) {
    if (dispatcher_->host_learns()) {
      const Tensor shown_GN = show_to_host(context, table);
      stream_->synchronize();
      open_counts(shown_GN);
      dispatcher_->plan_on_host(state_, shown_GN);
    } else {
      kernels::open_counts(*stream_, table);
      dispatcher_->plan_on_device(context, state_, table, overflow_1_);
      stream_->synchronize();
    }
  }

  void backward(const Context& context) {
    const std::int64_t d = layer_.hidden;
    dispatcher_->merge_dgrad(context, state_, floats(6, first_ * d, {tokens_, d}));
    dispatcher_->combine_dgrad(context, state_);
    experts_fc2_dgrad(context, experts_, weights_, *dispatcher_, state_);
    experts_act_dgrad(context, experts_);
    experts_fc1_dgrad(context, experts_, weights_);
    experts_arrange_dgrad(context, experts_, *dispatcher_, state_);
    for (Weight* w : {&weights_.fc1_LFD.weight, &weights_.fc2_LDF.weight}) {
      w->gradient = zeros(w->values.shape());
    }
    experts_fc2_wgrad(context, experts_, weights_, *dispatcher_);
    experts_fc1_wgrad(context, experts_, weights_);
    dispatcher_->dispatch_dgrad(context, state_);
    gradient_ = {.dx_TD = context.activation(routed_.x_TD.shape()),
                 .dp_Tk = context.activation_fp32(routed_.p_Tk.shape())};
    dispatcher_->permute_dgrad(context, state_, gradient_);
  }

  // Place of this rank's elements in the weights of all experts: its columns, or rows, of each.
  using Place = std::function<std::int64_t(std::int64_t)>;
  Place fc1_part() const {
    const std::int64_t own = layer_.width / layer_.shards, d = layer_.hidden, f = layer_.width;
    const std::int64_t first = rank_ / layer_.shards * local_, shard = rank_ % layer_.shards;
    return [=](std::int64_t i) {
      const std::int64_t row = i / d, half = row / own;  // all experts, gate and up
      return ((first * 2 + half) * f + shard * own + row % own) * d + i % d;
    };
  }
  Place fc2_part() const {
    const std::int64_t own = layer_.width / layer_.shards, d = layer_.hidden, f = layer_.width;
    const std::int64_t first = rank_ / layer_.shards * local_, shard = rank_ % layer_.shards;
    return [=](std::int64_t i) { return (first * d + i / own) * f + shard * own + i % own; };
  }
  static Place from(std::int64_t first) {
    return [=](std::int64_t i) { return first + i; };
  }

  Tensor floats(std::uint64_t list, std::int64_t first, Shape shape) {
    return floats(list, from(first), shape);
  }
  Tensor floats(std::uint64_t list, const Place& place, Shape shape) {
    Tensor x(pool_, DType::F32, shape, Tag::Activations);
    std::vector<float> values;
    for (std::int64_t i = 0; i < x.elements(); ++i) values.push_back(value_of(list, place(i)));
    tensor::write<float>(*stream_, x, values);
    return x;
  }

  Tensor zeros(Shape shape) {
    Tensor x(pool_, DType::F32, shape, Tag::Gradients);
    kernels::zero(*stream_, x);
    return x;
  }

  Tensor choices() {
    Tensor x(pool_, DType::I32, {tokens_, layer_.k}, Tag::Activations);
    const auto own = layer_.choices.begin() + first_ * layer_.k;
    tensor::write<std::int32_t>(*stream_, x, std::vector<std::int32_t>(own, own + x.elements()));
    return x;
  }

  void put(std::vector<float>& all,
           std::int64_t begin,
           const Tensor& part,
           std::int64_t size) const {
    put(all, from(begin), part, size);
  }
  void put(std::vector<float>& all,
           const Place& place,
           const Tensor& part,
           std::int64_t size) const {
    all.resize(static_cast<std::size_t>(size));
    std::int64_t i = 0;
    for (const float value : tensor::read<float>(*stream_, part)) {
      all[static_cast<std::size_t>(place(i++))] = value;
    }
  }

  const LayerCase& layer_;
  const config::ModelConfig config_;
  devices::Workbench bench_;
  Pool& pool_ = bench_.pool;
  Stream* stream_ = bench_.stream.get();
  std::unique_ptr<comm::Communicator> ep_, across_, within_;
  comm::Communicator* tapped_ = nullptr;
  std::unique_ptr<Dispatcher> dispatcher_;
  int rank_;
  std::int64_t first_ = 0, tokens_ = 0, local_ = 0;
  Routed routed_;
  RoutedGradient gradient_;
  ExpertsWeights weights_;
  DispatchState state_;
  ExpertsState experts_;
  Tensor y_TD_, overflow_1_;
};

}  // namespace

std::int64_t LayerCase::all_tokens() const {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

config::ModelConfig model_of(const LayerCase& layer) {
  config::ModelConfig config;
  config.hidden_size = layer.hidden;
  config.num_moe_experts = layer.experts;
  config.moe_ffn_hidden_size = layer.width;
  config.moe_router_topk = layer.k;
  config.expert_model_parallel_size = layer.ranks() / layer.shards;
  config.expert_tensor_parallel_size = layer.shards;
  config.moe_token_dispatcher_type = layer.dispatcher;
  if (layer.dispatcher == config::Dispatcher::Flex) {
    config.moe_flex_dispatcher_backend =
        layer.per_machine > 0 ? config::FlexBackend::HybridEp : config::FlexBackend::DeepEp;
  }
  config.moe_expert_capacity_factor = layer.capacity;
  config.moe_pad_expert_input_to_capacity = layer.capacity.has_value();
  config.moe_expert_rank_capacity_factor = layer.budget;
  return config;
}

LayerOutcome run_layer(const LayerCase& layer, const Tap& tap) {
  LayerOutcome outcome;
  std::mutex mutex;
  comm::run_threads({.world = layer.ranks(), .timeout_seconds = 10}, [&](comm::Endpoint& endpoint) {
    Rank rank(layer, endpoint, tap);
    comm::poison_on_error(endpoint, [&] {
      rank.run();
      const std::lock_guard lock(mutex);
      rank.give(outcome);
    });
  });
  return outcome;
}

LayerOutcome run_on_one_rank(const LayerCase& layer) {
  LayerCase alone = layer;
  alone.dispatcher = config::Dispatcher::AllToAll;
  alone.per_machine = 0;
  alone.shards = 1;
  alone.tokens = {layer.all_tokens()};
  alone.capacity.reset();
  alone.budget.reset();
  return run_layer(alone);
}

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return INFINITY;
  double error = 0, magnitude = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(double(got[i]) - double(want[i]));
    if (!(difference <= error)) error = difference;
    magnitude = std::max(magnitude, std::abs(double(want[i])));
  }
  return magnitude > 0 ? error / magnitude : error;
}

}  // namespace weft::model
