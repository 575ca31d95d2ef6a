// Contents that a report reads from metrics.jsonl.
#include "weft/report/metrics_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::report {
namespace metrics_file_test {

MetricsFile read(const std::string& content) {
  const auto file =
      std::filesystem::temp_directory_path() / base::text("weft_metrics_{}.jsonl", ::getpid());
  base::write_whole(file, content);
  MetricsFile metrics = read_metrics(file);
  std::filesystem::remove(file);
  return metrics;
}

std::string line(double ms, double most) {
  return base::text(R"({{"iteration":1,"iteration_time_ms":{},"tokens_per_second":{},)"
                    R"("expert_loads":[{{"layer":3,"max":{},"p95":1.5,"p50":1,"dropped":2}}]}})"
                    "\n",
                    ms,
                    1000 / ms,
                    most);
}

TEST(MetricsFile, LeavesTheFirstStepOutAndTakesMedians) {
  const MetricsFile metrics = read(line(900, 9) + line(10, 2) + line(20, 3) + line(40, 4));
  ASSERT_TRUE(metrics.steps);
  EXPECT_EQ(metrics.steps->steps, 3);
  EXPECT_DOUBLE_EQ(metrics.steps->median_ms, 20);
  EXPECT_DOUBLE_EQ(metrics.steps->tokens_per_second, 50);
  ASSERT_EQ(metrics.loads.size(), 1u);
  EXPECT_EQ(metrics.loads[0].layer, 3);
  EXPECT_DOUBLE_EQ(metrics.loads[0].max, 3);
  EXPECT_EQ(metrics.loads[0].dropped, 6);
  EXPECT_EQ(metrics.unread, 0);
}

TEST(MetricsFile, OneStepIsBetterThanNone) {
  EXPECT_DOUBLE_EQ(read(line(30, 1)).steps->median_ms, 30);
  EXPECT_FALSE(read("").steps);
}

TEST(MetricsFile, DamagedLinesAreCountedAndPassedOver) {
  const std::string damaged = "{\"iteration\":2,\"iteration_ti\n[]\n7\n\x01\xff\n{\"a\":1}\n" +
                              std::string(2 << 20, 'x') + "\n" + R"({"iteration_time_ms":1e999})" +
                              "\n";
  const MetricsFile metrics = read(line(1, 1) + damaged + line(5, 2) +
                                   R"({"iteration_time_ms":7,"expert_loads":[{"layer":-1},4]})");
  EXPECT_EQ(metrics.unread, 7);
  EXPECT_EQ(metrics.steps->steps, 2);
  EXPECT_EQ(metrics.loads.size(), 1u);
}

TEST(MetricsFile, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(read_metrics("/nowhere/metrics.jsonl"), base::SystemError);
}

}  // namespace metrics_file_test
}  // namespace weft::report
