// Reference run: results of another implementation for a model, to check the engine. A folder with
// a Hugging Face model and
// about.json: the optimizer of the run;
// expected.safetensors: input_ids (B, S), logits (B, S, V), loss (1), grad.NAME of every tensor,
// train.batches (N, B, S), train.losses (N).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/parameter_source.h"
#include "weft/checkpoint/tensors/safetensors.h"
#include "weft/config/enums.h"

namespace weft::checkpoint {

// AdamW with decoupled weight decay.
struct ReferenceOptimizer {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  std::optional<double> grad_clip;  // limit of the global norm; nullopt: no clipping
  config::DecayScope weight_decay_scope = config::DecayScope::All;
};

// Parses `content`, the text of the about.json `file`.
ReferenceOptimizer parse_reference_optimizer(std::string_view content, const std::string& file);

class ReferenceRun {
 public:
  // `config`: the model's, from the same folder. Checks shapes, token ids and losses.
  ReferenceRun(const std::filesystem::path& folder, const HuggingFaceConfig& config);

  const ReferenceOptimizer& optimizer() const { return optimizer_; }
  std::int64_t batch_size() const { return batch_size_; }
  std::int64_t seq_length() const { return seq_length_; }
  std::int64_t train_steps() const { return static_cast<std::int64_t>(train_losses_.size()); }

  const std::vector<std::int32_t>& input_ids() const { return input_ids_; }  // (B, S)
  double loss() const { return loss_; }
  const std::vector<double>& train_losses() const { return train_losses_; }  // (N)

  // Reads elements of the logits (B, S, V) from `begin` on.
  void read_logits(std::int64_t begin, std::span<float> out) const;
  // Tokens (B, S) of a training step.
  std::vector<std::int32_t> train_batch(std::int64_t step) const;
  // Gradient elements of a parameter, like HuggingFaceModel::read for weights.
  void read_gradient(std::string_view parameter, std::int64_t begin, std::span<float> out) const {
    gradients_.read(parameter, begin, out);
  }

 private:
  void check_shapes(std::int64_t vocab_size);
  std::vector<std::int32_t> read_tokens(const TensorView& tensor,
                                        std::int64_t begin,
                                        std::int64_t count) const;

  ReferenceOptimizer optimizer_;
  SafetensorsFile expected_;
  ParameterSource gradients_;
  std::int64_t vocab_size_;
  std::int64_t batch_size_ = 0;
  std::int64_t seq_length_ = 0;
  std::vector<std::int32_t> input_ids_;
  double loss_ = 0;
  std::vector<double> train_losses_;
};

}  // namespace weft::checkpoint
