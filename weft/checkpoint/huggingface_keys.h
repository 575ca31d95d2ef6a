// What each key of a config.json means to Weft: used, harmless, or constrained to the values that
// are implemented. A key in none of these tables is accepted only where it says nothing (null,
// false, 0, empty): what is not known may change the computation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::checkpoint {

// Complaints about the keys of a config.json; empty where it can be read.
std::vector<std::string> key_complaints(const StrictJson& config,
                                        Family family,
                                        const std::string& file);

// Token ids, text generation, and what Transformers writes about itself.
bool is_harmless_key(std::string_view key);
// Whether the key is used, harmless, or constrained.
bool is_known_key(std::string_view key, Family family);
// Null, false, 0, or empty.
bool says_nothing(const StrictJson& value);

}  // namespace weft::checkpoint
