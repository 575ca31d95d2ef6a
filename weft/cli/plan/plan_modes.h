// Modes of `weft plan`: search layouts, validate against published runs, price one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/arguments.h"
#include "weft/cli/plan/plan_model.h"
#include "weft/plan/hardware/routing.h"

namespace weft::cli {

// Options of a search. The words of the run give its model and pinned keys.
struct SearchOptions {
  std::int64_t gpus = 0;
  std::int64_t batch = 0;     // 0: 8 sequences per GPU
  std::int64_t sequence = 0;  // 0: the model's
  std::string precision;      // empty: bf16; on processor cores the model's
  std::int64_t top = 10;
  std::string explain;  // a place in the ranking, or keys; empty: off
  bool overrides = false;
  bool is_safe = false;   // nothing on the host, no graphs, spare memory
  bool is_fresh = false;  // ignores kept searches
};

struct PlanOptions {
  RunArguments run;
  SearchOptions search;
  std::optional<PlanModel> model;  // from a pasted line; nullopt: the first word names it
  std::string gpu;                 // a kind of GPU, or a file; empty: hardware.gpu
  std::string program;             // priced program; empty: the run's default
  std::string validate;            // table of published runs
  bool fit = false;
  std::vector<std::string> fit_models;  // empty: models of the shipped files
  std::string write;                    // folder for fitted hardware files, or file for a recipe
  bool simulate = false;
  std::string trace;  // trace file
  base::Overwrite overwrite = base::Overwrite::No;
  std::string imbalance = "balanced";
};

// Routing of rows. "balanced"; a number: rows of the busiest expert-parallel rank over the mean;
// "skew:S": the n-th expert gets n^-S of the first one's rows; a run folder: as recorded in its
// metrics.jsonl. ConfigError for anything else. Warns if that run had another model.
plan::Routing asked_routing(const std::string& imbalance, const config::ModelConfig& model);

// Returns the options, so that other modes can exclude them.
std::vector<CLI::Option*> add_search_options(CLI::App& command, SearchOptions& options);
// Exit code; 1: the model fits nowhere.
int plan_search(const PlanOptions& options);
int plan_validate(const PlanOptions& options);
int plan_simulate(const PlanOptions& options);

}  // namespace weft::cli
