#include "weft/data/sample_order.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/random.h"

namespace weft::data {
namespace {

std::uint64_t samples_in(std::uint64_t tokens, std::uint64_t seq_length) {
  return tokens == 0 ? 0 : (tokens - 1) / seq_length;
}

}  // namespace

using base::text;

SampleOrder::SampleOrder(const std::string& name,
                         std::uint64_t tokens,
                         std::int64_t seq_length,
                         double eval_fraction,
                         std::uint64_t seed)
    : name_(name),
      tokens_(tokens),
      seq_length_(static_cast<std::uint64_t>(seq_length)),
      seed_(seed) {
  CHECK(seq_length >= 1, "sequence length {}", seq_length);
  if (!(eval_fraction >= 0 && eval_fraction < 1)) {
    throw base::ConfigError(
        text("dataset.eval_fraction={} must be at least 0 and less than 1; set it to 0 for no "
             "evaluation",
             eval_fraction));
  }
  const std::uint64_t all = samples_in(tokens, seq_length_);
  std::uint64_t held_out = 0;
  if (eval_fraction > 0) {
    const auto share = static_cast<std::uint64_t>(static_cast<long double>(all) * eval_fraction);
    held_out = std::max<std::uint64_t>(1, share);
  }
  if (all <= held_out) {
    const std::uint64_t needed = eval_fraction > 0 ? 2 : 1;
    throw base::ConfigError(
        text("'{}' has {}, {} of model.seq_length={} (and one label); at least {} "
             "are needed with dataset.eval_fraction={}: give more text or a shorter seq_length",
             name,
             base::counted(static_cast<std::int64_t>(tokens), "token"),
             base::counted(static_cast<std::int64_t>(all), "sample"),
             seq_length,
             needed,
             eval_fraction));
  }
  const std::uint64_t trained = all - held_out;
  parts_[0] = {.first = 0, .samples = trained};
  parts_[1] = {.first = trained * seq_length_, .samples = held_out};
}

SampleOrder::SampleOrder(const std::string& name,
                         std::uint64_t tokens,
                         const std::array<TokenRange, kSplits>& splits,
                         std::int64_t seq_length,
                         std::uint64_t seed)
    : name_(name),
      tokens_(tokens),
      seq_length_(static_cast<std::uint64_t>(seq_length)),
      seed_(seed) {
  CHECK(seq_length >= 1, "sequence length {}", seq_length);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    CHECK(splits[i].begin <= splits[i].end && splits[i].end <= tokens, "split {} of tokens", i);
    parts_[i] = {.first = splits[i].begin,
                 .samples = samples_in(splits[i].end - splits[i].begin, seq_length_)};
  }
  if (samples(Split::Train) > 0) return;
  throw base::ConfigError(
      text("'{}': the share of training has {} of {}, less than one sample of "
           "model.seq_length={} (and one label): give more data, a larger share in dataset.split "
           "or a shorter seq_length",
           name,
           base::counted(static_cast<std::int64_t>(splits[0].end - splits[0].begin), "token"),
           tokens,
           seq_length));
}

std::uint64_t SampleOrder::first_token(Split split, std::uint64_t sample) const {
  const Part& from = part(split);
  if (from.samples == 0) {
    throw base::ConfigError(text(
        "'{}' holds no sample out for {}: set dataset.eval_fraction above 0, or a larger share in "
        "dataset.split",
        name_,
        word(split)));
  }
  std::uint64_t place = sample % from.samples;
  if (split == Split::Train) {
    const std::uint64_t epoch_key =
        base::combine(base::combine(seed_, base::hash("epoch")), sample / from.samples);
    place = base::permute(epoch_key, place, from.samples);
  }
  return from.first + place * seq_length_;
}

}  // namespace weft::data
