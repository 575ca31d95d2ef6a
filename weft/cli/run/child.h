// Another program run to its end: a peer of a bench.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft::cli {

struct ChildOptions {
  double limit_seconds = 0;                 // time after which it is killed; 0: unlimited
  const std::atomic<bool>* stop = nullptr;  // kills it when set
  // Receives each line of its standard error.
  std::function<void(const std::string& line)> progress = {};
};

struct ChildResult {
  std::string output;  // standard output
  // "exit code 1: <the last lines of its standard error>", or the reason of its kill; nullopt:
  // success.
  std::optional<std::string> failure;
  bool was_ended = false;  // killed at the limit or when told to stop
};

// Runs `arguments` (a program in PATH with its arguments) and waits for its end. The program has a
// process group of its own, which ends as a whole. It also ends with this process, and when
// `progress` throws. SystemError if it cannot be started.
ChildResult run_child(const std::vector<std::string>& arguments, const ChildOptions& options = {});

}  // namespace weft::cli
