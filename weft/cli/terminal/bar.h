// What a bench must reach, and whether it did.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::cli {

// A number that must be at most, or at least, so much.
struct Bar {
  enum class Kind { AtMost, AtLeast };
  std::string name;
  double value = 0, limit = 0;
  Kind kind = Kind::AtMost;

  bool met() const { return kind == Kind::AtMost ? value <= limit : value >= limit; }
};

// "NOT MET permute over memcpy: 0.598, at least 0.600": with as many digits as tell the two apart.
std::string to_text(const Bar& bar);
base::Json to_json(const Bar& bar);

}  // namespace weft::cli
