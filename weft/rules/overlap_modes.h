// Which overlaps a run has, and who decided: a clean start says what is active.
#pragma once

#include <string>
#include <vector>

#include "weft/rules/validate.h"

namespace weft::rules {

struct OverlapMode {
  std::string name;  // "expert-parallel overlap"
  bool on = false;
  bool automatic = false;  // the run decides in its first steps; `on` is false until then
  std::string why;  // "asked for", "off by default", "C5: ..." where a rule decided; with numbers
};

// One entry for every overlap there is, in a fixed order. The verdict must be legal.
std::vector<OverlapMode> overlap_modes(const Verdict& verdict);

// "expert-parallel overlap: on (asked for; 7 of 8 micro-batches have a partner)"
std::string to_line(const OverlapMode& mode);

}  // namespace weft::rules
