// Required result of a measurement.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::report {

// Upper or lower limit of a number.
struct Bar {
  enum class Kind { AtMost, AtLeast };
  std::string name;
  double value = 0, limit = 0;
  Kind kind = Kind::AtMost;

  bool met() const { return kind == Kind::AtMost ? value <= limit : value >= limit; }
};

// "NOT MET permute over memcpy: 0.598, at least 0.600", with enough digits to tell the numbers
// apart.
std::string to_text(const Bar& bar);
base::Json to_json(const Bar& bar);

}  // namespace weft::report
