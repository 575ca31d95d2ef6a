// Trial start of a run: rank 0 of its twin (plan/tuning/twin.h) trains two steps in a pretended
// world (runtime.backend=fake). A recipe for a thousand GPUs takes seconds.
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
  Missing,  // legal, but this build lacks a part; the twin trained without it
  Illegal,  // the rules refuse it
  Failed,   // the twin did not train, or only without a part that this build has
};
std::string_view word(StartState state);

struct StartRequest {
  config::Config config;          // config of the recipe; not judged
  std::filesystem::path run_dir;  // for the files of the run
  const std::atomic<bool>* stop;  // set it to end after the current step
};

struct Start {
  StartState state = StartState::Started;
  // Missing: names of the parts. Illegal: the rules. Failed: the error.
  std::vector<std::string> why;
  double seconds = 0;
};

// nullopt: stopped.
std::optional<Start> try_start(const StartRequest& request);

}  // namespace weft::measure
