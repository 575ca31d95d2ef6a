// The presets of tensor-parallel overlap: SMs given to communication in each matrix product.
//
// They are the values of comm_overlap.tp_comm_overlap_cfg, and each was tuned for one shape.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::rules {

// How the collective of a product travels.
enum class TpMethod {
  Bulk,      // as a whole, beside a product that does not need it
  Pipeline,  // in four splits behind the product
  Ring,      // piece by piece from neighbour to neighbour
  None,      // not at all
};

struct TpSlot {
  TpMethod method = TpMethod::Ring;
  int sms = 1;
};

struct TpPreset {
  std::string_view name;
  std::int64_t hidden;
  std::int64_t tp;
  // The slots that differ between presets; the four others are rings.
  TpSlot qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad, proj_fprop, fc2_fprop;
};

std::span<const TpPreset> tp_presets();
// Null where there is none of that name.
const TpPreset* find_tp_preset(std::string_view name);

}  // namespace weft::rules
