// Complaints while a config is being judged.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/text.h"
#include "weft/config/config.h"

namespace weft::config {

// Starts with the numbers out of their own range. A rule over several keys asks whether they are
// `sound` and is silent where not, so that it neither divides by zero nor complains twice.
class Findings {
 public:
  explicit Findings(const Config& config);

  bool sound(std::initializer_list<std::string_view> keys) const;
  // The same for every key that starts with `section`.
  bool sound_section(std::string_view section) const;

  // Whether nothing is wrong so far.
  bool empty() const { return all_.empty(); }

  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    all_.push_back(base::text(format, std::forward<Args>(args)...));
  }

  std::vector<std::string> take() { return std::move(all_); }

 private:
  std::vector<std::string> unsound_;
  std::vector<std::string> all_;
};

// The rules within the model, those of the run around it, of nodes and links, of pipelines and
// overlap, whether one process could hold it, and whether it could hold the schedule alone.
void check_model(const Config& config, Findings& findings);
void check_run(const Config& config, Findings& findings);
void check_fabric(const Config& config, Findings& findings);
void check_overlap(const Config& config, Findings& findings);
void check_size(const Config& config, Findings& findings);
void check_schedule_size(const Config& config, Findings& findings);

}  // namespace weft::config
