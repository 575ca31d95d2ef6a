// Published measurements: tables of runs with their settings, each as a config to price.
//
// Columns follow Megatron Bridge's performance tables joined with the settings of their recipes:
// release, model, system, precision, n_gpus, gbs, mbs, seq_len, tp, pp, cp, vp, ep, etp, fsdp,
// routing, match, dispatcher_backend, a2a_overlap, delay_wgrad, cuda_graph_impl, cuda_graph_scope,
// recompute_modules, recompute_num_layers, pp_layout, tokens_per_s_gpu, tflops_per_gpu,
// gflop_per_token, note, doubt. A column may be missing or empty if it has a usual value; other
// columns are ignored. Tables of single runs with `card`, `seq`, `parallelism` ("TP2/PP8/EP64") and
// `recipe_...` are accepted too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

struct PublishedRun {
  int line = 0;
  std::string release, model, system, precision, note;  // as written in the table
  std::string gpu;                                      // "gb200"
  config::Config config;
  double tflops = 0;       // published, per GPU
  std::string doubt = {};  // reason for doubts about the row; empty: none
  // The table's own FLOPs per token, if given: releases count some models differently.
  std::optional<double> gflop_per_token = std::nullopt;
};

struct PublishedTable {
  std::vector<PublishedRun> runs;
  std::vector<std::string> left_out;  // "line 7: no tflops_per_gpu": rows that cannot be priced
  // Models whose rows calibrate hardware files; initially those of the shipped files.
  std::vector<std::string> fitted_models;

  bool is_fitted(const PublishedRun& run) const;
};

// Config of a model by its name in a table, without a layout. ConfigError with the known names.
using ModelNamed = std::function<config::Config(const std::string& name)>;

// ConfigError if the file is no such table.
PublishedTable parse_published(const std::string& content,
                               const std::string& named,
                               const ModelNamed& model_named);

// Name among `names` that `written` means. Only letters and digits count, without case
// ("Qwen3_30B_a3B" is qwen3_30b_a3b); a prefix counts if it is unique. Empty: none.
std::string model_meant(const std::string& written, const std::vector<std::string>& names);

}  // namespace weft::plan
