// The presets of tensor-parallel overlap: SMs given to communication in each matrix product.
//
// Their names are values of comm_overlap.tp_comm_overlap_cfg, and each was tuned for one shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"

namespace weft::rules {

// How the collective of a product travels.
enum class TpMethod {
  Bulk,      // as a whole, beside a product that does not need it
  Pipeline,  // in four splits behind the product
  Ring,      // piece by piece from neighbour to neighbour
  None,      // not at all
};

std::string_view word(TpMethod method);

// How the collective of one matrix product runs.
struct TpSlot {
  TpMethod method = TpMethod::Ring;
  int sms = 1;             // given to communication
  int cga = 1;             // thread blocks of a cluster
  bool sm_margin = false;  // the product leaves those SMs free
  int splits = 1;          // of a pipeline
  bool aggregate = false;  // a ring takes its pieces two at a time
  bool fp8_buffer = false;
};

struct TpPreset {
  std::string_view name;
  std::int64_t hidden;
  std::int64_t tp;
  // The slots that differ between presets.
  TpSlot qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad, proj_fprop, fc2_fprop;
  // The four others, qkv_fprop, proj_dgrad, fc1_fprop and fc2_dgrad, are rings of one kind.
  TpSlot others = {};
};

// A product by its name, and how its collective runs: all ten of a preset, in the order of a layer.
struct NamedSlot {
  std::string_view name;
  TpSlot slot;
};
std::vector<NamedSlot> slots_of(const TpPreset& preset);

// What a preset holds, as people and programs read it.
std::string to_text(const TpPreset& preset);
base::Json to_json(const TpPreset& preset);

std::span<const TpPreset> tp_presets();
// Null where there is none of that name.
const TpPreset* find_tp_preset(std::string_view name);

}  // namespace weft::rules
