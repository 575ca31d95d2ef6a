// What `weft plan` does besides a search: hold the model against published runs, price one run.
#pragma once

#include <string>

#include "weft/cli/arguments.h"

namespace weft::cli {

struct PlanOptions {
  RunArguments run;
  std::string gpu;       // a kind, or a file; empty: hardware.gpu
  std::string validate;  // a table of published runs
  bool fit = false;
  std::vector<std::string> fit_models;  // empty: those of the shipped files
  std::string write;                    // folder for fitted hardware files
  bool simulate = false;
  std::string trace;  // file for the time line
  double imbalance = 1;
};

int plan_validate(const PlanOptions& options);
int plan_simulate(const PlanOptions& options);

}  // namespace weft::cli
