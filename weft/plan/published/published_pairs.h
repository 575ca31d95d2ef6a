// Pairs of published runs without and with one knob: measured and predicted gain.
//
// A pair is two rows of a table with equal release, model and system and the notes "without" and
// "with".
#pragma once

#include <vector>

#include "weft/base/json.h"
#include "weft/plan/published/published.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {

struct PublishedPair {
  const PricedRun* without = nullptr;
  const PricedRun* with = nullptr;

  // Throughput ratio minus 1.
  double published() const { return with->run->tflops / without->run->tflops - 1; }
  double predicted() const { return with->predicted / without->predicted - 1; }
  // Smallest significant gain: a pair below is a tie.
  static constexpr double kSmallGain = 0.02;
  bool is_tie() const;
  // True for a tie that is predicted as a tie, or for a gain with the right sign.
  bool has_right_sign() const;
  // Caveat of the source; empty: none.
  const std::string& doubt() const;
};

// In row order. The pairs point into the validation.
std::vector<PublishedPair> pairs_of(const Validation& validation);

base::Json to_json(const std::vector<PublishedPair>& pairs);
// Empty without pairs.
std::string to_text(const std::vector<PublishedPair>& pairs);

}  // namespace weft::plan
