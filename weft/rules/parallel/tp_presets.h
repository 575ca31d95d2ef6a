// Presets of tensor-parallel overlap: SMs that each GEMM leaves to communication.
//
// Preset names are values of comm_overlap.tp_comm_overlap_cfg; each preset was tuned for one shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"

namespace weft::rules {

// Method of a GEMM's collective.
enum class TpMethod {
  Bulk,      // whole, beside an independent GEMM
  Pipeline,  // in four chunks, pipelined with the GEMM
  Ring,      // chunk by chunk between neighbours
  None,      // no overlap
};

std::string_view word(TpMethod method);

// Options of one GEMM's collective.
struct TpSlot {
  TpMethod method = TpMethod::Ring;
  int sms = 1;             // for communication
  int cga = 1;             // thread blocks per cluster
  bool sm_margin = false;  // the GEMM leaves those SMs free
  int splits = 1;          // chunks of a pipeline
  bool aggregate = false;  // the ring moves two chunks at a time
  bool fp8_buffer = false;
};

struct TpPreset {
  std::string_view name;
  std::int64_t hidden;
  std::int64_t tp;
  // Slots that differ between presets.
  TpSlot qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad, proj_fprop, fc2_fprop;
  // All other slots, qkv_fprop, proj_dgrad, fc1_fprop and fc2_dgrad: rings of one kind.
  TpSlot others = {};
};

// GEMM by name, with its slot: all ten of a preset, in layer order.
struct NamedSlot {
  std::string_view name;
  TpSlot slot;
};
std::vector<NamedSlot> slots_of(const TpPreset& preset);

// Contents of a preset as text and as JSON.
std::string to_text(const TpPreset& preset);
base::Json to_json(const TpPreset& preset);

std::span<const TpPreset> tp_presets();
// nullptr: no preset of that name.
const TpPreset* find_tp_preset(std::string_view name);

}  // namespace weft::rules
