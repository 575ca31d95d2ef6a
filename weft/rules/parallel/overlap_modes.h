// Active overlaps of a run, each with its origin, for the start of a run.
#pragma once

#include <string>
#include <vector>

#include "weft/rules/validate.h"

namespace weft::rules {

struct OverlapMode {
  std::string name;  // "expert-parallel overlap"
  bool on = false;
  bool automatic = false;  // the run decides in its first steps; `on` is false until then
  std::string why;  // "asked for", "off by default", or the deciding rule "C5: ..."; with numbers
};

// One entry per overlap, in fixed order. The verdict must be legal.
std::vector<OverlapMode> overlap_modes(const Verdict& verdict);

// "expert-parallel overlap: on (asked for; 7 of 8 micro-batches have a partner)"
std::string to_line(const OverlapMode& mode);

}  // namespace weft::rules
