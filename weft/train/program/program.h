// Joint of schedule and model: only the program's files name both a schedule node and a model
// piece. The program is what the nodes of one rank's graph do; the graph decides the order.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/checkpoint/snapshot.h"
#include "weft/model/model.h"
#include "weft/model/tensor_copies.h"
#include "weft/rules/judged_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/memory/dropping.h"
#include "weft/train/batch.h"
#include "weft/train/groups.h"
#include "weft/train/optimizers.h"
#include "weft/train/program/forward_drops.h"
#include "weft/train/totals.h"

namespace weft::train {

// Nothing: run the full training step; do not update the state.
enum class Effect { Training, Nothing };

struct StepInput {
  const Batch& batch;
  std::int64_t step = 0;  // from 0
  double learning_rate = 0;
  std::int64_t optimizer_begin = 0;         // first step of the current optimizer
  const std::atomic<bool>* stop = nullptr;  // checked before the step and near its end
  // Checked before the step and near its end.
  std::optional<std::chrono::steady_clock::time_point> leave_at = std::nullopt;
  bool fails = false;  // makes the step non-finite, to test the reaction of a run
  schedule::StepKind kind = schedule::StepKind::Training;
  config::RowBudget budget = config::RowBudget::AsConfigured;
  // Copied before the step, in graphs with `snapshot` nodes; nullptr: no copy.
  const checkpoint::Snapshot* snapshot = nullptr;
  Effect effect = Effect::Training;
  // Micro-batches cut from this dry step; reserve what each holds for the whole step.
  std::int64_t left_out = 0;
};

class Program {
 public:
  Program(const rules::JudgedConfig& config,
          const schedule::Anatomy& anatomy,
          tensor::Pool& pool,
          tensor::Stream& compute,
          Groups& groups,
          const model::Parameters& parameters,
          std::vector<OptimizerShare>& optimizers,
          tensor::Stream* host = nullptr);  // see make_optimizers

  // Takes a step's micro-batches; all streams must be idle. `kind`: see Pool::settle.
  void begin(const StepInput& input, const void* kind = nullptr);
  // Enqueues the work of a node and returns.
  void run(const schedule::Node& node, tensor::Stream& stream);
  // Called before the body of every later node.
  using Watch = std::function<void(const schedule::Node&)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

  // Gathers the weights if a step leaves that to the next one. Call before reading weights outside
  // of a training step. Every rank calls it, with all streams idle.
  void gather_weights();

  // Totals known to all ranks after a training step (or after totals(), a forward-only step).
  const StepTotals& totals() const { return totals_read_; }
  const StepTotals& read_totals();

  // Factor that turns summed gradients into mean gradients; 1 if they were scaled before.
  double average() const;

  // Tokens of the step that the rows of a micro-batch are.
  kernels::RowTokens tokens(int micro_batch) const;
  // Kept state of a micro-batch; after a forward-only step with its logits.
  const model::MicroBatchState& state(int micro_batch) const;

  // Output of forward node `node`, which has just run; for the search for non-finite values.
  tensor::Tensor output_of(const schedule::Node& node);
  // Drops states, including those in host memory.
  void drop_states();
  void drop_state(const ForwardDrops::State& state);

 private:
  using Node = schedule::Node;
  using Body = void (*)(Program&, const Node&, const model::Context&);
  struct Bodies;  // program_pieces.h
  struct Pieces;

  // Bodies of a node that stands for one piece or one part.
  static Bodies bodies_of(const Node& node);
  static Body body_of(const Bodies& bodies, schedule::Direction direction);
  std::vector<Node> parts_of(const Node& node) const;

  // Offload to host memory, and the copy back (program_offload.cpp).
  void go_out(const Node& node, tensor::Stream& stream);
  void come_in(const Node& node, tensor::Stream& stream);
  void drop(const std::vector<Node>& over);

  model::Context context(const Node& node, tensor::Stream& stream) const;
  tensor::Reuse memory_of_output(const Node& node) const;
  model::Randomness randomness(const Node& node) const;
  derive::SequenceShare sequence_share() const;

  model::MicroBatchState& micro_batch(const Node& node);
  model::LayerState& layer(const Node& node);
  const model::LayerWeights& layer_weights(const Node& node) const;

  // Attention over context-parallel ranks (program_context.cpp).
  bool attends_across_ranks(const Node& node) const;
  // True if its ranks exchange heads for tokens, before and after attention.
  bool exchanges_heads(const Node& node) const;
  // True if the part is the last before the context-parallel ones.
  bool is_last_before_context(const Node& node) const;
  // True if its output is kept as it is, without a preceding exchange of heads.
  bool feeds_context_without_exchange(const Node& node) const;
  model::ContextSharing context_sharing(const model::Context& context, const Node& node);
  comm::Communicator& head_ranks(const Node& node) const;
  comm::Communicator& key_ranks(const Node& node) const;
  void begin_context(const model::Context& context, const Node& node);
  void end_context(const model::Context& context, const Node& node);
  void end_context_gradient(const model::Context& context, const Node& node);
  void begin_context_gradient(const model::Context& context, const Node& node);
  void attend_again(const model::Context& context, const Node& node);
  // Output tensors of attention, for a part that reads or makes them.
  std::vector<tensor::Tensor*> attended_in_context(const Node& node);
  void drop_in_context(const Node& node);
  std::vector<tensor::Tensor*> offloaded_of_qkv(const Node& node);
  std::vector<tensor::Tensor*> made_by_core(const Node& node);
  tensor::Tensor& attention_output(const Node& node);  // input of the projection

  // Sub-layers between norm and residual (program_sub_layers.cpp).
  struct SubLayer;
  SubLayer sub_layer(const Node& node);
  model::ProductEnds& product_ends(const Node& node);
  std::optional<model::ProductStep> product_step(const Node& node) const;
  std::int64_t product_parts(const Node& node) const;
  tensor::Tensor gathered(const model::Context& context, const tensor::Tensor& own_TD);
  tensor::Tensor scattered(const model::Context& context,
                           const tensor::Tensor& all_TD,
                           tensor::Tensor own_TD);

  template <typename Do>
  void with_attention(const Node& node, const Do& act);  // program_pieces.h
  // True if several micro-batches wait for weight gradients: in ZB-H1, on all ranks but the first.
  // These must not keep more than micro-batches that wait for their backward.
  bool keeps_several_weight_gradients() const;
  void norm_weights_early(const model::Context& context, Node node);
  // Gradients of a bucket (program_step_end.cpp).
  struct Summed {
    tensor::Tensor gradients;  // the whole bucket
    tensor::Range own;         // part of them whose sum this rank receives
    model::Home home;
  };
  Summed summed(const Node& node);
  void narrow(const Node& node, tensor::Stream& stream);
  void reduce(const Node& node, tensor::Stream& stream);
  void widen(const Node& node, tensor::Stream& stream);
  void reduce_copied(tensor::Stream& stream);
  void gather(const Node& node, tensor::Stream& stream);
  void apply_gradients(const Node& node, tensor::Stream& stream);
  bool changes_weights() const;  // in this step
  optim::Applied applied() const;

  // Bucket with optimizer state in host memory (program_offloaded.cpp).
  struct OffloadedPart;
  void make_staging();
  OffloadedPart offloaded(const Node& node) const;
  void download_gradients(const Node& node, tensor::Stream& stream);
  void update_on_host(const Node& node);
  void upload_weights(const Node& node, tensor::Stream& stream);
  void move_biases(tensor::Stream& stream);
  void ask_for_end();  // requests the end if this rank was told to stop or its time is up

  // MoE layers by slice (program_moe.cpp).
  const model::Dispatcher& dispatcher() const;
  model::SliceState& slice(const Node& node);
  std::vector<Node> slices_of(const Node& node) const;
  tensor::Tensor slice_of(const tensor::Tensor& whole, const Node& node) const;
  model::Routed routed(const Node& node);
  void lay_out(const Node& node, const model::Context& context);
  void counts(const Node& node, const model::Context& context);
  void sizes(const Node& node);
  void merge(const Node& node, const model::Context& context);
  void merge_gradient(const Node& node, const model::Context& context);
  void drop_gradient_rows(const Node& node);
  void permute_gradient(const Node& node, const model::Context& context);

  tensor::Tensor embedded(const Node& node);  // program_ends.cpp

  // Tensors at the ends of layers and chunks (program_chunks.cpp).
  model::ChunkState& chunk(const Node& node);
  tensor::Tensor layer_input(const Node& node,
                             int layer);  // or the output of the last layer in the chunk
  // Output of a layer for the next layer of the chunk.
  tensor::Tensor& next_input(const Node& node);
  void exchange(const Node& node, tensor::Stream& stream);  // send and receive
  void take_input(const Node& node, tensor::Tensor x_TD);  // input of a chunk: embedded or received
  void hand_on(const Node& node, tensor::Tensor y_TD);  // to the next layer, or to the next stage
  void take_gradient(const Node& node, tensor::Tensor dy_TD);  // gradient of a chunk's output
  // To the previous layer, or to the previous stage.
  void hand_back(const Node& node, tensor::Tensor dx_TD);
  void load(std::size_t index, const MicroBatch& whole);
  void hold_left_out(std::int64_t micro_batches);

  const config::Config& config_;
  const schedule::Anatomy& anatomy_;
  tensor::Pool& pool_;
  tensor::Stream& compute_;  // for work between steps, and for reading totals
  Groups& groups_;
  const model::Parameters& parameters_;
  std::vector<OptimizerShare>& optimizers_;
  tensor::Stream* const host_;
  // Staging buffers between device and host, by slot; weights only if they are not fp32.
  struct Staged {
    tensor::Tensor gradients, weights;
  };
  std::vector<Staged> staged_;
  model::Weights weights_;
  tensor::Tensor rotary_SD_;
  tensor::Tensor part_rows_TP_;  // see model::Context; undefined if no product sums in steps
  // With the row budget, and without.
  const std::unique_ptr<model::Dispatcher> bounded_, unbounded_;
  std::vector<model::MicroBatchState> micro_batches_;
  std::vector<tensor::Tensor> left_out_;  // see StepInput
  config::RowBudget budget_ = config::RowBudget::AsConfigured;
  const kernels::OtherIds other_ids_;             // vocabulary ids on other ranks
  const std::vector<model::CopiedRange> copied_;  // copied ranges of this rank's dense gradients
  // Ranges of dense gradients that this rank's norm counts.
  const std::vector<tensor::Range> counted_;
  // Gradients in the wire's dtype, if it differs: by part and bucket number.
  std::map<std::pair<schedule::Part, int>, tensor::Tensor> on_the_wire_;
  schedule::Dropping dropping_;
  // By node (direction O): host copies of the tensors that it made.
  std::unordered_map<Node, std::vector<tensor::Tensor>, schedule::NodeHash> offloaded_;
  Totals totals_;
  StepTotals totals_read_;
  bool are_totals_read_ = false;  // true if totals_read_ are those of this step
  bool are_weights_gathered_ = true;
  std::int64_t step_ = 0, optimizer_begin_ = 0;
  Effect effect_ = Effect::Training;
  const std::atomic<bool>* stop_ = nullptr;
  const checkpoint::Snapshot* snapshot_ = nullptr;
  std::optional<std::chrono::steady_clock::time_point> leave_at_;
  double learning_rate_ = 0;
  schedule::StepKind step_kind_ = schedule::StepKind::Training;
  Watch watch_;
};

}  // namespace weft::train
