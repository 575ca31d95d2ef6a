#include "weft/config/rules/judge.h"
#include "weft/config/rules/topics.h"

namespace weft::config {

std::span<const Rule> router_rules() { return {}; }

}  // namespace weft::config
