#include "weft/rules/tp_presets.h"

#include <algorithm>

namespace weft::rules {
namespace {

constexpr TpSlot bulk(int sms) { return {.method = TpMethod::Bulk, .sms = sms}; }
constexpr TpSlot pipeline(int sms) { return {.method = TpMethod::Pipeline, .sms = sms}; }
constexpr TpSlot kRing{.method = TpMethod::Ring, .sms = 1};
constexpr TpSlot kNone{.method = TpMethod::None, .sms = 0};

// Names: precision, GPU, hidden size, tp, cp where it is not 1, micro-batch, tokens, fine-tuning.
// clang-format off
constexpr TpPreset kPresets[] = {
    // name, hidden, tp, qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad, proj_fprop, fc2_fprop
    {"userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192", 8192, 4, bulk(4), bulk(24), bulk(2), bulk(4), pipeline(24), pipeline(16)},
    {"userbuffers_fp8_h100_h8192_tp4_mbs1_seqlen8192", 8192, 4, bulk(4), bulk(24), bulk(2), bulk(4), kRing, kRing},
    {"userbuffers_bf16_b200_h8192_tp2_mbs1_seqlen8192", 8192, 2, bulk(16), bulk(24), bulk(2), bulk(4), pipeline(32), pipeline(16)},
    {"userbuffers_fp8_b200_h8192_tp2_mbs1_seqlen8192", 8192, 2, bulk(4), bulk(24), bulk(2), bulk(4), kRing, kRing},
    {"userbuffers_bf16_h100_h16384_tp8_cp2_mbs1_seqlen8192", 16384, 8, bulk(2), bulk(24), bulk(2), bulk(2), pipeline(24), pipeline(8)},
    {"userbuffers_fp8_h100_h16384_tp8_cp2_mbs1_seqlen8192", 16384, 8, bulk(2), bulk(24), bulk(2), bulk(2), kRing, kRing},
    {"userbuffers_bf16_b200_h16384_tp4_cp2_mbs1_seqlen8192", 16384, 4, bulk(8), bulk(24), bulk(2), bulk(2), pipeline(32), pipeline(8)},
    {"userbuffers_fp8_b200_h16384_tp4_cp2_mbs1_seqlen8192", 16384, 4, bulk(8), bulk(32), bulk(2), bulk(8), kRing, kRing},
    {"userbuffers_fp8_h100_h8192_tp2_mbs1_seqlen4096_lora", 8192, 2, bulk(2), kNone, pipeline(16), kNone, kRing, kRing},
    {"userbuffers_fp8_h100_h16384_tp4_mbs1_seqlen2048_lora", 16384, 4, bulk(2), kNone, pipeline(16), kNone, pipeline(32), pipeline(16)},
    {"userbuffers_bf16_h100_h6144_tp2_mbs2_seqlen2048", 6144, 2, bulk(8), bulk(16), bulk(4), bulk(16), pipeline(16), pipeline(24)},
    {"userbuffers_fp8_h100_h6144_tp2_mbs2_seqlen2048", 6144, 2, bulk(8), bulk(16), bulk(4), bulk(16), pipeline(16), pipeline(24)},
    {"userbuffers_bf16_h100_h12288_tp4_mbs1_seqlen2048", 12288, 4, bulk(4), bulk(4), bulk(2), bulk(4), pipeline(24), kRing},
    {"userbuffers_fp8_h100_h12288_tp4_mbs1_seqlen2048", 12288, 4, bulk(4), bulk(4), bulk(2), bulk(4), kRing, kRing},
    {"userbuffers_bf16_b200_h12288_tp4_mbs1_seqlen2048", 12288, 4, bulk(4), bulk(16), bulk(2), bulk(8), kRing, kRing},
    {"userbuffers_fp8_b200_h12288_tp4_mbs1_seqlen2048", 12288, 4, bulk(4), bulk(16), bulk(2), bulk(8), kRing, kRing},
    {"userbuffers_bf16_b200_h6144_tp2_mbs1_seqlen4096", 6144, 2, bulk(8), bulk(32), bulk(2), bulk(8), kRing, kRing},
    {"userbuffers_bf16_b200_h18432_tp8_mbs1_seqlen4096", 18432, 8, bulk(8), bulk(32), bulk(2), bulk(8), kRing, pipeline(24)},
    {"userbuffers_fp8_b200_h18432_tp8_mbs1_seqlen4096", 18432, 8, bulk(8), bulk(32), bulk(2), bulk(8), kRing, kRing},
};
// clang-format on

}  // namespace

std::span<const TpPreset> tp_presets() { return kPresets; }

const TpPreset* find_tp_preset(std::string_view name) {
  const auto at = std::ranges::find(kPresets, name, &TpPreset::name);
  return at == std::end(kPresets) ? nullptr : at;
}

}  // namespace weft::rules
