#include "weft/train/program.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/random.h"
#include "weft/derive/derived.h"
#include "weft/model/embedding.h"
#include "weft/model/rotary.h"
#include "weft/optim/gradient_norm.h"

namespace weft::train {
namespace {

using schedule::Direction;
using schedule::Part;
using schedule::Piece;
using tensor::DType;
using tensor::Stream;
using tensor::Tag;
using tensor::Tensor;

using base::at;

model::EpGroups ep_groups(Groups& groups) {
  return {.ep = *groups.ep, .across = groups.ep_across.get(), .within = groups.ep_within.get()};
}

}  // namespace

Program::Program(const config::Config& config,
                 const schedule::Anatomy& anatomy,
                 tensor::Pool& pool,
                 Stream& setup,
                 Groups& groups,
                 const model::Parameters& parameters,
                 std::vector<optim::AdamW>& optimizers)
    : config_(config),
      anatomy_(anatomy),
      pool_(pool),
      groups_(groups),
      parameters_(parameters),
      optimizers_(optimizers),
      weights_(model::weights_of(parameters, config.model)),
      gradients_(model::gradients_of(parameters, config.model)),
      rotary_SD_(pool,
                 DType::F32,
                 {config.model.seq_length, config.model.rotary_width()},
                 Tag::Workspace),
      bounded_(make_dispatcher(config.model, ep_groups(groups), model::Budget::AsConfigured)),
      unbounded_(make_dispatcher(config.model, ep_groups(groups), model::Budget::Lifted)),
      micro_batches_(at(derive::micro_batches(config.train, groups.grid.dp()))),
      totals_(pool, config.model, groups.grid.world(), std::ssize(micro_batches_)) {
  kernels::rotary_table(setup, rotary_SD_, model::rotary_angles(config.model));
  setup.synchronize();
}

void Program::begin(const StepInput& input) {
  CHECK(input.batch.size() == micro_batches_.size(),
        "{} micro-batches for {}",
        input.batch.size(),
        micro_batches_.size());
  pool_.settle();
  step_ = input.step;
  routing_ = input.routing;
  budget_ = input.budget;
  learning_rate_ = input.learning_rate;
  std::vector<std::int64_t> labelled;
  for (std::size_t i = 0; i < input.batch.size(); ++i) {
    load(i, input.batch[i]);
    labelled.push_back(micro_batches_[i].labelled);
  }
  stop_ = input.stop;
  totals_.begin(labelled);
}

void Program::load(std::size_t index, const MicroBatch& part) {
  model::MicroBatchState& state = micro_batches_[index];
  state = {};
  state.tokens = std::ssize(part.ids);
  state.layers.resize(at(config_.model.num_layers));
  state.chunks.resize(anatomy_.chunks.size());
  const auto copy = [&](const std::vector<std::int32_t>& values) {
    Tensor t(pool_, DType::I32, {std::ssize(values)}, Tag::Activations);
    std::ranges::copy(values, t.host<std::int32_t>());
    return t;
  };
  if (parameters_.holding().head) {
    state.labelled =
        std::ranges::count_if(part.labels, [](std::int32_t label) { return label >= 0; });
    state.labels_T = copy(part.labels);
  }
  if (!parameters_.holding().embedding) return;
  state.ids_T = copy(part.ids);
  state.learning_ids_T = state.ids_T;
  if (const std::optional<std::int64_t> padding = config_.model.pad_token_id) {
    std::vector<std::int32_t> learning = part.ids;
    std::ranges::replace(learning, static_cast<std::int32_t>(*padding), -1);
    state.learning_ids_T = copy(learning);
  }
}

model::Context Program::context(const Node& node, Stream& stream) const {
  const auto parts =
      static_cast<float>(std::ssize(micro_batches_) * groups_.grid.dp() * groups_.grid.cp());
  return {.stream = stream,
          .pool = pool_,
          .config = config_.model,
          .sequence = config_.model.seq_length,
          .rotary_SD = rotary_SD_,
          .loss_scale = 1.0f / parts,
          .output_memory = memory_of_output(node),
          .random = randomness(node)};
}

model::Randomness Program::randomness(const Node& node) const {
  const Share share{.micro_batch_size = config_.train.micro_batch_size,
                    .micro_batches = std::ssize(micro_batches_),
                    .dp = groups_.grid.dp(),
                    .dp_rank = groups_.self.dp};
  return {.layer_key = base::combine(static_cast<std::uint64_t>(config_.rng.seed),
                                     static_cast<std::uint64_t>(node.layer)),
          .step = step_,
          .first_token = share.first_sequence(node.micro_batch) * config_.model.seq_length};
}

void Program::run(const Node& node, Stream& stream) {
  pool_.allocate_for(stream);
  if (node.piece == Piece::Send || node.piece == Piece::Receive) return exchange(node, stream);
  switch (node.direction) {
    case Direction::F:
      return forward(node, context(node, stream));
    case Direction::D:
      return input_gradient(node, context(node, stream));
    case Direction::W:
      return weight_gradient(node, context(node, stream));
    case Direction::None:
      return step_end(node, stream);
    case Direction::R:
      break;
  }
  UNREACHABLE("no body for {}", schedule::print(node));
}

void Program::forward(const Node& node, const model::Context& context) {
  model::MicroBatchState& batch = micro_batch(node);
  if (node.piece == Piece::Embed) {
    return take_input(node, model::embedding_forward(context, weights_.embedding_VD, batch.ids_T));
  }
  if (node.piece == Piece::Head) {
    return model::head_forward(context,
                               batch.head,
                               weights_.head,
                               chunk(node).y_TD,
                               batch.labels_T,
                               totals_.loss_sum(node.micro_batch));
  }
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = weights_.layers[at(node.layer)];
  switch (node.piece) {
    case Piece::Attention:
      state.h_TD =
          context.config.multi_latent_attention
              ? model::latent_attention_forward(context,
                                                state.latent_attention,
                                                weights.latent_attention,
                                                state.x_TD)
              : model::attention_forward(context, state.attention, weights.attention, state.x_TD);
      return;
    case Piece::Mlp:
      return hand_on(node, model::mlp_forward(context, state.mlp, weights.mlp, state.h_TD));
    case Piece::Route:
      model::route_forward(context,
                           state.route,
                           weights.route,
                           state.h_TD,
                           totals_.router().of_layer(node.layer));
      return lay_out(node, context);
    case Piece::Shared:
      if (node.part == Part::Fc2) {
        return model::shared_fc2_forward(context, state.shared, weights.shared);
      }
      return model::shared_fc1_forward(context,
                                       state.shared,
                                       weights.shared,
                                       state.route.norm.y_TD);
    case Piece::Counts:
      return counts(node, context);
    case Piece::Balance:
      return model::balance_exchange(context, state.route.balance, *groups_.dense_reduction);
    case Piece::Sizes:
      return sizes(node);
    case Piece::Permute:
      return dispatcher().permute_forward(context, slice(node).dispatch, routed(node));
    case Piece::Dispatch:
      return dispatcher().dispatch_forward(context, slice(node).dispatch);
    case Piece::Experts:
      return model::experts_forward(context,
                                    slice(node).experts,
                                    weights.experts,
                                    dispatcher(),
                                    slice(node).dispatch);
    case Piece::Combine:
      return dispatcher().combine_forward(context, slice(node).dispatch);
    case Piece::Merge:
      return merge(node, context);
    default:
      UNREACHABLE("no body for {}", schedule::print(node));
  }
}

void Program::input_gradient(const Node& node, const model::Context& context) {
  model::MicroBatchState& batch = micro_batch(node);
  if (node.piece == Piece::Head) {
    return take_gradient(node,
                         model::head_dgrad(context,
                                           batch.head,
                                           weights_.head,
                                           chunk(node).y_TD,
                                           batch.labels_T,
                                           std::max<std::int64_t>(1, batch.labelled)));
  }
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = weights_.layers[at(node.layer)];
  switch (node.piece) {
    case Piece::Attention:
      return hand_back(node,
                       context.config.multi_latent_attention
                           ? model::latent_attention_dgrad(context,
                                                           state.latent_attention,
                                                           weights.latent_attention,
                                                           state.x_TD,
                                                           state.dh_TD)
                           : model::attention_dgrad(context,
                                                    state.attention,
                                                    weights.attention,
                                                    state.x_TD,
                                                    state.dh_TD));
    case Piece::Mlp:
      state.dh_TD = model::mlp_dgrad(context, state.mlp, weights.mlp, state.h_TD, state.dy_TD);
      return;
    case Piece::Shared:
      if (node.part == Part::Fc2) {
        return model::shared_fc2_dgrad(context, state.shared, weights.shared, state.dy_TD);
      }
      return model::shared_fc1_dgrad(context, state.shared, weights.shared);
    case Piece::Route:
      // In this order whatever ran first: what came by the rows, the shared experts', the router's.
      if (state.shared.dx_TD.defined()) {
        model::add_shared_gradient(context, state.shared, state.route.norm);
      }
      state.dh_TD = model::route_dgrad(context,
                                       state.route,
                                       weights.route,
                                       state.h_TD,
                                       state.dy_TD,
                                       totals_.router().of_layer(node.layer));
      state.dy_TD.reset();
      return;
    case Piece::Permute:
      return permute_gradient(node, context);
    case Piece::Dispatch:
      return dispatcher().dispatch_dgrad(context, slice(node).dispatch);
    case Piece::Experts:
      return model::experts_dgrad(context,
                                  slice(node).experts,
                                  weights.experts,
                                  dispatcher(),
                                  slice(node).dispatch);
    case Piece::Combine:
      return dispatcher().combine_dgrad(context, slice(node).dispatch);
    case Piece::Merge:
      return merge_gradient(node, context);
    default:
      UNREACHABLE("no body for {}", schedule::print(node));
  }
}

void Program::weight_gradient(const Node& node, const model::Context& context) {
  model::MicroBatchState& batch = micro_batch(node);
  if (node.piece == Piece::Embed) {
    Tensor& dx_TD = chunk(node).dx_TD;
    model::embedding_wgrad(context, gradients_.embedding_VD, dx_TD, batch.learning_ids_T);
    dx_TD.reset();
    batch.ids_T.reset();
    batch.learning_ids_T.reset();
    return;
  }
  if (node.piece == Piece::Head) {
    model::head_wgrad(context, batch.head, gradients_.head, chunk(node).y_TD);
    chunk(node).y_TD.reset();
    batch.labels_T.reset();
    return;
  }
  model::LayerState& state = layer(node);
  const model::LayerWeights& gradients = gradients_.layers[at(node.layer)];
  switch (node.piece) {
    case Piece::Attention:
      if (context.config.multi_latent_attention) {
        model::latent_attention_wgrad(context,
                                      state.latent_attention,
                                      gradients.latent_attention,
                                      state.x_TD,
                                      state.dh_TD);
      } else {
        model::attention_wgrad(context,
                               state.attention,
                               gradients.attention,
                               state.x_TD,
                               state.dh_TD);
      }
      state.x_TD.reset();
      state.dh_TD.reset();
      return;
    case Piece::Mlp:
      model::mlp_wgrad(context, state.mlp, gradients.mlp, state.h_TD, state.dy_TD);
      state.h_TD.reset();
      state.dy_TD.reset();
      return;
    case Piece::Route:
      model::route_wgrad(context, state.route, gradients.route, state.h_TD);
      state.h_TD.reset();
      return;
    case Piece::Shared:
      if (node.part == Part::Fc2) {
        return model::shared_fc2_wgrad(context, state.shared, gradients.shared);
      }
      return model::shared_fc1_wgrad(context, state.shared, gradients.shared);
    case Piece::Experts:
      return model::experts_wgrad(context, slice(node).experts, gradients.experts);
    default:
      UNREACHABLE("no body for {}", schedule::print(node));
  }
}

void Program::step_end(const Node& node, Stream& stream) {
  const model::ParameterBuffer& dense = parameters_.buffer(model::Home::Dense);
  const model::ParameterBuffer& expert = parameters_.buffer(model::Home::Expert);
  switch (node.piece) {
    case Piece::Tie:
      return tie(stream);
    case Piece::Reduce:
      if (node.part == Part::Dense) {
        return groups_.dense_reduction->all_reduce(stream, dense.gradients, comm::Reduce::Sum);
      }
      return groups_.expert_reduction->all_reduce(stream, expert.gradients, comm::Reduce::Sum);
    case Piece::Norm:
      if (stop_ != nullptr && stop_->load()) totals_.request_stop();
      kernels::squared_norm(stream,
                            totals_.dense_square_norm(),
                            parameters_.normed_gradients(model::Home::Dense));
      return kernels::squared_norm(stream,
                                   totals_.expert_square_norm(),
                                   parameters_.normed_gradients(model::Home::Expert));
    case Piece::Totals:
      return totals_.gather(stream, *groups_.world);
    case Piece::Clip:
      read_totals();
      return;
    case Piece::Optimizer: {
      // A step without room for its rows changes nothing, and runs again.
      if (totals_read_.overflowed) {
        kernels::zero(stream, dense.gradients);
        return kernels::zero(stream, expert.gradients);
      }
      // A step that is not finite changes nothing. Where the run stops at it, the gradients stay,
      // so that it can be said which is to blame; where it goes on, the next step starts from zero.
      if (!std::isfinite(totals_read_.gradient_norm)) {
        if (config_.rerun_state_machine.check_for_nan_in_loss) return;
        kernels::zero(stream, dense.gradients);
        return kernels::zero(stream, expert.gradients);
      }
      const double scale =
          optim::clip_scale(totals_read_.gradient_norm, config_.optimizer.clip_grad);
      for (const optim::AdamW& optimizer : optimizers_) {
        optimizer.apply(stream, config_.optimizer, learning_rate_, scale, step_ + 1);
      }
      return move_biases(stream);
    }
    default:
      UNREACHABLE("no body for {}", schedule::print(node));
  }
}

// Towards even loads, by the rows of the whole step.
void Program::move_biases(Stream& stream) {
  if (!config_.model.moe_router_enable_expert_bias) return;
  for (const int layer : parameters_.holding().layers) {
    if (!config_.model.is_moe_layer(layer)) continue;
    kernels::move_bias(stream,
                       weights_.layers[at(layer)].route.bias_E,
                       totals_.router().rows(layer),
                       static_cast<float>(config_.model.moe_router_bias_update_rate));
  }
}

// Both sides of tied embeddings end with the sum of their gradients.
void Program::tie(Stream& stream) {
  if (anatomy_.tie == schedule::Tie::BetweenStages) {
    const Tensor& gradient = parameters_.find("embedding.weight").gradient;
    return groups_.embedding->all_reduce(stream, gradient, comm::Reduce::Sum);
  }
  kernels::accumulate(stream, gradients_.embedding_VD, parameters_.tied_head_gradient());
  kernels::zero(stream, parameters_.tied_head_gradient());
}

const StepTotals& Program::read_totals() {
  totals_read_ = totals_.read(groups_.grid);
  return totals_read_;
}

const model::MicroBatchState& Program::state(int micro_batch) const {
  return micro_batches_[at(micro_batch)];
}

void Program::drop_states() {
  for (model::MicroBatchState& state : micro_batches_) state = {};
}

model::MicroBatchState& Program::micro_batch(const Node& node) {
  return micro_batches_[at(node.micro_batch)];
}

model::LayerState& Program::layer(const Node& node) {
  return micro_batch(node).layers[at(node.layer)];
}

}  // namespace weft::train
