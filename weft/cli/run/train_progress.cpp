#include "weft/cli/run/train_progress.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/cli/terminal/progress.h"

namespace weft::cli {

std::string progress_text(const train::StepRecord& record, std::optional<double> left) {
  constexpr int kColumns = 79, kWidestBar = 24, kSmallestBar = 5, kBrackets = 3;
  std::string numbers = base::text("step {}/{}  loss {:.4f}  {:.0f} tokens/s",
                                   record.iteration,
                                   record.iterations,
                                   record.loss,
                                   record.tokens_per_second);
  if (left && record.iteration < record.iterations)
    numbers += base::text("  {} left", duration_text(*left));
  const int width = std::min(kColumns - kBrackets - static_cast<int>(numbers.size()), kWidestBar);
  if (width < kSmallestBar) return numbers;
  const double share =
      static_cast<double>(record.iteration) / static_cast<double>(record.iterations);
  return base::text("{} {}", bar(share, width), numbers);
}

}  // namespace weft::cli
