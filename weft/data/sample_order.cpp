#include "weft/data/sample_order.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/random.h"

namespace weft::data {

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
  const std::uint64_t all = tokens == 0 ? 0 : (tokens - 1) / seq_length_;
  if (eval_fraction > 0) {
    const auto share = static_cast<std::uint64_t>(static_cast<long double>(all) * eval_fraction);
    eval_ = std::max<std::uint64_t>(1, share);
  }
  if (all <= eval_) {
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
  train_ = all - eval_;
}

std::uint64_t SampleOrder::first_token(Split split, std::uint64_t sample) const {
  if (split == Split::Train) {
    const std::uint64_t epoch_key =
        base::combine(base::combine(seed_, base::hash("epoch")), sample / train_);
    return base::permute(epoch_key, sample % train_, train_) * seq_length_;
  }
  if (eval_ == 0) {
    throw base::ConfigError(
        text("'{}' holds nothing out for evaluation: set dataset.eval_fraction above 0", name_));
  }
  return (train_ + sample % eval_) * seq_length_;
}

}  // namespace weft::data
