// The libraries that Weft uses, asked for their versions by name: none of NVIDIA's is linked here.
#pragma once

#include <string>
#include <vector>

#include "weft/kernels/gpu_report.h"

namespace weft::cli {

struct LibraryFact {
  std::string name;
  bool found = false;
  std::string version = {};  // empty where it is not told
  std::string use = {};      // what Weft does with it
};

std::vector<LibraryFact> find_libraries(const kernels::GpuReport& gpus);

// Whether PATH has a program of that name.
bool has_program(const std::string& name);

}  // namespace weft::cli
