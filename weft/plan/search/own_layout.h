// The recipe's own layout, for comparison with a search.
#pragma once

#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/plan/price/price.h"
#include "weft/plan/published/measured_runs.h"
#include "weft/plan/search/layout_space.h"

namespace weft::plan {

struct OwnLayout {
  std::string name = {};            // name of the recipe or of its layout
  bool is_line = false;             // pasted words
  config::Config config;            // settled by the rules
  std::string layout;               // "tp 2, pp 8, vpp 4, cp 1, ep 32, etp 1, mbs 1, alltoall"
  std::string refusal = {};         // first rule that refuses it here; empty: legal
  std::optional<Price> price = {};  // set if legal, even if it does not fit
};

// `asked`: the recipe with its layout, and with GPUs, batch and format of the question. Priced as
// by `weft plan --simulate`.
OwnLayout own_layout(const config::Config& asked, const LayoutSpace& space);

// "Your recipe (qwen3_235b_a22b): tp 2, ...
// 18966 ms, 255.8 TFLOP/s/GPU (±7 %, ...); the best below: ..., 1.70 times as fast".
// `best`: nullptr if nothing fits.
std::string to_text(const OwnLayout& own, const Trust& trust, const Price* best);
base::Json to_json(const OwnLayout& own, const Trust& trust, const Price* best);

}  // namespace weft::plan
