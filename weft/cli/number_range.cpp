#include "weft/cli/number_range.h"

#include "weft/base/text.h"

namespace weft::cli {

CLI::Validator between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& typed) {
        const std::optional<double> value = base::parse_number(typed);
        if (value && *value >= low && *value <= high) return std::string();
        return base::text("'{}' is not a number from {:g} to {:g}", base::shown(typed), low, high);
      },
      "");
}

}  // namespace weft::cli
