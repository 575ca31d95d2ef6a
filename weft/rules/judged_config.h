// Config that the rules allow and this build runs. The engine accepts no other.
#pragma once

#include <utility>

#include "weft/config/config.h"

namespace weft::rules {

struct Verdict;

// Only judge() makes one, and it is immutable: to change a run, change a plain config and judge it
// again. Reads like a Config.
class JudgedConfig {
 public:
  const config::Config* operator->() const { return &config_; }
  operator const config::Config&() const& { return config_; }
  operator const config::Config&() && = delete;  // the reference would outlive the temporary

 private:
  friend Verdict judge(const config::Config& config);
  explicit JudgedConfig(config::Config config) : config_(std::move(config)) {}

  config::Config config_;
};

}  // namespace weft::rules
