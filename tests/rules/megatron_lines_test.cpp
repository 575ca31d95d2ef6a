// Whole launch lines for Megatron-LM, judged as pasted.
#include <gtest/gtest.h>

#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::rules {
namespace megatron_lines_test {

struct Line {
  std::string name;
  std::vector<std::string> words;
};

std::vector<Line> lines() {
  const std::string table = base::read_text(WEFT_SOURCE_DIR "/tests/words/megatron_lines.txt");
  std::vector<Line> all;
  for (const std::string& line : base::split(table, '\n')) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    all.push_back({line.substr(0, tab), base::split(line.substr(tab + 1), ' ')});
  }
  return all;
}

TEST(MegatronLines, AreLegalAsPasted) {
  const std::filesystem::path recipes = WEFT_SOURCE_DIR "/recipes";
  const std::vector<Line> all = lines();
  EXPECT_GE(all.size(), 14u);
  for (const Line& line : all) {
    const words::Resolution run =
        words::resolve_what_reads(recipes, line.words, words::Audience::Run);
    for (const std::string& complaint : run.complaints)
      ADD_FAILURE() << line.name << ": " << complaint;
    for (const config::Finding& error : judge(run.config).errors) {
      ADD_FAILURE() << line.name << ": " << config::to_text(error);
    }
  }
}

}  // namespace megatron_lines_test
}  // namespace weft::rules
