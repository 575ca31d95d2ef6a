// Progress of a command in bytes, on a terminal.
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/progress.h"

namespace weft::cli {

// Thrown when the command is asked to stop.
struct Stopped {};

class ByteMeter {
 public:
  explicit ByteMeter(std::uint64_t all);

  // Sets the number of finished bytes. Throws Stopped.
  void at(std::uint64_t bytes);

 private:
  const std::atomic<bool>& stop_ = catch_interrupts();
  ProgressLine line_;
  double all_;
  int drawn_ = -1;  // thousandths
};

}  // namespace weft::cli
