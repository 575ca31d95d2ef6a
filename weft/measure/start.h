// Does a run start? Rank 0 of its twin (plan/twin.h) trains two steps in a pretended world
// (runtime.backend=fake), so that a recipe for a thousand GPUs is tried within seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::measure {

inline constexpr std::int64_t kStartSteps = 2;

enum class StartState {
  Started,
  Missing,  // legal, and this build has not every part; without those the twin trained
  Illegal,  // the rules refuse it
  Failed,   // the twin did not train, or only without a part that this build has
};
std::string_view word(StartState state);

struct StartRequest {
  config::Config config;          // of the recipe, not judged
  std::filesystem::path run_dir;  // for the files of the run
  const std::atomic<bool>* stop;  // set to end after the current step
};

struct Start {
  StartState state = StartState::Started;
  // Missing: the parts by name. Illegal: the rules. Failed: what went wrong.
  std::vector<std::string> why;
  double seconds = 0;
};

// Nothing where it was stopped.
std::optional<Start> try_start(const StartRequest& request);

}  // namespace weft::measure
