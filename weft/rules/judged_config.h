// A config that the rules allow and this build runs. The engine takes no other.
#pragma once

#include <utility>

#include "weft/config/config.h"

namespace weft::rules {

struct Verdict;

// Only judge() makes one, and nobody changes one: who wants another run changes a plain config and
// has it judged again. It is read like the config that it holds.
class JudgedConfig {
 public:
  const config::Config* operator->() const { return &config_; }
  operator const config::Config&() const& { return config_; }
  operator const config::Config&() && = delete;  // it would not outlive the expression

 private:
  friend Verdict judge(const config::Config& config);
  explicit JudgedConfig(config::Config config) : config_(std::move(config)) {}

  config::Config config_;
};

}  // namespace weft::rules
