// Versions of Weft's libraries, found by name: no NVIDIA library is linked here.
#pragma once

#include <string>
#include <vector>

#include "weft/kernels/gpu_report.h"

namespace weft::cli {

struct LibraryFact {
  std::string name;
  bool found = false;
  std::string version = {};  // empty: unknown
  std::string use = {};      // purpose in Weft
};

std::vector<LibraryFact> find_libraries(const kernels::GpuReport& gpus);

// True if PATH has this program.
bool has_program(const std::string& name);

}  // namespace weft::cli
