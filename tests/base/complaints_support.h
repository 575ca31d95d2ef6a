// What a piece of config code complains about, as a list.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

// The complaints of the ConfigError that `act` throws; empty when it throws none.
std::vector<std::string> complaints_of(const std::function<void()>& act);

// Whether some complaint contains every part.
bool any_names(const std::vector<std::string>& complaints,
               std::initializer_list<std::string> parts);

}  // namespace weft
