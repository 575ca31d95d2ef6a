// Another program, run to its end: a peer of a bench.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft::cli {

struct ChildOptions {
  double limit_seconds = 0;                 // it is ended when it takes longer; 0: it may
  const std::atomic<bool>* stop = nullptr;  // set: it is ended
  std::function<void(const std::string& line)> progress = {};  // each line of its standard error
};

struct ChildResult {
  std::string output;  // its standard output
  // "exit code 1: <the last lines of its standard error>", or why it was ended; none: it succeeded.
  std::optional<std::string> failure;
  bool was_ended = false;  // by the limit, or told to stop
};

// Runs `arguments` (a program that PATH finds, and what it gets) and waits for its end. What it
// started ends with it: it has a process group of its own, which is ended as a whole. It ends where
// this process does, and with whatever `progress` throws. SystemError where it cannot be started.
ChildResult run_child(const std::vector<std::string>& arguments, const ChildOptions& options = {});

}  // namespace weft::cli
