// Names that say the opposite of each other: no "did you mean" leads from one to the other.
#pragma once

#include <string_view>

namespace weft::config {

// Whether one of two names denies what the other says (`save_optim`, `no_save_optim`), or has the
// other word of a pair (`save_optim`, `load_optim`). Names are in words with '_', '-' or '.'.
bool is_opposite(std::string_view name, std::string_view other);

}  // namespace weft::config
