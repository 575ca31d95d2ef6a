// Conversion of checkpoint state between number formats: moments in fewer or more bits, master
// weights in full or as remainders.
#pragma once

#include <string>

#include "weft/checkpoint/optimizer_state.h"
#include "weft/config/config.h"

namespace weft::train {

// Formats of a run's own checkpoints.
checkpoint::StoredForms forms_of(const config::Config& config);

// Difference of the checkpoint's formats from the run's, as text; empty: none.
std::string changed_forms(const checkpoint::StoredForms& then, const checkpoint::StoredForms& now);

// Reads the entries of a run's state list from a checkpoint of any formats. Equal formats keep
// every bit; others convert through fp32. If the format of master weights changes, the weights are
// rounded from them again in the new format's way.
class FormReader {
 public:
  // All arguments must outlive it.
  FormReader(checkpoint::StateReader& reader,
             const checkpoint::Manifest& manifest,
             const config::Config& config);

  void read(tensor::Stream& stream, const checkpoint::StateEntry& entry);

 private:
  checkpoint::StateReader& reader_;
  const checkpoint::StoredForms then_, now_;
};

}  // namespace weft::train
