// Report of `weft tune`, as text, JSON and files.
#pragma once

#include <filesystem>
#include <string>

#include "weft/base/json.h"
#include "weft/measure/runs/tuner.h"

namespace weft::cli {

struct TuneReport {
  std::string name;  // recipe; may be empty
  const measure::TuneRequest& request;
  const measure::Tuning& tuning;
  std::filesystem::path recipe;  // file of the best setting
};

// "kept      44.1 -> 40.2 ms (noise 0.6, predicted 39.5)  comm_overlap...=true"
std::string to_line(const measure::Trial& trial);
std::string to_text(const TuneReport& report);
std::string to_markdown(const TuneReport& report);
base::Json to_json(const TuneReport& report);

}  // namespace weft::cli
