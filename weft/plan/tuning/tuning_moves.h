// Changes that a tuner may make to a run: the model, its data and its global batch stay.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// Order: only the order of the nodes changes, so their costs are known.
enum class MoveKind { Order, Work };

struct TuningMove {
  std::vector<std::pair<std::string, std::string>> sets;  // keys and values in the user's syntax
  MoveKind kind = MoveKind::Work;

  bool operator==(const TuningMove&) const = default;
};

// "comm_overlap.delay_wgrad_compute=true"; several keys are separated by blanks.
std::string to_text(const TuningMove& move);

// Moves worth a try on this run, for its kinds of communication. The rules decide on legality.
std::vector<TuningMove> tuning_moves(const config::Config& config);

// Kind of a change of this key alone.
MoveKind kind_of_change(std::string_view key);

// Config after the move; ConfigError for an invalid key or value.
config::Config with_move(const config::Config& config, const TuningMove& move);

}  // namespace weft::plan
