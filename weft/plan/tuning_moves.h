// What a tuner may change about a run: settings that leave the model, its data and its global batch
// as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// Whether the nodes of a step stay and only their order changes: then what they cost is known.
enum class MoveKind { Order, Work };

struct TuningMove {
  std::vector<std::pair<std::string, std::string>> sets;  // keys and values, as a user writes them
  MoveKind kind = MoveKind::Work;

  bool operator==(const TuningMove&) const = default;
};

// "comm_overlap.delay_wgrad_compute=true"; of several keys, with a blank between them.
std::string to_text(const TuningMove& move);

// Those worth a try on this run: kinds of communication that it has. Which are legal, the rules
// say.
std::vector<TuningMove> tuning_moves(const config::Config& config);

// Of a change of this key alone.
MoveKind kind_of_change(std::string_view key);

// The config after the move; ConfigError where a key or a value is none.
config::Config with_move(const config::Config& config, const TuningMove& move);

}  // namespace weft::plan
