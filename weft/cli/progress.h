// A progress line on standard error: only on a terminal, redrawn in place, out of the way of log
// lines.
#pragma once

#include <string>

namespace weft::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  // A line that stays, above the progress line.
  void log(const std::string& line);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
};

// "[#####     ]"
std::string bar(double share, int width);

}  // namespace weft::cli
