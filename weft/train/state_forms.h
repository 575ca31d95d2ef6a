// State that a checkpoint holds in other forms than the run keeps it in: moments in fewer or more
// bits, master weights whole or as remainders.
#pragma once

#include <string>

#include "weft/checkpoint/optimizer_state.h"
#include "weft/config/config.h"

namespace weft::train {

// The forms in which a run's own checkpoints are.
checkpoint::StoredForms forms_of(const config::Config& config);

// What of a checkpoint's forms is another than the run's, for people; empty: nothing.
std::string changed_forms(const checkpoint::StoredForms& then, const checkpoint::StoredForms& now);

// Reads the entries of a run's state list from a checkpoint of any forms: to the bit where the form
// is the same, else through fp32. Where master weights change their form, weights are rounded from
// them anew, as the new form rounds.
class FormReader {
 public:
  // All outlive it.
  FormReader(checkpoint::StateReader& reader,
             const checkpoint::Manifest& manifest,
             const config::Config& config);

  void read(tensor::Stream& stream, const checkpoint::StateEntry& entry);

 private:
  checkpoint::StateReader& reader_;
  const checkpoint::StoredForms then_, now_;
};

}  // namespace weft::train
