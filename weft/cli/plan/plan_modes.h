// What `weft plan` does: search layouts, hold the model against published runs, price one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/arguments.h"
#include "weft/cli/plan/plan_model.h"
#include "weft/plan/hardware/routing.h"

namespace weft::cli {

// Of a search. Its model, and keys that are kept in every layout, are among the words of the run.
struct SearchOptions {
  std::int64_t gpus = 0;
  std::int64_t batch = 0;     // 0: 8 sequences a GPU
  std::int64_t sequence = 0;  // 0: the model's
  std::string precision;      // empty: bf16; on processor cores what the model is in
  std::int64_t top = 10;
  std::string explain;  // empty: not asked for; a place in the ranking, or keys
  bool overrides = false;
  bool is_safe = false;   // nothing on the host, no graphs, memory to spare
  bool is_fresh = false;  // a search that was kept does not count
};

struct PlanOptions {
  RunArguments run;
  SearchOptions search;
  std::optional<PlanModel> model;  // of a pasted line; nullopt: the first word names it
  std::string gpu;                 // a kind, or a file; empty: hardware.gpu
  std::string program;             // whose; empty: the usual one of the run
  std::string validate;            // a table of published runs
  bool fit = false;
  std::vector<std::string> fit_models;  // empty: those of the shipped files
  std::string write;                    // folder for fitted hardware files, or file for a recipe
  bool simulate = false;
  std::string trace;  // file for the time line
  base::Overwrite overwrite = base::Overwrite::No;
  std::string imbalance = "balanced";
};

// How rows are spread: "balanced"; a number, the rows of the busiest expert-parallel rank over the
// mean; "skew:S", the n-th expert gets n^-S of the first one's rows; or a run folder, whose
// metrics.jsonl says what it was. ConfigError for anything else. Warns where that run was of
// another model than the one that is planned.
plan::Routing asked_routing(const std::string& imbalance, const config::ModelConfig& model);

// Gives the options back, so that other modes can exclude them.
std::vector<CLI::Option*> add_search_options(CLI::App& command, SearchOptions& options);
// The exit code: 1 where the model fits nowhere.
int plan_search(const PlanOptions& options);
int plan_validate(const PlanOptions& options);
int plan_simulate(const PlanOptions& options);

}  // namespace weft::cli
