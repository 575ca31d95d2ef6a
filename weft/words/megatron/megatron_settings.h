// Keys of Megatron Bridge in YAML that are no key of Weft's: the same table as on the command line
// (megatron.def).
#pragma once

#include <vector>

#include "weft/config/setting.h"
#include "weft/words/words.h"

namespace weft::words {

// The sections of megatron.def's keys that the config has not.
std::vector<std::string> megatron_sections();

struct MeantSettings {
  std::vector<config::Setting> settings;  // Weft's keys, in their order
  std::vector<Asked> asked;               // effects of the others
  std::vector<config::Finding> warnings;  // H14, H23
  std::vector<std::string> complaints;
};
MeantSettings meant_settings(const std::vector<config::Setting>& settings);

// Sets the keys, then applies the effects.
void apply_meant(const MeantSettings& meant,
                 config::Config& config,
                 std::vector<config::Finding>& warnings,
                 std::vector<std::string>& complaints);

}  // namespace weft::words
