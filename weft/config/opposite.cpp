#include "weft/config/opposite.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/text.h"

namespace weft::config {
namespace {

using Parts = std::vector<std::string>;

constexpr std::pair<std::string_view, std::string_view> kPairs[] = {{"save", "load"},
                                                                    {"enable", "disable"},
                                                                    {"min", "max"},
                                                                    {"first", "last"},
                                                                    {"start", "end"},
                                                                    {"train", "test"},
                                                                    {"train", "valid"},
                                                                    {"forward", "backward"},
                                                                    {"dgrad", "wgrad"},
                                                                    {"fwd", "bwd"}};

Parts parts_of(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) c = c == '-' || c == '.' ? '_' : c;
  return base::split(plain, '_');
}

bool has(const Parts& parts, std::string_view part) {
  return std::ranges::find(parts, part) != parts.end();
}

bool denies(const Parts& parts) { return has(parts, "no") || has(parts, "disable"); }

}  // namespace

bool is_opposite(std::string_view name, std::string_view other) {
  const Parts first = parts_of(name), second = parts_of(other);
  if (denies(first) != denies(second)) return true;
  return std::ranges::any_of(kPairs, [&](const auto& pair) {
    const auto& [one, two] = pair;
    const bool split = has(first, one) && has(second, two) && !has(first, two) && !has(second, one);
    const bool crossed =
        has(first, two) && has(second, one) && !has(first, one) && !has(second, two);
    return split || crossed;
  });
}

}  // namespace weft::config
