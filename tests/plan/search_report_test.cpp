// Plan as a reader sees it: own layout, ties, doubt, units, and the next commands.
#include "weft/plan/search/search_report.h"

#include <gtest/gtest.h>

#include "tests/plan/search_support.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {
namespace search_report_test {

PricedLayout priced(const LayoutChoice& choice, double ms) {
  PricedLayout layout{.choice = choice, .price = {}};
  layout.price.step_ms = ms;
  layout.price.tflops_per_gpu = 1e5 / ms;
  layout.price.memory.weights = 40.0 * 1024 * 1024 * 1024;
  layout.price.memory.capacity = 84.9e9;
  return layout;
}

PlanReport some_report() {
  PlanReport report{.model = "some", .top = 3};
  report.search.ranked = {priced({.ep = 8, .graphs = Graphs::Scoped}, 1000),
                          priced({.ep = 16, .graphs = Graphs::None}, 995),
                          priced({.ep = 4, .graphs = Graphs::None}, 1100)};
  report.search.best_safe = report.search.ranked[1];
  report.trust_of = [](const config::Config& config) {
    Trust trust{.band = ErrorSummary{.rows = 12, .median = 0.071, .p90 = 0.21}, .unmeasured = {}};
    const bool captures = config.model.cuda_graph_impl != config::CudaGraphImpl::None;
    if (captures) trust.unmeasured = {"graphs of attention"};
    return trust;
  };
  report.next = {{"weft plan some --gpus=16 --overrides", "as words"}};
  return report;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

TEST(PlanReport, PrintsDoubtTiesUnitsAndWhatToTypeNext) {
  const LayoutSpace space(small_ask());
  const std::string text = to_text(some_report(), space);
  expect_parts(
      text,
      {"\n  1  tp 1",
       "\n =2  tp 1",
       "\n  3  tp 1",
       "100 TFLOP/s/GPU (±7 %, 9 of 10 within 21 %)",
       "no published run has: graphs of attention",
       "memory 40.0 of 79.1 GiB",
       "The best safe layout (nothing on the host, no CUDA graphs, 8 % of the memory free)",
       "50 GB/s each way between machines",
       "weft plan some --gpus=16 --overrides"});
  EXPECT_EQ(text.find(" GB:"), std::string::npos) << "memory is in GiB: " << text;
}

TEST(PlanReport, JsonHasTheSameKeys) {
  const LayoutSpace space(small_ask());
  const base::Json json = to_json(some_report(), space);
  EXPECT_FALSE(json["layouts"][0]["tie"].get<bool>());
  EXPECT_TRUE(json["layouts"][1]["tie"].get<bool>());
  EXPECT_FALSE(json["layouts"][2]["tie"].get<bool>());
  EXPECT_DOUBLE_EQ(json["layouts"][0]["p90_error"].get<double>(), 0.21);
  EXPECT_EQ(json["layouts"][0]["unmeasured"][0], "graphs of attention");
  EXPECT_EQ(json["safe"]["keys"]["model.expert_model_parallel_size"], 16);
  EXPECT_TRUE(json["own"].is_null());
  EXPECT_EQ(json["network"]["nic_gbps"], 50);
}

TEST(OwnLayout, IsPricedAsTheRunIs) {
  const PlanAsk ask = small_ask();
  const LayoutSpace space(ask);
  const config::Config run = space.writer().config_of({.ep = 8, .graphs = Graphs::None});
  const OwnLayout own = own_layout(run, space);
  ASSERT_TRUE(own.price) << own.refusal;
  EXPECT_EQ(own.price->step_ms, price_run(run, ask.hardware).step_ms);
  PlanReport report = some_report();
  report.search.ranked.front().price.step_ms = own.price->step_ms / 2;
  report.own = own;
  const std::string text = to_text(report, space);
  const std::size_t line = text.find("Your recipe: tp 1, pp 1, vpp 1, cp 1, ep 8, etp 1, mbs 1");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_LT(line, text.find("\n  1  tp 1"));
  expect_parts(text, {time_text(own.price->step_ms), "2.00 times as fast"});
  report.own->is_line = true;
  expect_parts(to_text(report, space), {"Your line: tp 1, pp 1"});
}

TEST(OwnLayout, SaysWhyItCannotBe) {
  const LayoutSpace space(small_ask());
  config::Config run = space.writer().config_of({.ep = 8});
  run.model.expert_model_parallel_size = 3;
  const OwnLayout own = own_layout(run, space);
  EXPECT_FALSE(own.price);
  EXPECT_NE(to_text(own, {}, nullptr).find("not possible here: rule "), std::string::npos)
      << to_text(own, {}, nullptr);
}

}  // namespace search_report_test
}  // namespace weft::plan
