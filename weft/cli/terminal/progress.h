// Progress line on standard error: terminals only, redrawn in place, separate from log lines.
#pragma once

#include <string>

namespace weft::cli {

// Target of permanent lines: standard output for the log of a run, standard error beside a result.
enum class LinesTo { Output, Errors };

class ProgressLine {
 public:
  explicit ProgressLine(LinesTo lines = LinesTo::Errors);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  // Prints a permanent line above the progress line, immediately. Write errors are ignored: the
  // reader may be gone.
  void log(const std::string& line);
  void clear();

 private:
  LinesTo lines_;
  bool terminal_;
  bool drawn_ = false;
};

// "[#####     ]"
std::string bar(double share, int width);

}  // namespace weft::cli
