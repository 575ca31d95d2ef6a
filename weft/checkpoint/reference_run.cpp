#include "weft/checkpoint/reference_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/base/check.h"
#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestAbout = 16u << 20;

TensorSource gradients_of(const SafetensorsFile& expected) {
  std::vector<std::string> names;
  for (const auto& [name, stored] : expected.tensors()) names.push_back(name);
  return {.name = expected.name(),
          .prefix = "grad.",
          .tensor_names = std::move(names),
          .find = [&expected](std::string_view tensor) { return expected.find(tensor); },
          .holds = Holds::Trained};
}

void expect_shape(const TensorView& tensor, const Shape& shape) {
  if (tensor.shape == shape) return;
  throw base::ConfigError(text("{} has shape {}; {} expected", tensor.where, tensor.shape, shape));
}

void expect_finite(const TensorView& tensor, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw base::ConfigError(
        text("{}: element {} is {}, and nothing can be held against it: make the reference again",
             tensor.where,
             i,
             values[i]));
  }
}

// Rejects unknown options, which could change every update.
void refuse_unknown_options(const StrictJson& optimizer, const std::string& file) {
  constexpr std::array<std::string_view, 7>
      kKnown{"name", "lr", "betas", "eps", "weight_decay", "applied_to", "grad_clip"};
  for (const auto& [key, value] : optimizer.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    throw base::ConfigError(text("'{}': optimizer key {} is not known; there are {}",
                                 file,
                                 shown(key),
                                 fmt::join(kKnown, ", ")));
  }
}

std::string read_about(const fs::path& folder) {
  return base::read_text(folder / "about.json", kLargestAbout);
}

}  // namespace

ReferenceOptimizer parse_reference_optimizer(std::string_view content, const std::string& file) {
  const StrictJson about = parse_object(content, file);
  const StrictJson& optimizer = member(about, "optimizer", file);
  if (!optimizer.is_object()) throw_wrong_value(optimizer, "optimizer", file, "an object");
  refuse_unknown_options(optimizer, file);
  const auto number = [&](const char* key, Range range) {
    return as_number(member(optimizer, key, file), text("optimizer.{}", key), file, range);
  };
  const StrictJson& name = member(optimizer, "name", file);
  if (name != "AdamW") throw_wrong_value(name, "optimizer.name", file, "\"AdamW\"");
  const StrictJson& applied_to = member(optimizer, "applied_to", file);
  if (applied_to != "every parameter") {
    throw_wrong_value(applied_to, "optimizer.applied_to", file, "\"every parameter\"");
  }
  const StrictJson& betas = member(optimizer, "betas", file);
  if (!betas.is_array() || betas.size() != 2) {
    throw_wrong_value(betas, "optimizer.betas", file, "a list of two numbers");
  }
  ReferenceOptimizer read;
  read.lr = number("lr", {0, 1e6});
  read.beta1 = as_number(betas[0], "optimizer.betas[0]", file, {0, 1});
  read.beta2 = as_number(betas[1], "optimizer.betas[1]", file, {0, 1});
  read.eps = number("eps", {0, 1});
  read.weight_decay = number("weight_decay", {0, 1e6});
  if (!member(optimizer, "grad_clip", file).is_null())
    read.grad_clip = number("grad_clip", {0, 1e12});
  return read;
}

ReferenceRun::ReferenceRun(const fs::path& folder, const HuggingFaceConfig& config)
    : optimizer_(parse_reference_optimizer(read_about(folder), (folder / "about.json").string())),
      expected_(folder / "expected.safetensors"),
      gradients_(config, gradients_of(expected_)),
      vocab_size_(config.model.vocab_size) {
  check_shapes(vocab_size_);
  input_ids_ = read_tokens(expected_.get("input_ids"), 0, batch_size_ * seq_length_);
  std::vector<double> loss(1);
  read_elements(expected_.get("loss"), 0, loss);
  expect_finite(expected_.get("loss"), loss);
  loss_ = loss[0];
  for (std::int64_t step = 0; step < train_steps(); ++step) train_batch(step);
}

void ReferenceRun::check_shapes(std::int64_t vocab_size) {
  const TensorView input_ids = expected_.get("input_ids");
  if (input_ids.shape.size() != 2 || input_ids.elements() == 0) {
    throw base::ConfigError(
        text("{} has shape {}; (batch, sequence) expected", input_ids.where, input_ids.shape));
  }
  batch_size_ = input_ids.shape[0];
  seq_length_ = input_ids.shape[1];
  expect_shape(expected_.get("logits"), {batch_size_, seq_length_, vocab_size});
  const TensorView loss = expected_.get("loss");
  if (!loss.shape.empty()) expect_shape(loss, {1});
  const TensorView losses = expected_.get("train.losses");
  if (losses.shape.size() != 1) {
    throw base::ConfigError(text("{} has shape {}; (steps) expected", losses.where, losses.shape));
  }
  expect_shape(expected_.get("train.batches"), {losses.shape[0], batch_size_, seq_length_});
  train_losses_.resize(static_cast<std::size_t>(losses.elements()));
  read_elements(losses, 0, train_losses_);
  expect_finite(losses, train_losses_);
  read_elements(expected_.get("logits"), 0, std::span<float>{});
}

void ReferenceRun::read_logits(std::int64_t begin, std::span<float> out) const {
  read_elements(expected_.get("logits"), begin, out);
}

std::vector<std::int32_t> ReferenceRun::train_batch(std::int64_t step) const {
  CHECK(step >= 0 && step < train_steps(), "step {} of {}", step, train_steps());
  const std::int64_t count = batch_size_ * seq_length_;
  return read_tokens(expected_.get("train.batches"), step * count, count);
}

std::vector<std::int32_t> ReferenceRun::read_tokens(const TensorView& tensor,
                                                    std::int64_t begin,
                                                    std::int64_t count) const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  read_elements(tensor, begin, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size_) {
      throw base::ConfigError(text("{}: element {} is token {}, outside the vocabulary of {}",
                                   tensor.where,
                                   begin + static_cast<std::int64_t>(i),
                                   tokens[i],
                                   vocab_size_));
    }
  }
  return tokens;
}

}  // namespace weft::checkpoint
