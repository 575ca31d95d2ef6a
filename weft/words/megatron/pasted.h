// A command line as people paste it: the program that started it elsewhere, `cfg.` before a key,
// spaces around `=`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/words/megatron/launch.h"

namespace weft::words {

// The words that are meant, and where each begins among those typed, from 1.
struct MeantWords {
  std::vector<std::string> words;
  std::vector<int> places;
  std::string program;  // the script or module that the line starts; empty: none
  Launch launch;        // what starts it
};

// Leaves out a start such as `uv run python scripts/performance/run_script.py` or
// `torchrun --nproc_per_node 8 script.py`, also behind flags for Weft, which stay. Of the number of
// processes `world=8` is left, where the line says it. Takes a line apart that was quoted as one
// word. Takes `cfg.` off keys, and joins `a.b = c`.
MeantWords meant_words(std::span<const std::string> typed);

}  // namespace weft::words
