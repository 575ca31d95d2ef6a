#include <gtest/gtest.h>

#include "weft/measure/runs/perf_run.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace perf_config_test {

TEST(PerfConfig, HasItsOwnNumberOfStepsWhateverTheRunHas) {
  config::Config config;
  config.train.train_samples = 100000;
  config.train.global_batch_size = 8;
  const config::Config timed = perf_config(config, 5);
  EXPECT_EQ(rules::judge(timed).config.train.train_iters, timed.train.train_iters);
}

}  // namespace perf_config_test
}  // namespace weft::measure
