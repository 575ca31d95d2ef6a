#include "weft/cli/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "weft/base/text.h"
#include "weft/base/visible.h"

namespace weft::cli {

ProgressLine::ProgressLine(LinesTo lines)
    : lines_(lines), terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%s", base::visible(text).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::log(const std::string& line) {
  clear();
  switch (lines_) {
    case LinesTo::Output:
      std::cout << base::without_controls(line + "\n") << std::flush;
      break;
    case LinesTo::Errors:
      std::fprintf(stderr, "%s\n", base::without_controls(line).c_str());
      break;
  }
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

std::string bar(double share, int width) {
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * width);
  return base::text("[{:<{}}]", std::string(full, '#'), width);
}

}  // namespace weft::cli
