// The slots of tensor-parallel overlap as one gives them by hand: as `weft check --explain PRESET
// --json` prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/rules/tp_presets.h"

namespace weft::rules {

// Whether a value of comm_overlap.tp_comm_overlap_cfg is such slots, and no name.
bool gives_slots(std::string_view value);

struct GivenSlots {
  std::vector<NamedSlot> slots;     // all ten, in the order of a layer; empty where faults are
  std::vector<std::string> faults;  // "fc1_dgrad.num_sm = 0: use 1 to 1024"
};

// Reads at most 16 KiB. Every product and every number of it has to be there once.
GivenSlots read_slots(std::string_view json);

base::Json to_json(const std::vector<NamedSlot>& slots);

}  // namespace weft::rules
