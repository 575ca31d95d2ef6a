#include "weft/rules/parallel/tp_presets.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/rules/parallel/tp_slots.h"

namespace weft::rules {
namespace {

constexpr TpSlot bulk(int sms) { return {.method = TpMethod::Bulk, .sms = sms, .cga = 2}; }
constexpr TpSlot pipeline(int sms) {
  return {.method = TpMethod::Pipeline, .sms = sms, .cga = 2, .sm_margin = true, .splits = 4};
}
constexpr TpSlot in_fp8(TpSlot slot) {
  slot.fp8_buffer = true;
  return slot;
}
constexpr TpSlot kRing{};
constexpr TpSlot kRingMargin{.sm_margin = true};
constexpr TpSlot kRingPairs{.aggregate = true};
constexpr TpSlot kRingWide{.cga = 2, .sm_margin = true, .fp8_buffer = true};
constexpr TpSlot kNone{.method = TpMethod::None, .sms = 0, .cga = 0, .splits = 0};

// Name parts: precision, GPU, hidden size, tp, cp unless 1, micro-batch, tokens, fine-tuning.
constexpr TpPreset kPresets[] = {
    // name, hidden, tp, qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad, proj_fprop, fc2_fprop, others
    {"userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192",
     8192,
     4,
     bulk(4),
     bulk(24),
     bulk(2),
     bulk(4),
     pipeline(24),
     pipeline(16)},
    {"userbuffers_fp8_h100_h8192_tp4_mbs1_seqlen8192",
     8192,
     4,
     bulk(4),
     bulk(24),
     bulk(2),
     bulk(4),
     kRingMargin,
     kRingMargin},
    {"userbuffers_bf16_b200_h8192_tp2_mbs1_seqlen8192",
     8192,
     2,
     bulk(16),
     bulk(24),
     bulk(2),
     bulk(4),
     pipeline(32),
     pipeline(16)},
    {"userbuffers_fp8_b200_h8192_tp2_mbs1_seqlen8192",
     8192,
     2,
     bulk(4),
     bulk(24),
     bulk(2),
     bulk(4),
     kRing,
     kRing},
    {"userbuffers_bf16_h100_h16384_tp8_cp2_mbs1_seqlen8192",
     16384,
     8,
     bulk(2),
     bulk(24),
     bulk(2),
     bulk(2),
     pipeline(24),
     pipeline(8)},
    {"userbuffers_fp8_h100_h16384_tp8_cp2_mbs1_seqlen8192",
     16384,
     8,
     bulk(2),
     bulk(24),
     bulk(2),
     bulk(2),
     kRing,
     kRing},
    {"userbuffers_bf16_b200_h16384_tp4_cp2_mbs1_seqlen8192",
     16384,
     4,
     bulk(8),
     bulk(24),
     bulk(2),
     bulk(2),
     pipeline(32),
     pipeline(8)},
    {"userbuffers_fp8_b200_h16384_tp4_cp2_mbs1_seqlen8192",
     16384,
     4,
     bulk(8),
     bulk(32),
     bulk(2),
     bulk(8),
     kRing,
     kRing},
    {"userbuffers_fp8_h100_h8192_tp2_mbs1_seqlen4096_lora",
     8192,
     2,
     bulk(2),
     kNone,
     in_fp8(pipeline(16)),
     kNone,
     kRingWide,
     kRingWide,
     kRingMargin},
    {"userbuffers_fp8_h100_h16384_tp4_mbs1_seqlen2048_lora",
     16384,
     4,
     bulk(2),
     kNone,
     in_fp8(pipeline(16)),
     kNone,
     in_fp8(pipeline(32)),
     in_fp8(pipeline(16)),
     kRingPairs},
    {"userbuffers_bf16_h100_h6144_tp2_mbs2_seqlen2048",
     6144,
     2,
     bulk(8),
     bulk(16),
     bulk(4),
     bulk(16),
     pipeline(16),
     pipeline(24)},
    {"userbuffers_fp8_h100_h6144_tp2_mbs2_seqlen2048",
     6144,
     2,
     bulk(8),
     bulk(16),
     bulk(4),
     bulk(16),
     in_fp8(pipeline(16)),
     in_fp8(pipeline(24))},
    {"userbuffers_bf16_h100_h12288_tp4_mbs1_seqlen2048",
     12288,
     4,
     bulk(4),
     bulk(4),
     bulk(2),
     bulk(4),
     pipeline(24),
     kRing},
    {"userbuffers_fp8_h100_h12288_tp4_mbs1_seqlen2048",
     12288,
     4,
     bulk(4),
     bulk(4),
     bulk(2),
     bulk(4),
     kRing,
     kRing},
    {"userbuffers_bf16_b200_h12288_tp4_mbs1_seqlen2048",
     12288,
     4,
     bulk(4),
     bulk(16),
     bulk(2),
     bulk(8),
     kRing,
     kRing},
    {"userbuffers_fp8_b200_h12288_tp4_mbs1_seqlen2048",
     12288,
     4,
     bulk(4),
     bulk(16),
     bulk(2),
     bulk(8),
     kRing,
     kRing},
    {"userbuffers_bf16_b200_h6144_tp2_mbs1_seqlen4096",
     6144,
     2,
     bulk(8),
     bulk(32),
     bulk(2),
     bulk(8),
     kRing,
     kRing},
    {"userbuffers_bf16_b200_h18432_tp8_mbs1_seqlen4096",
     18432,
     8,
     bulk(8),
     bulk(32),
     bulk(2),
     bulk(8),
     kRing,
     pipeline(24)},
    {"userbuffers_fp8_b200_h18432_tp8_mbs1_seqlen4096",
     18432,
     8,
     bulk(8),
     bulk(32),
     bulk(2),
     bulk(8),
     kRing,
     kRing},
};
// clang-format on

std::string row_text(const NamedSlot& named) {
  const TpSlot& slot = named.slot;
  std::string all = base::text("  {:<11}{}", named.name, word(slot.method));
  if (slot.method == TpMethod::None) return all + '\n';
  all += base::text(", {} SM{}, cga size {}", slot.sms, slot.sms == 1 ? "" : "s", slot.cga);
  if (slot.sm_margin) all += ", SM margin";
  if (slot.method == TpMethod::Pipeline) all += base::text(", {} splits", slot.splits);
  if (slot.aggregate) all += ", aggregate";
  if (slot.fp8_buffer) all += ", fp8 buffer";
  return all + '\n';
}

}  // namespace

std::string_view word(TpMethod method) {
  switch (method) {
    case TpMethod::Bulk:
      return "bulk";
    case TpMethod::Pipeline:
      return "pipeline";
    case TpMethod::Ring:
      return "ring_exchange";
    case TpMethod::None:
      return "none";
  }
  UNREACHABLE("method {}", static_cast<int>(method));
}

std::vector<NamedSlot> slots_of(const TpPreset& preset) {
  return {{"qkv_fprop", preset.others},
          {"qkv_dgrad", preset.qkv_dgrad},
          {"qkv_wgrad", preset.qkv_wgrad},
          {"proj_fprop", preset.proj_fprop},
          {"proj_dgrad", preset.others},
          {"fc1_fprop", preset.others},
          {"fc1_dgrad", preset.fc1_dgrad},
          {"fc1_wgrad", preset.fc1_wgrad},
          {"fc2_fprop", preset.fc2_fprop},
          {"fc2_dgrad", preset.others}};
}

std::string to_text(const TpPreset& preset) {
  std::string all = base::text(
      "{}, a preset of comm_overlap.tp_comm_overlap_cfg for hidden size {} and tp = {}\n",
      preset.name,
      preset.hidden,
      preset.tp);
  for (const NamedSlot& named : slots_of(preset)) all += row_text(named);
  return all;
}

base::Json to_json(const TpPreset& preset) {
  return {{"id", preset.name},
          {"kind", "tensor-parallel preset"},
          {"hidden_size", preset.hidden},
          {"tensor_model_parallel_size", preset.tp},
          {"slots", to_json(slots_of(preset))}};
}

std::span<const TpPreset> tp_presets() { return kPresets; }

const TpPreset* find_tp_preset(std::string_view name) {
  const auto at = std::ranges::find(kPresets, name, &TpPreset::name);
  return at == std::end(kPresets) ? nullptr : at;
}

}  // namespace weft::rules
