// The config under judgement: what a rule may ask of it, report and set.
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
  // Starts with the numbers out of their own range, as errors.
  explicit Judge(const config::Config& config);

  // Judges by one rule: its findings carry its id and go where its kind says.
  void apply(const Rule& rule);

  // As it stands, with everything set by the rules before.
  const config::Config& config() const { return config_; }
  const config::ModelConfig& model() const { return config_.model; }
  const config::CommOverlapConfig& overlap() const { return config_.comm_overlap; }

  // For rules that only speak. `fix` says how to mend it.
  void report(std::string_view key, std::string message, std::string fix);
  // The same for a rule that has its own answer to a number out of range: it takes the place of
  // W1's, so that one mistake stays one error.
  void answer_for(std::string_view key, std::string message, std::string fix);
  // For rules that set. Nothing is said where the key has that value already. `value` is what a
  // user would type.
  void set(std::string_view key, std::string_view value, std::string message, std::string fix = "");
  // The same without a warning, whatever the rule's kind: for what follows from a warning given.
  void settle(std::string_view key, std::string_view value, std::string message);

  // Whether these keys are in range. A rule that counts or divides asks first, so that it neither
  // divides by zero nor complains twice.
  bool sound(std::initializer_list<std::string_view> keys) const;
  bool sound_section(std::string_view section) const;
  // Whether a refusal so far speaks of the key: it has an effect then, whatever else it does not
  // do.
  bool is_refused_for(std::string_view key) const;
  // Whether no rule has refused the config so far.
  bool legal() const { return errors_.empty(); }

  // Whether the run is judged for GPUs; without, it is for CPU ranks.
  bool on_gpu() const;
  // Data-parallel ranks; nothing where the layout is wrong.
  std::optional<std::int64_t> dp() const;
  // Micro-batches of a rank in a step; nothing where layout or batch is wrong.
  std::optional<std::int64_t> micro_batches() const;

  std::vector<config::Finding> take_errors() { return std::move(errors_); }
  std::vector<config::Finding> take_warnings() { return std::move(warnings_); }
  std::vector<config::Finding> take_automatic() { return std::move(automatic_); }

 private:
  // Sets a key; a finding without words where that changes its value.
  std::optional<config::Finding> changed(std::string_view key, std::string_view value);

  config::Config config_;
  const Rule* rule_ = nullptr;
  std::vector<std::string> unsound_;
  std::vector<config::Finding> errors_, warnings_, automatic_;
};

}  // namespace weft::rules
