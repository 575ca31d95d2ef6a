// What each key of a config.json means to Weft: used, harmless, or constrained to the values that
// are implemented. A key in none of these tables is accepted only where it says nothing (null,
// false, 0, empty): what is not known may change the computation.
#pragma once

#include <string>
#include <vector>

#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::checkpoint {

// Complaints about the keys of a config.json; empty where it can be read.
std::vector<std::string> key_complaints(const StrictJson& config,
                                        Family family,
                                        const std::string& file);

}  // namespace weft::checkpoint
