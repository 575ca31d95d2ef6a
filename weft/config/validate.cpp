#include "weft/config/validate.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/findings.h"

namespace weft::config {

namespace {

void check_rules(const Config& config, Findings& findings) {
  check_model(config, findings);
  check_run(config, findings);
  check_fabric(config, findings);
  check_overlap(config, findings);
}

void throw_all(std::vector<std::string> complaints, std::vector<std::string> missing) {
  for (std::string& part : missing) complaints.push_back(std::move(part));
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

}  // namespace

std::vector<std::string> rule_complaints(const Config& config) {
  Findings findings(config);
  check_rules(config, findings);
  check_size(config, findings);
  return findings.take();
}

std::vector<std::string> missing_parts(const Config& config) {
  struct Part {
    const char* name;
    const char* key;
    std::int64_t size;
  };
  const ModelConfig& model = config.model;
  const Part parts[] = {
      {"tensor", "model.tensor_model_parallel_size", model.tensor_model_parallel_size},
      {"context", "model.context_parallel_size", model.context_parallel_size},
      {"expert tensor",
       "model.expert_tensor_parallel_size",
       model.expert_tensor_parallel_size.value_or(1)}};
  std::vector<std::string> missing;
  for (const Part& part : parts) {
    if (part.size <= 1) continue;
    missing.push_back(base::text("{} parallelism is not built yet: set {}=1 (now {})",
                                 part.name,
                                 part.key,
                                 part.size));
  }
  return missing;
}

void validate(const Config& config) { throw_all(rule_complaints(config), missing_parts(config)); }

void validate_schedule(const Config& config) {
  Findings findings(config);
  check_rules(config, findings);
  check_schedule_size(config, findings);
  throw_all(findings.take(), missing_parts(config));
}

}  // namespace weft::config
