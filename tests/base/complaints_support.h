// Complaints of config code, as a list.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

// Complaints of the ConfigError that `act` throws; empty: none thrown.
std::vector<std::string> complaints_of(const std::function<void()>& act);

// True if some complaint contains every part.
bool any_names(const std::vector<std::string>& complaints,
               std::initializer_list<std::string> parts);

}  // namespace weft
