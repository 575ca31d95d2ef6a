// Machine of a measurement: facts that affect time, without names of its owner.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/json.h"

namespace weft::cli {

struct Machine {
  std::string cpu;
  std::int64_t cores = 0;  // cores available to this process
  std::int64_t memory_bytes = 0;
  std::string compiler;
  std::string build;
  std::string version;  // Weft's version
};

Machine this_machine();

base::Json to_json(const Machine& machine);
std::string to_text(const Machine& machine);

}  // namespace weft::cli
