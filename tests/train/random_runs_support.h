// Runs drawn at random: layouts, dispatchers, overlap and data parallelism, as a user types them.
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

// What a layout must have: this order of a pipeline, where one is named, or all of tensor, context
// and pipeline parallelism.
struct WantedLayout {
  std::string schedule{};
  bool all_axes = false;
  int most_ranks = 16;
};
Words draw_layout(Draw& draw, const WantedLayout& wanted = {});
void draw_dispatcher(Draw& draw, Words& words);
void draw_overlap(Draw& draw, Words& words);
void draw_data_parallel(Draw& draw, Words& words);
// Half of the runs keep some or all of the optimizer's state in host memory.
void draw_optimizer_offload(Draw& draw, Words& words);

config::Config with_words(config::Config config, const Words& words);
std::string text_of(const Words& words);
// What the words say of a key; empty where they do not name it.
std::string value_of(const Words& words, const std::string& key);

// Whether the rules let it run as it is: what they would change is another run. A rule that refuses
// says its name, the numbers that it does not like, and what to do.
bool is_legal(const config::Config& config);

}  // namespace weft::train
