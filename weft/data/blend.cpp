#include "weft/data/blend.h"

#include <algorithm>
#include <cmath>

#include "weft/base/check.h"

namespace weft::data {
namespace {

using base::text;

// Numbers at the positions of weights; nullopt: one of them is no number.
std::optional<std::vector<double>> written_weights(std::span<const std::string> words) {
  if (words.size() % 2 == 1) return std::nullopt;
  std::vector<double> weights;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::optional<double> weight = base::parse_number(words[i]);
    if (!weight) return std::nullopt;
    weights.push_back(*weight);
  }
  return weights;
}

void require_few(std::size_t paths) {
  if (paths <= kMostBlended) return;
  throw base::ConfigError(
      text("dataset.blend has {} data sets; up to {} are blended: join some of them",
           paths,
           kMostBlended));
}

}  // namespace

Blend parse_blend(std::span<const std::string> words) {
  Blend blend;
  const std::optional<std::vector<double>> weights = written_weights(words);
  if (!weights) {
    blend.paths.assign(words.begin(), words.end());
    require_few(blend.paths.size());
    for (const std::string& path : blend.paths) {
      if (!base::parse_number(path)) continue;
      throw base::ConfigError(
          text("dataset.blend: '{}' stands where a path is expected: give a weight before every "
               "path, as in [0.3,a,0.7,b], or before none",
               base::shown(path)));
    }
    return blend;
  }
  require_few(weights->size());
  for (std::size_t i = 0; i < weights->size(); ++i) {
    const double weight = (*weights)[i];
    const std::string& path = words[2 * i + 1];
    if (!std::isfinite(weight) || weight < 0) {
      throw base::ConfigError(
          text("dataset.blend: the weight of '{}' is {}; a number of at least 0 is needed",
               base::shown(path),
               weight));
    }
    if (weight == 0) continue;
    blend.paths.push_back(path);
    blend.weights.push_back(weight);
  }
  if (!words.empty() && blend.paths.empty()) {
    throw base::ConfigError("dataset.blend: all weights are 0: give one of them a larger one");
  }
  return blend;
}

BlendOrder::BlendOrder(std::vector<double> weights) : weights_(std::move(weights)) {
  double sum = 0;
  for (const double weight : weights_) sum += weight;
  CHECK(!weights_.empty() && sum > 0, "{} weights add up to {}", weights_.size(), sum);
  for (double& weight : weights_) weight /= sum;
  last_ = {.at = 0, .taken = std::vector<double>(weights_.size(), 0)};
  marks_.push_back(last_);
}

std::size_t BlendOrder::next_part(State& state) const {
  const double sample = std::max(static_cast<double>(state.at), 1.0);
  std::size_t best = 0;
  // Rounded before the subtraction: a fused multiply-subtract would break ties differently.
  const auto lacks = [&](std::size_t part) {
    const volatile double due = weights_[part] * sample;
    return due - state.taken[part];
  };
  double most = lacks(0);
  for (std::size_t i = 1; i < weights_.size(); ++i) {
    const double behind = lacks(i);
    if (behind > most) {
      most = behind;
      best = i;
    }
  }
  state.taken[best] += 1;
  ++state.at;
  return best;
}

void BlendOrder::mark(const State& state) const {
  if (state.at != marks_.size() * interval_) return;
  marks_.push_back(state);
  if (marks_.size() < kMostMarks) return;
  for (std::size_t i = 1; 2 * i < marks_.size(); ++i) marks_[i] = std::move(marks_[2 * i]);
  marks_.resize((marks_.size() + 1) / 2);
  interval_ *= 2;
}

BlendOrder::State BlendOrder::state_at(std::uint64_t sample) const {
  const std::uint64_t nearest = std::min<std::uint64_t>(sample / interval_, marks_.size() - 1);
  State state = last_.at <= sample && last_.at >= nearest * interval_ ? last_ : marks_[nearest];
  while (state.at < sample) {
    next_part(state);
    mark(state);
  }
  return state;
}

const BlendOrder::Window& BlendOrder::window_of(std::uint64_t sample) const {
  const std::uint64_t first = sample / kWindow * kWindow;
  ++clock_;
  for (Window& window : windows_) {
    if (window.places.empty() || window.first != first) continue;
    window.used = clock_;
    return window;
  }
  Window& oldest = *std::ranges::min_element(windows_, {}, &Window::used);
  State state = state_at(first);
  oldest.places.clear();
  oldest.first = first;
  oldest.used = clock_;
  while (oldest.places.size() < kWindow) {
    const std::size_t part = next_part(state);
    oldest.places.push_back(
        {.part = part, .sample = static_cast<std::uint64_t>(state.taken[part]) - 1});
  }
  mark(state);
  last_ = std::move(state);
  return oldest;
}

BlendOrder::Place BlendOrder::place(std::uint64_t sample) const {
  if (sample >= kMostBlendedSamples) {
    throw base::ConfigError(
        text("sample {} of dataset.blend: up to {} can be read", sample, kMostBlendedSamples));
  }
  const std::lock_guard lock(mutex_);
  return window_of(sample).places[sample % kWindow];
}

BlendedDataset::BlendedDataset(Blend blend, std::vector<std::unique_ptr<Dataset>> parts)
    : blend_(std::move(blend)), parts_(std::move(parts)) {
  CHECK(!parts_.empty() && parts_.size() == blend_.paths.size(), "{} parts", parts_.size());
  for (int i = 0; i < kSplits; ++i) {
    const auto split = static_cast<Split>(i);
    if (part_without(split)) continue;
    std::vector<double> weights = blend_.weights;
    if (weights.empty()) {
      for (const auto& part : parts_) weights.push_back(static_cast<double>(part->samples(split)));
    }
    orders_[static_cast<std::size_t>(i)] = std::make_unique<BlendOrder>(std::move(weights));
  }
}

std::optional<std::size_t> BlendedDataset::part_without(Split split) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i]->samples(split) == 0) return i;
  }
  return std::nullopt;
}

std::uint64_t BlendedDataset::samples(Split split) const {
  if (part_without(split)) return 0;
  std::uint64_t all = 0;
  for (const auto& part : parts_) all += part->samples(split);
  return all;
}

std::optional<std::uint64_t> BlendedDataset::tokens() const {
  std::uint64_t all = 0;
  for (const auto& part : parts_) {
    const std::optional<std::uint64_t> tokens = part->tokens();
    if (!tokens) return std::nullopt;
    all += *tokens;
  }
  return all;
}

void BlendedDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  const std::unique_ptr<BlendOrder>& order = orders_[static_cast<std::size_t>(split)];
  if (!order) {
    throw base::ConfigError(
        text("dataset.blend: '{}' has no sample for {}: give it more data, or "
             "a larger share in dataset.split",
             base::shown(blend_.paths[*part_without(split)]),
             word(split)));
  }
  const BlendOrder::Place place = order->place(sample);
  parts_[place.part]->read(split, place.sample, tokens);
}

}  // namespace weft::data
