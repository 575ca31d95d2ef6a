// Published runs that were measured twice, without and with one knob: what it gained, and what the
// price says that it gains.
//
// A pair is two rows of a table with the same release, model and system whose notes are "without"
// and "with".
#pragma once

#include <vector>

#include "weft/base/json.h"
#include "weft/plan/published.h"

namespace weft::plan {

struct PublishedPair {
  const PricedRun* without = nullptr;
  const PricedRun* with = nullptr;

  // Throughput with over without, less 1.
  double published() const { return with->run->tflops / without->run->tflops - 1; }
  double predicted() const { return with->predicted / without->predicted - 1; }
  // Gains as small as this are noise, whose sign says nothing: the pair is a tie.
  static constexpr double kSmallGain = 0.02;
  bool is_tie() const;
  // A tie that is predicted to be one, or the sign of what was measured.
  bool has_right_sign() const;
  // What the source says against itself; empty: nothing.
  const std::string& doubt() const;
};

// In the order of the rows. They look into the validation.
std::vector<PublishedPair> pairs_of(const Validation& validation);

base::Json to_json(const std::vector<PublishedPair>& pairs);
// Empty where there is none.
std::string to_text(const std::vector<PublishedPair>& pairs);

}  // namespace weft::plan
