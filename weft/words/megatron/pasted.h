// Pasted command line: with the program that started it elsewhere, `cfg.` before keys, and spaces
// around `=`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/words/megatron/launch.h"

namespace weft::words {

// Words to read, and the index of each among the typed words, from 1.
struct MeantWords {
  std::vector<std::string> words;
  std::vector<int> places;
  std::string program;  // script or module that the line starts; empty: none
  Launch launch;        // launcher of the line
};

// Removes a launch such as `uv run python scripts/performance/run_script.py` or `torchrun
// --nproc_per_node 8 script.py`, also after flags for Weft, which stay. A given number of processes
// becomes `world=8`. Splits a line that was quoted as one word. Removes `cfg.` from keys, and joins
// `a.b = c`.
MeantWords meant_words(std::span<const std::string> typed);

}  // namespace weft::words
