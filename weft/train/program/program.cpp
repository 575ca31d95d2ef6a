#include <algorithm>
#include <array>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/random.h"
#include "weft/derive/derived.h"
#include "weft/derive/logits.h"
#include "weft/model/rotary.h"
#include "weft/model/vocabulary.h"
#include "weft/schedule/dependencies.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using schedule::Direction;
using schedule::Node;
using tensor::DType;
using tensor::Stream;
using tensor::Tag;
using tensor::Tensor;

using base::at;

derive::SequenceShare share_of(const config::ModelConfig& model, const Groups& groups) {
  return {.length = model.seq_length, .ranks = groups.grid.cp(), .rank = groups.self.cp};
}

// Fills the rotary table (cosines and sines) for this rank's positions of every sequence.
void make_rotary_table(Stream& stream,
                       tensor::Pool& pool,
                       const Tensor& table,
                       const config::ModelConfig& model,
                       const derive::SequenceShare& share) {
  const kernels::RotaryAngles angles = model::rotary_angles(model);
  if (share.is_whole()) return kernels::rotary_table(stream, table, angles);
  const Tensor all(pool, DType::F32, {share.length, table.dim(1)}, Tag::Workspace);
  kernels::rotary_table(stream, all, angles);
  const std::array<kernels::RowBlock, 2> own{
      {{.from = share.front(), .to = 0, .rows = share.chunk()},
       {.from = share.back(), .to = share.chunk(), .rows = share.chunk()}}};
  kernels::copy_rows(stream, table, all, own);
}

// Index table: row t of each rank's result, for results of `tokens` rows laid end to end.
Tensor part_rows(Stream& stream, tensor::Pool& pool, std::int64_t tokens, std::int64_t ranks) {
  const tensor::Shape shape{tokens, ranks};
  const Tensor written = Tensor::host_visible(pool, DType::I32, shape, Tag::Workspace);
  for (std::int64_t i = 0; i < tokens * ranks; ++i) {
    written.host<std::int32_t>()[i] = static_cast<std::int32_t>(i % ranks * tokens + i / ranks);
  }
  Tensor rows(pool, DType::I32, shape, Tag::Workspace);
  const kernels::RowBlock all{.from = 0, .to = 0, .rows = tokens};
  kernels::copy_rows(stream, rows, written, {&all, 1});
  return rows;
}

model::EpGroups ep_groups(Groups& groups) {
  return {.ep = *groups.ep, .across = groups.ep_across.get(), .within = groups.ep_within.get()};
}

}  // namespace

Program::Program(const rules::JudgedConfig& config,
                 const schedule::Anatomy& anatomy,
                 tensor::Pool& pool,
                 Stream& compute,
                 Groups& groups,
                 const model::Parameters& parameters,
                 std::vector<OptimizerShare>& optimizers,
                 Stream* host)
    : config_(config),
      anatomy_(anatomy),
      pool_(pool),
      compute_(compute),
      groups_(groups),
      parameters_(parameters),
      optimizers_(optimizers),
      host_(host),
      weights_(model::weights_of(parameters, config->model)),
      rotary_SD_(pool,
                 DType::F32,
                 {share_of(config->model, groups).rows(), config->model.rotary_width()},
                 Tag::Workspace),
      bounded_(make_dispatcher(config->model, ep_groups(groups), config::RowBudget::AsConfigured)),
      unbounded_(make_dispatcher(config->model, ep_groups(groups), config::RowBudget::Lifted)),
      micro_batches_(at(derive::micro_batches(config->train, groups.grid.dp()))),
      other_ids_(model::other_ids(config->model, {.tp = groups.self.tp})),
      copied_(model::within(
          model::copied_ranges(parameters, groups.grid.tp()),
          parameters.shares(model::Home::Dense, groups.instance(model::Home::Dense).rank()))),
      counted_(model::counted_ranges(
          parameters.normed_ranges(model::Home::Dense, groups.instance(model::Home::Dense).rank()),
          copied_,
          groups.grid.tp(),
          groups.self.tp)),
      dropping_(anatomy),
      totals_(pool,
              config->model,
              groups.grid.world(),
              std::ssize(micro_batches_),
              squares_of(config)) {
  make_staging();
  make_rotary_table(compute, pool, rotary_SD_, config->model, sequence_share());
  if (anatomy.flow.exchange == schedule::TensorExchange::InSteps) {
    const std::int64_t tokens = config->train.micro_batch_size * sequence_share().rows();
    part_rows_TP_ = part_rows(compute, pool, tokens / groups.grid.tp(), groups.grid.tp());
  }
  compute.synchronize();
}

void Program::begin(const StepInput& input, const void* kind) {
  CHECK(input.batch.size() == micro_batches_.size(),
        "{} micro-batches for {}",
        input.batch.size(),
        micro_batches_.size());
  drop_states();
  pool_.settle(kind);
  dropping_.begin();
  step_ = input.step;
  optimizer_begin_ = input.optimizer_begin;
  effect_ = input.effect;
  budget_ = input.budget;
  learning_rate_ = input.learning_rate;
  step_kind_ = input.kind;
  std::vector<std::int64_t> labelled;
  for (std::size_t i = 0; i < input.batch.size(); ++i) {
    load(i, input.batch[i]);
    labelled.push_back(micro_batches_[i].labelled);
  }
  hold_left_out(input.left_out);
  stop_ = input.stop;
  snapshot_ = input.snapshot;
  leave_at_ = input.leave_at;
  totals_.begin(compute_, labelled);
  are_totals_read_ = false;
  if (input.fails) totals_.ask(Ask::Fail);
  // A forward-only step checks only here.
  ask_for_end();
}

void Program::ask_for_end() {
  if (stop_ != nullptr && stop_->load()) totals_.ask(Ask::Stop);
  if (leave_at_ && std::chrono::steady_clock::now() >= *leave_at_) totals_.ask(Ask::Leave);
}

derive::SequenceShare Program::sequence_share() const { return share_of(config_.model, groups_); }

void Program::load(std::size_t index, const MicroBatch& whole) {
  const MicroBatch part = tokens_of(whole, sequence_share());
  model::MicroBatchState& state = micro_batches_[index];
  state.tokens = std::ssize(part.ids) / groups_.grid.tp();
  state.layers.resize(at(config_.model.num_layers));
  state.chunks.resize(anatomy_.chunks.size());
  const auto copy = [&](const std::vector<std::int32_t>& values) {
    Tensor t = Tensor::host_visible(pool_, DType::I32, {std::ssize(values)}, Tag::Activations);
    std::ranges::copy(values, t.host<std::int32_t>());
    return t;
  };
  if (parameters_.holding().head) {
    state.labelled =
        std::ranges::count_if(whole.labels, [](std::int32_t label) { return label >= 0; });
    state.labels_T = copy(part.labels);
  }
  CHECK(part.experts.empty() || part.experts.size() == state.layers.size(),
        "a choice of experts for {} of {} layers",
        part.experts.size(),
        state.layers.size());
  for (const int layer : parameters_.holding().layers) {
    if (part.experts.empty() || !config_.model.is_moe_layer(layer)) continue;
    state.layers[at(layer)].route.given_Tk =
        copy(part.experts[at(layer)])
            .view({std::ssize(part.ids), config_.model.moe_router_topk})
            .rows(groups_.self.tp * state.tokens, state.tokens);
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

void Program::hold_left_out(std::int64_t micro_batches) {
  if (micro_batches == 0) return;
  left_out_ = totals_.of_more(pool_, micro_batches);
  const model::MicroBatchState& one = micro_batches_.front();
  const auto hold = [&](const Tensor& input) {
    if (!input.defined()) return;
    left_out_.emplace_back(pool_,
                           DType::I32,
                           tensor::Shape{micro_batches, input.elements()},
                           Tag::Activations);
  };
  hold(one.ids_T);
  hold(one.labels_T);
  if (config_.model.pad_token_id) hold(one.learning_ids_T);
}

model::Context Program::context(const Node& node, Stream& stream) const {
  const bool averages = config_.ddp.average_in_collective;
  const auto parts =
      static_cast<float>(std::ssize(micro_batches_) * (averages ? 1 : groups_.grid.dp()));
  return {.stream = stream,
          .pool = pool_,
          .config = config_.model,
          .sequence = sequence_share().rows(),
          .rotary_SD = rotary_SD_,
          .loss_scale = 1.0f / parts,
          .other_ids = other_ids_,
          .output_memory = memory_of_output(node),
          .gradient_write =
              schedule::begins_gradient(node) ? kernels::Write::Assign : kernels::Write::Accumulate,
          .random = randomness(node),
          .share = {.ranks = groups_.grid.tp() * groups_.grid.cp(),
                    .tp = groups_.grid.tp(),
                    .tp_rank = groups_.self.tp},
          .step = product_step(node),
          .product_parts = product_parts(node),
          .logits_chunk =
              step_kind_ == schedule::StepKind::Training ? derive::logits_chunk(config_) : 0,
          .part_rows_TP = part_rows_TP_};
}

kernels::RowTokens Program::tokens(int micro_batch) const {
  const Share share{.micro_batch_size = config_.train.micro_batch_size,
                    .micro_batches = std::ssize(micro_batches_),
                    .dp = groups_.grid.dp(),
                    .dp_rank = groups_.self.dp};
  const derive::SequenceShare own = sequence_share();
  return {.first = share.first_sequence(micro_batch) * own.length,
          .first_row = groups_.self.tp * micro_batches_[at(micro_batch)].tokens,
          .length = own.length,
          .run = own.is_whole() ? own.length : own.chunk(),
          .begins = {own.is_whole() ? 0 : own.front(), own.back()}};
}

model::Randomness Program::randomness(const Node& node) const {
  return {.layer_key = base::combine(static_cast<std::uint64_t>(config_.rng.seed),
                                     static_cast<std::uint64_t>(node.layer)),
          .step = step_,
          .tokens = tokens(node.micro_batch)};
}

void Program::run(const Node& node, Stream& stream) {
  if (watch_) watch_(node);
  drop(dropping_.before(node));
  pool_.allocate_for(stream);
  if (node.direction == Direction::None) {
    const Bodies bodies = bodies_of(node);
    CHECK(bodies.step != nullptr, "no body for {}", schedule::print(node));
    return bodies.step(*this, node, stream);
  }
  if (node.direction == Direction::I) return come_in(node, stream);
  if (node.direction == Direction::O) {
    go_out(node, stream);
  } else {
    const model::Context given = context(node, stream);
    for (const Node& part : parts_of(node)) {
      const Body body = body_of(bodies_of(part), node.direction);
      CHECK(body != nullptr, "no body for {}", schedule::print(part));
      body(*this, part, given);
    }
  }
  drop(dropping_.after(node));
}

void Program::drop(const std::vector<Node>& over) {
  for (const Node& made : over) {
    const bool makes_layer_output =
        schedule::piece_of(anatomy_, made).output_is_recomputed_or_offloaded();
    for (const Node& part : parts_of(made)) {
      const Bodies bodies = bodies_of(part);
      if (bodies.drop != nullptr) bodies.drop(*this, part);
      if (makes_layer_output && bodies.drop_next_input != nullptr)
        bodies.drop_next_input(*this, part);
    }
  }
}

Tensor Program::output_of(const Node& node) {
  if (product_step(node)) return {};  // a product in steps is incomplete
  const auto output = bodies_of(parts_of(node).back()).output;
  return output == nullptr ? Tensor() : output(*this, node);
}

const StepTotals& Program::read_totals() {
  if (are_totals_read_) return totals_read_;
  totals_read_ = totals_.read(compute_, groups_.grid, anatomy_.pipeline.loss_rank());
  totals_read_.gradient_norm *= average();
  are_totals_read_ = true;
  return totals_read_;
}

const model::MicroBatchState& Program::state(int micro_batch) const {
  return micro_batches_[at(micro_batch)];
}

void Program::drop_states() {
  for (model::MicroBatchState& state : micro_batches_) state = {};
  left_out_.clear();
  offloaded_.clear();
}

void Program::drop_state(const ForwardDrops::State& state) {
  model::MicroBatchState& all = micro_batches_[at(state.micro_batch)];
  if (state.layer == schedule::kNone) {
    all = {};
  } else {
    all.layers[at(state.layer)] = {};
  }
}

model::MicroBatchState& Program::micro_batch(const Node& node) {
  return micro_batches_[at(node.micro_batch)];
}

model::LayerState& Program::layer(const Node& node) {
  return micro_batch(node).layers[at(node.layer)];
}

const model::LayerWeights& Program::layer_weights(const Node& node) const {
  return weights_.layers[at(node.layer)];
}

}  // namespace weft::train
