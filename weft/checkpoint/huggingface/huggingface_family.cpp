#include <array>

#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"

namespace weft::checkpoint {
namespace {

constexpr std::array<std::string_view, 5> kWords{"qwen3_moe",
                                                 "mixtral",
                                                 "olmoe",
                                                 "deepseek_v3",
                                                 "deepseek_v2"};
constexpr std::string_view kKimi = "kimi_k2";

}  // namespace

std::string_view word(Family family) { return kWords[static_cast<std::size_t>(family)]; }

std::optional<Family> family_of(std::string_view model_type) {
  for (const Family family : kFamilies) {
    if (word(family) == model_type) return family;
  }
  if (model_type == kKimi) return Family::DeepseekV3;
  return std::nullopt;
}

std::string family_words() { return base::text("{} or {}", fmt::join(kWords, ", "), kKimi); }

bool is_deepseek(Family family) {
  return family == Family::DeepseekV3 || family == Family::DeepseekV2;
}

}  // namespace weft::checkpoint
