// Opposite names: no "did you mean" leads from one to the other.
#pragma once

#include <string_view>

namespace weft::config {

// True if one name negates the other (`save_optim`, `no_save_optim`) or uses an antonym
// (`save_optim`, `load_optim`). Words of a name are separated by '_', '-' or '.'.
bool is_opposite(std::string_view name, std::string_view other);

}  // namespace weft::config
