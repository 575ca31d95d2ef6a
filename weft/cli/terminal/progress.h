// A progress line on standard error: only on a terminal, redrawn in place, out of the way of the
// lines of a log.
#pragma once

#include <string>

namespace weft::cli {

// Where lines that stay go: to standard output where people read the log of a run, to standard
// error beside a result.
enum class LinesTo { Output, Errors };

class ProgressLine {
 public:
  explicit ProgressLine(LinesTo lines = LinesTo::Errors);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  // A line that stays, above the progress line. Written at once; whether it arrives is not the
  // caller's business: nobody may be reading any more.
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
