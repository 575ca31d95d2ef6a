// Runs that save memory, drawn at random, each beside the run that keeps everything: recomputation,
// offload, smaller optimizer state and logits in chunks, over layouts and orders.
#pragma once

#include <map>
#include <string>

#include "tests/train/even_batch_support.h"
#include "tests/train/random_runs_support.h"
#include "tests/train/train_support.h"

namespace weft::train {

// Eight narrow layers with shared experts; `attention`: "", "latent", or "whole queries", which is
// latent without compressed queries.
config::Config savings_config(const std::string& attention);

struct DrawnSavings {
  config::Config plain, saving;  // the rules allow both
  std::string text;              // as a user types them
};
DrawnSavings draw_run_that_saves(Draw& draw, int most_ranks);

// How many of them a test draws: `make soak` asks for more.
int savings_wanted();
// The seed of the draws, printed: WEFT_RANDOM_SEED where it is set, as `make soak` does.
unsigned savings_seed(unsigned otherwise);

// Of every rank, in the steps of a batch that every rank routes evenly.
std::map<int, Peaks> even_peaks(const config::Config& config, devices::DeviceKind device);

// Of one rank, as a dry step has them.
Peaks dry_peaks(const config::Config& config, int rank, devices::DeviceKind device);

// That a dry step of every rank takes as much, by tag.
void expect_predicted(const config::Config& config,
                      const std::map<int, Peaks>& real,
                      devices::DeviceKind device);

// That both runs of a draw have the same losses, norms and weights, and what the saving one takes
// is known beforehand, where its sequences are long enough to be routed evenly.
void expect_saved(const DrawnSavings& drawn, devices::DeviceKind device);

}  // namespace weft::train
