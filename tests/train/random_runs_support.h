// Random runs as a user types them: layouts, dispatchers, overlap and data parallelism.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/config/config.h"

namespace weft::train {

// A run's keys as a user types them.
using Words = std::vector<std::pair<std::string, std::string>>;

class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}

  const std::string& any_of(const std::vector<std::string>& values);
  // A power of two.
  std::string size(int most);
  std::string either() { return any_of({"false", "true"}); }

 private:
  std::mt19937 generator_;
};

// Required properties of a layout: a pipeline schedule, or tensor, context and pipeline parallelism
// together.
struct WantedLayout {
  std::string schedule{};
  bool all_axes = false;
  int most_ranks = 16;
};
Words draw_layout(Draw& draw, const WantedLayout& wanted = {});
void draw_dispatcher(Draw& draw, Words& words);
void draw_overlap(Draw& draw, Words& words);
void draw_data_parallel(Draw& draw, Words& words);
// Half of the runs offload some or all optimizer state to the host.
void draw_optimizer_offload(Draw& draw, Words& words);

config::Config with_words(config::Config config, const Words& words);
std::string text_of(const Words& words);
// Value of a key in the words; empty: not named.
std::string value_of(const Words& words, const std::string& key);

// True if the rules accept the run unchanged; a run that they would change is another run. Every
// rule that refuses must give its name, numbers and a fix.
bool is_legal(const config::Config& config);

}  // namespace weft::train
