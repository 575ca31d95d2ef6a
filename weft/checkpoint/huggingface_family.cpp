#include <array>

#include "weft/checkpoint/huggingface_config.h"

namespace weft::checkpoint {

std::string_view word(Family family) {
  constexpr std::array<std::string_view, 3> kWords{"qwen3_moe", "mixtral", "olmoe"};
  return kWords[static_cast<std::size_t>(family)];
}

std::optional<Family> family_of(std::string_view model_type) {
  for (const Family family : {Family::Qwen3Moe, Family::Mixtral, Family::Olmoe}) {
    if (word(family) == model_type) return family;
  }
  return std::nullopt;
}

}  // namespace weft::checkpoint
