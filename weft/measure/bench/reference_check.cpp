#include "weft/measure/bench/reference_check.h"

#include <algorithm>
#include <cmath>

#include "weft/base/check.h"
#include "weft/checkpoint/huggingface/huggingface_tensors.h"
#include "weft/checkpoint/run_reads.h"
#include "weft/model/vocabulary.h"
#include "weft/tensor/transfer.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"
#include "weft/train/weights.h"

namespace weft::measure {

using namespace train;
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

// Tolerances for fp32, relative to the reference's largest magnitude; a correct run is ten times
// better.
constexpr double kLogits = 5e-6, kGradient = 1e-5, kFirstLoss = 1e-6, kTrainedLoss = 5e-6;

// Tolerances for bf16: a multiple of the other implementation's error, or of one rounding. bf16 has
// 8 significant bits; an error below this relative rounding step is luck.
constexpr double kTimesPeer = 1.5, kOneRounding = 0x1p-9;

// Difference of two tensors; NaN stays NaN. fp32: the largest difference over the largest reference
// value. bf16: the root mean square, since every value has noise and the largest difference is one
// unlucky value.
struct Difference {
  double error = 0, magnitude = 0;
  double square_error = 0, square_magnitude = 0;

  void add(double value, double expected) {
    const double difference = std::abs(value - expected);
    if (std::isnan(difference) || difference > error)
      error = std::isnan(error) ? error : difference;
    magnitude = std::max(magnitude, std::abs(expected));
    square_error += difference * difference;
    square_magnitude += expected * expected;
  }
};

// Sequences of the share in a (B, S) batch; the last position of a sequence has no label.
Batch cut(const std::vector<std::int32_t>& tokens, const Share& share, std::int64_t sequence) {
  return read_batch(share, sequence, [&](std::int64_t index, std::span<std::int32_t> out) {
    std::copy_n(tokens.begin() + index * sequence, sequence, out.begin());
    out.back() = -1;
  });
}

class RankCheck {
 public:
  // nullptr `bf16`: a run in fp32.
  RankCheck(Engine& engine,
            const checkpoint::HuggingFaceModel& model,
            const checkpoint::ReferenceRun& reference,
            const checkpoint::Bf16Reference* bf16)
      : engine_(engine), model_(model), reference_(reference), bf16_(bf16) {}

  std::vector<Check> run() {
    compare_first_batch();
    if (bf16_ == nullptr) compare_training();
    return agree();
  }

 private:
  tensor::Stream& stream() const { return engine_.lanes()[schedule::Lane::Compute]; }

  void note(std::string name, const Difference& difference, double tolerance) {
    checks_.push_back({.name = std::move(name), .error = 0, .tolerance = tolerance});
    differences_.push_back(difference);
  }

  // Notes a check of the first batch with the tolerance for fp32. In a mean of `terms` numbers,
  // independent roundings mostly cancel.
  void note_first(const std::string& name,
                  const Difference& difference,
                  double fp32,
                  std::int64_t terms = 1) {
    if (bf16_ == nullptr) return note(name, difference, fp32);
    const double rounding = kOneRounding / std::sqrt(static_cast<double>(terms));
    note(name, difference, kTimesPeer * std::max(bf16_->error(name), rounding));
  }

  Batch first_batch() const {
    const Share share = engine_.share();
    Batch batch = cut(reference_.input_ids(), share, reference_.seq_length());
    if (bf16_ == nullptr) return batch;
    for (std::int64_t m = 0; m < share.micro_batches; ++m) {
      for (std::int64_t layer = 0; layer < engine_.config().model.num_layers; ++layer) {
        batch[static_cast<std::size_t>(m)].experts.push_back(
            bf16_->experts(layer, share.first_sequence(m), share.micro_batch_size));
      }
    }
    return batch;
  }

  void compare_first_batch() {
    const Batch batch = first_batch();
    forward_step(engine_, batch);
    compare_logits();
    engine_.program().drop_states();
    // Reads gradients at the optimizer's node, where they are complete.
    train_and_compare(engine_.training(), {.batch = batch});
    if (engine_.program().totals().overflowed) {
      train_and_compare(engine_.lifted_training(),
                        {.batch = batch, .budget = config::RowBudget::Lifted});
    }
    Difference loss;
    loss.add(engine_.program().totals().loss, reference_.loss());
    const std::int64_t labelled = reference_.batch_size() * (reference_.seq_length() - 1);
    note_first("loss", loss, kFirstLoss, labelled);
  }

  // A step that exceeds its row budget has no gradients.
  void train_and_compare(exec::Executor& executor, const StepInput& input) {
    Program& program = engine_.program();
    program.begin(input);
    executor.run(
        [&](const schedule::Node& node, tensor::Stream& stream) {
          const bool complete =
              node.piece == schedule::Piece::Optimizer && !program.totals().overflowed;
          if (!complete) return program.run(node, stream);
          stream.synchronize();
          compare_gradients();
        },
        exec::Tracing::Off);
  }

  // Compares logits on ranks with the head; other ranks contribute zero.
  void compare_logits() {
    Difference difference;
    if (engine_.parameters().holding().head) difference = logits_difference();
    note_first("logits", difference, kLogits);
  }

  // Difference over the vocabulary ids of this rank.
  Difference logits_difference() const {
    Difference difference;
    const Share share = engine_.share();
    const std::int64_t vocab = engine_.config().model.vocab_size;
    const std::int64_t first_id =
        model::other_ids(engine_.config().model, {.tp = engine_.groups().self.tp}).before;
    for (std::int64_t m = 0; m < share.micro_batches; ++m) {
      const Tensor& own = engine_.program().state(static_cast<int>(m)).head.logits_TV;
      const std::int64_t rows = own.dim(0), ids = own.dim(1);
      // Each rank of the tensor-parallel group has logits of all the group's tokens.
      kernels::RowTokens tokens = engine_.program().tokens(static_cast<int>(m));
      tokens.first_row = 0;
      std::vector<float> expected(static_cast<std::size_t>(ids));
      for (std::int64_t row = 0; row < rows; ++row) {
        reference_.read_logits(tokens.of_row(row) * vocab + first_id, expected);
        const std::vector<float> logits = tensor::read<float>(stream(), own.rows(row, 1));
        for (std::size_t i = 0; i < logits.size(); ++i) difference.add(logits[i], expected[i]);
      }
    }
    return difference;
  }

  // One check per tensor of the reference, relative to its magnitude.
  void compare_gradients() {
    for (const checkpoint::HuggingFaceTensor& tensor :
         checkpoint::huggingface_tensors(model_.config(),
                                         model_.family(),
                                         checkpoint::ExpertNames::Stacked)) {
      if (!tensor.trained) continue;
      note_first("grad." + tensor.name, gradient_difference(tensor), kGradient);
    }
  }

  // Difference over the elements whose summed gradients this rank applies.
  Difference gradient_difference(const checkpoint::HuggingFaceTensor& row) const {
    if (!engine_.parameters().has(row.parameter)) return {};
    const model::Parameter& parameter = engine_.parameters().find(row.parameter);
    Difference difference;
    for (const OptimizerShare& share : engine_.optimizers()) {
      if (share.home != parameter.spec.home) continue;
      for (const model::ParameterRange& found :
           engine_.parameters().in_range(share.home, share.range)) {
        if (found.parameter == &parameter) add_difference(row, found, difference);
      }
    }
    return difference;
  }

  void add_difference(const checkpoint::HuggingFaceTensor& row,
                      const model::ParameterRange& found,
                      Difference& difference) const {
    tensor::Slice slice = found.parameter->spec.slice;
    slice.elements = found.elements;
    const std::vector<tensor::Run> runs =
        tensor::runs_in(slice, {.begin = row.begin, .count = row.elements()});
    if (runs.empty()) return;
    const std::int64_t begin = runs.front().local, end = runs.back().local + runs.back().count;
    const Tensor gradient = found.parameter->gradient.view({found.parameter->gradient.elements()});
    const std::vector<float> own =
        tensor::read<float>(stream(), gradient.range(found.elements.begin + begin, {end - begin}));
    std::vector<float> expected(own.size());
    checkpoint::read_runs(runs, expected, [&](std::int64_t first, std::span<float> out) {
      reference_.read_gradient(row.parameter, first, out);
    });
    const double average = engine_.program().average();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference.add(own[i] * average, expected[i]);
    }
  }

  void compare_training() {
    for (std::int64_t step = 0; step < reference_.train_steps(); ++step) {
      const Batch batch =
          cut(reference_.train_batch(step), engine_.share(), reference_.seq_length());
      const StepTotals totals =
          train_step(engine_,
                     {.batch = batch, .step = step, .learning_rate = engine_.config().optimizer.lr},
                     exec::Tracing::Off);
      Difference loss;
      loss.add(totals.loss, reference_.train_losses()[static_cast<std::size_t>(step)]);
      note(base::text("loss of training step {}", step), loss, kTrainedLoss);
    }
  }

  // Combines the ranks' findings: the maximum, or the mean.
  std::vector<Check> agree() {
    const bool in_bf16 = bf16_ != nullptr;
    const std::int64_t n = std::ssize(differences_);
    Tensor numbers(engine_.pool(), DType::F64, {2 * n}, Tag::Communication);
    std::vector<double> found;
    for (const Difference& difference : differences_) {
      found.push_back(in_bf16 ? difference.square_error : difference.error);
      found.push_back(in_bf16 ? difference.square_magnitude : difference.magnitude);
    }
    tensor::upload<double>(stream(), numbers, found);
    engine_.groups().world->all_reduce(stream(),
                                       numbers,
                                       in_bf16 ? comm::Reduce::Sum : comm::Reduce::Max);
    tensor::read<double>(stream(), found, numbers);
    for (std::size_t i = 0; i < checks_.size(); ++i) {
      const double magnitude = found[2 * i + 1];
      const double error = magnitude > 0 ? found[2 * i] / magnitude : found[2 * i];
      checks_[i].error = in_bf16 ? std::sqrt(error) : error;
    }
    return checks_;
  }

  Engine& engine_;
  const checkpoint::HuggingFaceModel& model_;
  const checkpoint::ReferenceRun& reference_;
  const checkpoint::Bf16Reference* bf16_;
  std::vector<Check> checks_;
  std::vector<Difference> differences_;
};

std::vector<Check> check_ranks(const rules::JudgedConfig& config,
                               const checkpoint::HuggingFaceModel& model,
                               const checkpoint::ReferenceRun& reference,
                               const checkpoint::Bf16Reference* bf16,
                               const Process& process) {
  const bool in_bf16 = config->model.params_dtype == DType::BF16;
  CHECK(in_bf16 == (bf16 != nullptr),
        "{} against what was computed in {}",
        name_of(config->model.params_dtype),
        bf16 == nullptr ? "fp32" : "bf16");
  std::vector<Check> result;
  launch(config, process, [&](comm::Endpoint& endpoint) {
    Engine engine(config, endpoint);
    comm::poison_on_error(endpoint, [&] {
      load_weights(engine, model);
      std::vector<Check> checks = RankCheck(engine, model, reference, bf16).run();
      if (endpoint.rank() == 0) result = std::move(checks);
    });
  });
  return result;
}

}  // namespace

config::Config reference_config(const config::Config& base,
                                const checkpoint::HuggingFaceModel& model,
                                const checkpoint::ReferenceRun& reference) {
  config::Config config = with_model_of(base, model);
  config.model.seq_length = reference.seq_length();
  config.model.moe_aux_loss_coeff = {0};  // the reference's loss has no such terms
  config.model.moe_z_loss_coeff = 0;
  // The reference's router biases are constant.
  if (config.model.moe_router_enable_expert_bias) config.model.moe_router_bias_update_rate = 0;
  config.train.global_batch_size = reference.batch_size();
  const checkpoint::ReferenceOptimizer& optimizer = reference.optimizer();
  config.optimizer.lr = optimizer.lr;
  config.optimizer.adam_beta1 = optimizer.beta1;
  config.optimizer.adam_beta2 = optimizer.beta2;
  config.optimizer.adam_eps = optimizer.eps;
  config.optimizer.weight_decay = optimizer.weight_decay;
  config.optimizer.weight_decay_scope = optimizer.weight_decay_scope;
  config.optimizer.clip_grad = optimizer.grad_clip.value_or(0);
  return config;
}

std::vector<Check> check_reference(const rules::JudgedConfig& config,
                                   const checkpoint::HuggingFaceModel& model,
                                   const checkpoint::ReferenceRun& reference,
                                   const Process& process) {
  return check_ranks(config, model, reference, nullptr, process);
}

std::vector<Check> check_bf16_reference(const rules::JudgedConfig& config,
                                        const checkpoint::HuggingFaceModel& model,
                                        const checkpoint::ReferenceRun& reference,
                                        const checkpoint::Bf16Reference& bf16,
                                        const Process& process) {
  return check_ranks(config, model, reference, &bf16, process);
}

}  // namespace weft::measure
