#include "weft/rules/rule_pages.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/rule.h"

namespace weft::rules {
namespace rule_pages_test {

TEST(RulesPage, CommittedPageIsTheGeneratedOne) {
  EXPECT_TRUE(base::read_text(WEFT_SOURCE_DIR "/docs/rules.md") == markdown_rules())
      << "run: build/release/bin/weft check --markdown > docs/rules.md";
}

TEST(RulesPage, NamesEveryRuleAndAdvice) {
  const std::string page = markdown_rules();
  for (const Rule& rule : rules()) {
    EXPECT_NE(page.find("| " + std::string(rule.id) + " "), std::string::npos) << rule.id;
  }
  for (const Advice& advice : all_advice()) {
    EXPECT_NE(page.find("| " + std::string(advice.id) + " |"), std::string::npos) << advice.id;
  }
}

TEST(Explain, TellsTheStoryByAnyId) {
  EXPECT_NE(explain("B2").find("sequence_parallel"), std::string::npos);
  EXPECT_EQ(explain("MP-1"), explain("B2"));
  EXPECT_EQ(explain("tc-58a"), explain("TC-58a"));
  EXPECT_NE(explain("W31").find("cannot be read"), std::string::npos);
  EXPECT_NE(explain("A1").find("measured"), std::string::npos);
}

TEST(Explain, ShowsWhatATensorParallelPresetHolds) {
  const char* name = "userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192";
  const std::string text = explain(name);
  for (const char* row : {"qkv_wgrad  bulk, 24 SMs, cga size 2\n",
                          "proj_fprop pipeline, 24 SMs, cga size 2, SM margin, 4 splits\n",
                          "fc2_dgrad  ring_exchange, 1 SM, cga size 1\n"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row << text;
  }
  const base::Json slots = explain_json(name)["slots"];
  EXPECT_EQ(slots.size(), 10u);
  EXPECT_EQ(slots["fc2_fprop"]["num_sm"], 16);
  EXPECT_EQ(slots["fc2_fprop"]["num_splits"], 4);
  EXPECT_EQ(slots["fc2_fprop"]["set_sm_margin"], true);
  const base::Json lora = explain_json("userbuffers_fp8_h100_h16384_tp4_mbs1_seqlen2048_lora");
  EXPECT_EQ(lora["slots"]["qkv_fprop"]["aggregate"], true);
  EXPECT_EQ(lora["slots"]["fc1_wgrad"]["method"], "none");
}

TEST(Explain, SuggestsTheNearestId) {
  EXPECT_TRUE(
      any_names(complaints_of([] { explain("TC-11l"); }), {"no rule 'TC-11l'", "did you mean"}));
  EXPECT_TRUE(any_names(complaints_of([] { explain(std::string(1000, 'x')); }), {"docs/rules.md"}));
}

}  // namespace rule_pages_test
}  // namespace weft::rules
