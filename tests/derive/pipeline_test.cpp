#include "weft/derive/pipeline.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/text.h"

namespace weft::derive {

using namespace config;
namespace pipeline_test {

ModelConfig model_of(int layers, int pp, int vpp, std::string stages = "") {
  ModelConfig model;
  model.num_layers = layers;
  model.pipeline_model_parallel_size = pp;
  if (vpp > 1) model.virtual_pipeline_model_parallel_size = vpp;
  model.pipeline_model_parallel_layout = std::move(stages);
  return model;
}

// "E2|1|0|1L": contents of each stage.
std::string text_of(const Stages& stages) {
  std::string text;
  int layer = 0;
  for (const Stage& stage : stages.all) {
    if (!text.empty()) text += '|';
    EXPECT_EQ(stage.first_layer, layer);
    layer += stage.layers;
    text += base::text("{}{}{}", stage.embedding ? "E" : "", stage.layers, stage.loss ? "L" : "");
  }
  return text;
}

std::string stages(int layers, int pp, int vpp, std::string layout = "") {
  const Stages result = stages_of(model_of(layers, pp, vpp, std::move(layout)));
  EXPECT_EQ(result.complaints, std::vector<std::string>{});
  return text_of(result);
}

std::vector<std::string> complaints(int layers, int pp, int vpp, std::string layout = "") {
  const Stages result = stages_of(model_of(layers, pp, vpp, std::move(layout)));
  EXPECT_TRUE(result.all.empty());
  return result.complaints;
}

TEST(Stages, AreEqualUnlessTheLayoutSaysOtherwise) {
  EXPECT_EQ(stages(4, 1, 1), "E4L");
  EXPECT_EQ(stages(8, 4, 1), "E2|2|2|2L");
  EXPECT_EQ(stages(8, 2, 2), "E2|2|2|2L");
  EXPECT_TRUE(
      any_names(complaints(6, 4, 1), {"num_layers = 6", "4 equal stages", "4*1", "layout"}));
  EXPECT_TRUE(any_names(complaints(8, 2, 3), {"6 equal stages", "2*3"}));
  config::ModelConfig first = model_of(8, 1, 1);
  first.num_layers_in_first_pipeline_stage = 3;
  EXPECT_TRUE(any_names(stages_of(first).complaints,
                        {"first_pipeline_stage = 3", "pipeline_model_parallel_size = 1"}));
  first.pipeline_model_parallel_size = 4;
  EXPECT_TRUE(any_names(stages_of(first).complaints, {"less 3 of the first", "leaves 5 layers"}));
}

TEST(Stages, FollowTheLayoutText) {
  EXPECT_EQ(stages(3, 2, 1, "Et|ttL"), "E1|2L");
  EXPECT_EQ(stages(5, 4, 1, "E|ttt||ttL"), "E0|3|0|2L");
  EXPECT_EQ(stages(2, 4, 1, "E|t|t|L"), "E0|1|1|0L");
  EXPECT_EQ(stages(7, 2, 2, "Et*3|(tt|)*2L"), "E3|2|2|0L");
  EXPECT_EQ(stages(6, 2, 1, "E,t t,t|(t*3)L"), "E3|3L");
  EXPECT_EQ(stages(12, 3, 1, "E(t(t*2))*2|(tt)*2|ttL"), "E6|4|2L");
  EXPECT_EQ(stages(62, 16, 2, "Et*3|(tt|)*29,t|L"), [] {
    std::string text = "E3";
    for (int i = 0; i < 29; ++i) text += "|2";
    return text + "|1|0L";
  }());
}

TEST(Stages, WrongLayoutTextsAreExplained) {
  const auto says = [](const std::string& layout, std::initializer_list<std::string> words) {
    EXPECT_TRUE(any_names(complaints(4, 2, 1, layout), words)) << layout;
  };
  says("Ett|t|tL", {"3 stages", "2*1 = 2"});
  says("tt|ttL", {"E (embedding)", "once, and first"});
  says("Ett|EttL", {"E (embedding)"});
  says("ttE|ttL", {"E (embedding)"});
  says("Ett|tt", {"L (loss)", "once, and last"});
  says("EttL|ttL", {"L (loss)"});
  says("Ett|Ltt", {"L (loss)"});
  says("Et|ttL", {"3 layers (t)", "num_layers = 4"});
  says("Ett|ttmL", {"1 multi-token prediction layers (m)", "mtp_num_layers = 0"});
  says("Ett|ttXL", {"at character 7", "use E, t, m, L"});
  says("E(tt|ttL", {"'(' without ')'"});
  says("Ett)|ttL", {"')' without '('"});
  says("Et*|ttL", {"'*' wants a number"});
  says("Et*0|ttL", {"'*' wants a number"});
  says("Et*99999999999999999999|ttL", {"'*' wants a number"});
  says("E(t*1000)*1000|L", {"too many symbols"});
  says(std::string(40, '(') + "t", {"nest too deep"});
  says("*2Ett|ttL", {"at character 1"});
  says("||", {"E (embedding)"});
}

TEST(Stages, AllComplaintsComeAtOnce) { EXPECT_EQ(complaints(4, 2, 1, "t|t|t").size(), 4u); }

TEST(Stages, SpacesAloneAreNoStages) { EXPECT_FALSE(complaints(4, 2, 1, " , ").empty()); }

}  // namespace pipeline_test
}  // namespace weft::derive
