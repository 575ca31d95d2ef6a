// Explicit slots of tensor-parallel overlap.
#include "weft/rules/parallel/tp_slots.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/complaints_support.h"
#include "weft/rules/rule_pages.h"
#include "weft/rules/validate.h"

namespace weft::rules {
namespace tp_slots_test {

using base::Json;

Json printed() { return explain_json(tp_presets().front().name)["slots"]; }

// Findings of C9 on the value.
std::vector<std::string> refusals(const std::string& value) {
  config::Config config;
  config.comm_overlap.tp_comm_overlap_cfg = value;
  std::vector<std::string> said;
  for (const config::Finding& error : judge(config).errors) {
    if (error.id == "C9") said.push_back(error.message);
  }
  return said;
}

TEST(TpSlots, WhatIsPrintedOfAPresetCanBeGiven) {
  for (const TpPreset& preset : tp_presets()) {
    const Json slots = explain_json(preset.name)["slots"];
    for (const int indent : {-1, 2}) {
      const GivenSlots given = read_slots(slots.dump(indent));
      EXPECT_EQ(given.faults, std::vector<std::string>{}) << preset.name;
      EXPECT_EQ(to_json(given.slots), slots) << preset.name;
    }
    EXPECT_EQ(refusals(slots.dump()), std::vector<std::string>{}) << preset.name;
  }
}

TEST(TpSlots, EveryFaultIsNamed) {
  Json slots = printed();
  slots.erase("qkv_fprop");
  slots["qkv_fprob"] = 1;
  slots["qkv_dgrad"]["num_sm"] = 0;
  slots["qkv_wgrad"]["method"] = "fast";
  slots["proj_fprop"]["aggregate"] = true;
  slots["proj_dgrad"] = {{"method", "none"}};
  slots["fc1_fprop"]["set_sm_margin"] = 1;
  slots["fc1_dgrad"]["num_sms"] = 4;
  slots["fc1_wgrad"]["cga_size"] = 2.5;
  slots["fc2_fprop"]["num_splits"] = 1e18;
  slots["fc2_dgrad"] = nullptr;
  const std::vector<std::string> faults = refusals(slots.dump());
  for (const char* part : {"'qkv_fprob' is unknown: did you mean 'qkv_fprop'?",
                           "qkv_fprop is missing",
                           "qkv_dgrad.num_sm = 0: use 1 to 1024",
                           "qkv_wgrad.method = \"fast\": use bulk",
                           "proj_fprop.aggregate = true: only a ring_exchange",
                           "proj_dgrad lacks num_sm",
                           "fc1_fprop.set_sm_margin = 1: use true or false",
                           "fc1_dgrad: 'num_sms' is unknown: did you mean 'num_sm'?",
                           "fc1_wgrad.cga_size = 2.5: use 1 to 16",
                           "fc2_fprop.num_splits = 1e+18: use 1 to 64",
                           "fc2_dgrad = null: give an object"}) {
    EXPECT_TRUE(any_names(faults, {part})) << part << "\n" << ::testing::PrintToString(faults);
  }
}

TEST(TpSlots, WhatIsNoObjectOfSlotsIsRefused) {
  EXPECT_TRUE(any_names(refusals("{"), {"it is no JSON"}));
  EXPECT_TRUE(any_names(refusals("{\"a\":" + std::string(9000, '[')), {"it is no JSON"}));
  EXPECT_TRUE(any_names(refusals("{\"qkv_fprop\":1,\"qkv_fprop\":1}"), {"is given twice"}));
  EXPECT_TRUE(any_names(refusals("{" + std::string(1 << 20, ' ') + "}"), {"at most 16384"}));
  EXPECT_EQ(refusals("{}").size(), 10u);
  EXPECT_TRUE(any_names(refusals("[]"), {"none of the"}));
}

TEST(TpSlots, NoMoreFaultsAreToldThanAnyoneReads) {
  Json slots = printed();
  for (auto& [name, slot] : slots.items()) slot = Json::object();
  EXPECT_EQ(refusals(slots.dump()).size(), 16u);
}

TEST(TpSlots, AProductWithoutACollectiveSaysNothingOfOne) {
  Json slots = printed();
  slots["fc1_wgrad"]["method"] = "none";
  EXPECT_TRUE(any_names(refusals(slots.dump()), {"fc1_wgrad.num_sm = 4: use 0"}));
}

}  // namespace tp_slots_test
}  // namespace weft::rules
