// Config under judgement: queries, reports and settings of the rules.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/text.h"
#include "weft/config/config.h"
#include "weft/rules/rule.h"

namespace weft::rules {

class Judge {
 public:
  // Begins with errors for numbers out of range.
  explicit Judge(const config::Config& config);

  // Applies one rule: its findings get its id, and their list follows from its kind.
  void apply(const Rule& rule);

  // Config with all changes by earlier rules.
  const config::Config& config() const { return config_; }
  const config::ModelConfig& model() const { return config_.model; }
  const config::CommOverlapConfig& overlap() const { return config_.comm_overlap; }

  // For rules that only report. `fix`: how to correct it.
  void report(std::string_view key, std::string message, std::string fix);
  // Report that replaces W1's error for a number out of range, so that one mistake is one error.
  void answer_for(std::string_view key, std::string message, std::string fix);
  // For rules that set keys. Reports only if the value changes. `value`: as a user types it.
  void set(std::string_view key, std::string_view value, std::string message, std::string fix = "");
  // Sets without a warning, whatever the rule's kind: for consequences of an earlier warning.
  void settle(std::string_view key, std::string_view value, std::string message);

  // True if these keys are in range. A rule that counts or divides asks first, so that it neither
  // divides by zero nor reports twice.
  bool sound(std::initializer_list<std::string_view> keys) const;
  bool sound_section(std::string_view section) const;
  // True if some error so far is about the key; the key then has an effect and is not idle.
  bool is_refused_for(std::string_view key) const;
  // True if no rule has refused the config so far.
  bool legal() const { return errors_.empty(); }

  // True: judged for GPUs. False: for CPU ranks.
  bool on_gpu() const;
  // Data-parallel ranks; nullopt: the layout is wrong.
  std::optional<std::int64_t> dp() const;
  // Micro-batches of a rank per step; nullopt: layout or batch is wrong.
  std::optional<std::int64_t> micro_batches() const;

  std::vector<config::Finding> take_errors() { return std::move(errors_); }
  std::vector<config::Finding> take_warnings() { return std::move(warnings_); }
  std::vector<config::Finding> take_automatic() { return std::move(automatic_); }

 private:
  // Sets a key; returns a finding without texts if the value changes.
  std::optional<config::Finding> changed(std::string_view key, std::string_view value);

  config::Config config_;
  const Rule* rule_ = nullptr;
  std::vector<std::string> unsound_;
  std::vector<config::Finding> errors_, warnings_, automatic_;
};

}  // namespace weft::rules
