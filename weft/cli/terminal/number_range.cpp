#include "weft/cli/terminal/number_range.h"

#include <cmath>

#include "weft/base/text.h"

namespace weft::cli {

CLI::Option* within(double low, double high, CLI::Option* option) {
  // Integers in full, other numbers short.
  const auto written = [](double end) {
    const bool whole = std::floor(end) == end && std::abs(end) < 1e9;
    return whole ? base::text("{:.0f}", end) : base::text("{:g}", end);
  };
  const CLI::Validator inside(
      [low, high, written](std::string& typed) {
        const std::optional<double> value = base::parse_number(typed);
        if (value && *value >= low && *value <= high) return std::string();
        return base::text("'{}' is not a number from {} to {}",
                          base::shown(typed),
                          written(low),
                          written(high));
      },
      "");
  return option->check(inside)->type_name(base::text("{}..{}", written(low), written(high)));
}

CLI::Option* comma_list(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false);
}

}  // namespace weft::cli
