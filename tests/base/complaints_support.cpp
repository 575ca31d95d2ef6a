#include "tests/base/complaints_support.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

std::vector<std::string> complaints_of(const std::function<void()>& act) {
  try {
    act();
    return {};
  } catch (const base::ConfigError& error) {
    return error.complaints();
  }
}

bool any_names(const std::vector<std::string>& complaints,
               std::initializer_list<std::string> parts) {
  return std::any_of(complaints.begin(), complaints.end(), [&](const std::string& complaint) {
    return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return complaint.find(part) != std::string::npos;
    });
  });
}

}  // namespace weft
