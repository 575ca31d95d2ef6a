// Meaning of each config.json key to Weft: used, harmless, or restricted to implemented values. An
// unknown key is accepted only with an empty value (null, false, 0, empty), since it may change the
// computation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {

// Errors of the keys of a config.json; empty: valid.
std::vector<std::string> key_complaints(const StrictJson& config,
                                        Family family,
                                        const std::string& file);

// True for token ids, text generation and Transformers' own metadata.
bool is_harmless_key(std::string_view key);
// True if the key is used, harmless or restricted.
bool is_known_key(std::string_view key, Family family);
// True for null, false, 0 and empty values.
bool says_nothing(const StrictJson& value);

}  // namespace weft::checkpoint
