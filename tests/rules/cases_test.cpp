// Every case of cases.txt is settled as the file says.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::rules {
namespace cases_test {

// A case as it is written, with the line of its name.
struct WrittenCase {
  std::size_t line = 0;
  std::string name, words, errors, warnings, automatic, after;
};

std::string* field_of(WrittenCase& written, const std::string& key) {
  if (key == "words") return &written.words;
  if (key == "errors") return &written.errors;
  if (key == "warnings") return &written.warnings;
  if (key == "automatic") return &written.automatic;
  return key == "after" ? &written.after : nullptr;
}

std::vector<WrittenCase> written_cases() {
  std::vector<WrittenCase> all;
  std::string with;
  std::size_t number = 0;
  const std::string text = base::read_text(WEFT_SOURCE_DIR "/tests/rules/cases.txt");
  for (const std::string& line : base::split(text, '\n')) {
    ++number;
    if (line.starts_with("# ---")) with.clear();
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    const std::string key = line.substr(0, colon);
    const std::string value = colon == line.npos ? "" : line.substr(colon + 2);
    if (key == "with") {
      with = value + " ";
    } else if (key == "case") {
      all.push_back({.line = number, .name = value, .words = with});
    } else if (std::string* field = all.empty() ? nullptr : field_of(all.back(), key)) {
      *field += value;
    } else {
      ADD_FAILURE() << "line " << number << " is no line of a case: " << line;
    }
  }
  return all;
}

TEST(Rules, SettleEveryCaseAsItIsWritten) {
  const std::vector<WrittenCase> all = written_cases();
  EXPECT_GT(all.size(), 180u);
  for (const WrittenCase& written : all) {
    SCOPED_TRACE(base::text("tests/rules/cases.txt:{}", written.line));
    expect_settled({.name = written.name,
                    .words = written.words,
                    .errors = written.errors,
                    .warnings = written.warnings,
                    .automatic = written.automatic,
                    .after = written.after});
  }
}

}  // namespace cases_test
}  // namespace weft::rules
