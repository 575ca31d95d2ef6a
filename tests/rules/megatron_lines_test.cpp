// Whole launch lines for Megatron-LM and its harness, judged as pasted.
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/rules/validate.h"
#include "weft/words/megatron/shell_words.h"
#include "weft/words/resolution.h"

namespace weft::rules {
namespace megatron_lines_test {

struct Line {
  std::string name;
  std::vector<std::string> words;
};

// Brackets are part of a word here: scripts quote them.
std::vector<std::string> words_of(const std::string& line) {
  std::string escaped;
  for (const char c : line) {
    if (c == '(' || c == ')' || c == '|') escaped += '\\';
    escaped += c;
  }
  return words::shell_words(escaped);
}

std::vector<Line> lines(const std::string& file) {
  std::vector<Line> all;
  for (const std::string& line :
       base::split(base::read_text(WEFT_SOURCE_DIR "/tests/words/" + file), '\n')) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    all.push_back({line.substr(0, tab), words_of(line.substr(tab + 1))});
  }
  return all;
}

std::vector<std::string> errors_of(const Line& line) {
  try {
    const words::Resolution run =
        words::resolve_what_reads(WEFT_SOURCE_DIR "/recipes", line.words, words::Audience::Run);
    std::vector<std::string> errors = run.complaints;
    for (const config::Finding& error : judge(run.config).errors) {
      errors.push_back(config::to_text(error));
    }
    return errors;
  } catch (const base::ConfigError& error) {
    return error.complaints();
  }
}

struct Outcome {
  double accepted = 0;  // share of the lines
  std::string refused;  // those that are not, with their errors
};
Outcome judged(const std::vector<Line>& all) {
  std::size_t accepted = 0;
  Outcome outcome;
  for (const Line& line : all) {
    const std::vector<std::string> errors = errors_of(line);
    accepted += errors.empty() ? 1 : 0;
    for (const std::string& error : errors) {
      outcome.refused += base::text("{}: {}\n", line.name, error);
    }
  }
  outcome.accepted = static_cast<double>(accepted) / static_cast<double>(all.size());
  return outcome;
}

TEST(MegatronLines, NineteenOfTwentyAreLegalAsPasted) {
  const std::vector<Line> all = lines("megatron_lines.txt");
  EXPECT_GE(all.size(), 31u);
  const Outcome outcome = judged(all);
  EXPECT_GE(outcome.accepted, 0.95) << outcome.refused;
}

TEST(MegatronLines, NineOfTenLinesOfTheHarnessAreLegalAsPasted) {
  const std::vector<Line> all = lines("harness_lines.txt");
  EXPECT_GE(all.size(), 45u);
  const Outcome outcome = judged(all);
  EXPECT_GE(outcome.accepted, 0.9) << outcome.refused;
}

}  // namespace megatron_lines_test
}  // namespace weft::rules
