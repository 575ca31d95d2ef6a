#include "tests/schedule/golden_support.h"

#include <filesystem>

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::schedule {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string& line : base::split(text, '\n')) {
    if (!line.empty() && !line.starts_with('#')) lines.push_back(std::move(line));
  }
  return lines;
}

// Lines only in `before` with '-', lines only in `after` with '+', around their longest common
// part.
std::string diff(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  const std::size_t n = before.size(), m = after.size();
  std::vector<std::vector<std::size_t>> common(n + 1, std::vector<std::size_t>(m + 1, 0));
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      common[i][j] = before[i] == after[j] ? common[i + 1][j + 1] + 1
                                           : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string text;
  for (std::size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && before[i] == after[j]) {
      ++i, ++j;
    } else if (j == m || (i < n && common[i + 1][j] >= common[i][j + 1])) {
      text += base::text("  line {:>3} - {}\n", i + 1, before[i]);
      ++i;
    } else {
      text += base::text("  line {:>3} + {}\n", j + 1, after[j]);
      ++j;
    }
  }
  return text;
}

}  // namespace

::testing::AssertionResult matches_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path golden =
      std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/schedules" / name;
  const std::string known = std::filesystem::exists(golden) ? base::read_text(golden) : "";
  const std::string difference = diff(lines_of(known), lines_of(text));
  if (difference.empty()) return ::testing::AssertionSuccess();
  const std::filesystem::path fresh = std::filesystem::path(::testing::TempDir()) / name;
  base::write_whole(fresh, text);
  return ::testing::AssertionFailure()
         << "the schedule differs from " << golden.string() << ":\n"
         << difference << "if that is meant: cp " << fresh.string() << " " << golden.string();
}

}  // namespace weft::schedule
