// Explicit slots of tensor-parallel overlap, in the form that `weft check --explain PRESET --json`
// prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/rules/parallel/tp_presets.h"

namespace weft::rules {

// True if a value of comm_overlap.tp_comm_overlap_cfg is explicit slots rather than a name.
bool gives_slots(std::string_view value);

struct GivenSlots {
  std::vector<NamedSlot> slots;     // all ten, in layer order; empty if there are faults
  std::vector<std::string> faults;  // "fc1_dgrad.num_sm = 0: use 1 to 1024"
};

// Reads at most 16 KiB. Every GEMM and every number must appear exactly once.
GivenSlots read_slots(std::string_view json);

base::Json to_json(const std::vector<NamedSlot>& slots);

}  // namespace weft::rules
