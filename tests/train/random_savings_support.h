// Random runs that save memory, each beside a run without savings: recomputation, offload, smaller
// optimizer state and chunked logits, over layouts and orders.
#pragma once

#include <map>
#include <string>

#include "tests/train/even_batch_support.h"
#include "tests/train/random_runs_support.h"
#include "tests/train/train_support.h"

namespace weft::train {

// Eight narrow layers with shared experts. `attention`: "", "latent", or "whole queries" (latent
// without query compression).
config::Config savings_config(const std::string& attention);

struct DrawnSavings {
  config::Config plain, saving;  // the rules allow both
  std::string text;              // as a user types it
};
DrawnSavings draw_run_that_saves(Draw& draw, int most_ranks);

// Number of draws per test.
int savings_wanted();
// Seed of the draws, printed. WEFT_RANDOM_SEED, which `make soak` sets, overrides it.
unsigned savings_seed(unsigned otherwise);

// Peaks of every rank, in steps that route evenly.
std::map<int, Peaks> even_peaks(const config::Config& config, devices::DeviceKind device);

// Peaks of one rank in a dry step.
Peaks dry_peaks(const config::Config& config, int rank, devices::DeviceKind device);

// Expects that a dry step of every rank takes equally much, by tag.
void expect_predicted(const config::Config& config,
                      const std::map<int, Peaks>& real,
                      devices::DeviceKind device);

// Expects that both runs of a draw have equal losses, norms and weights. Also expects that the dry
// step predicts the saving run's memory, if its sequences are long enough for even routing.
void expect_saved(const DrawnSavings& drawn, devices::DeviceKind device);

}  // namespace weft::train
