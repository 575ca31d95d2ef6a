#include "weft/plan/published/published.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/plan/published/csv.h"
#include "weft/plan/published/published_row.h"

namespace weft::plan {
namespace {

using base::text;

constexpr const char* kFittedModels[] = {"qwen3_30b_a3b", "llama3_8b"};

}  // namespace

namespace {

// Strips remarks such as "(w/o MTP)" in "DeepSeekV3 (w/o MTP)", which do not change the model.
std::string without_remark(const std::string& written) {
  return written.substr(0, written.find('('));
}

// Llama 3.1 has the layers of Llama 3: one recipe per size stands for both.
std::string without_release(const std::string& letters) {
  constexpr std::string_view kReleases[] = {"metallama31", "metallama3", "llama31"};
  for (const std::string_view release : kReleases) {
    if (letters.starts_with(release)) return "llama3" + letters.substr(release.size());
  }
  return letters;
}

}  // namespace

std::string model_meant(const std::string& written, const std::vector<std::string>& names) {
  const std::string wanted = without_release(letters_of(without_remark(written)));
  if (wanted.empty()) return "";
  std::vector<std::string> begin;
  for (const std::string& name : names) {
    const std::string letters = without_release(letters_of(name));
    if (letters == wanted) return name;
    if (letters.starts_with(wanted)) begin.push_back(name);
  }
  return begin.size() == 1 ? begin.front() : "";
}

bool PublishedTable::is_fitted(const PublishedRun& run) const {
  return std::ranges::any_of(fitted_models, [&](const std::string& model) {
    return letters_of(model) == letters_of(run.model);
  });
}

PublishedTable parse_published(const std::string& content,
                               const std::string& named,
                               const ModelNamed& model_named) {
  const CsvTable table = parse_csv(content, named);
  const auto has = [&](std::string_view column) {
    return std::ranges::find(table.columns, column) != table.columns.end();
  };
  for (const std::string_view needed : {"model", "system", "precision", "n_gpus", "gbs"}) {
    if (has(needed) || (needed == "model" && has("card"))) continue;
    throw base::ConfigError(
        text("{}: no column '{}': the first line names the columns, as in "
             "model,system,precision,n_gpus,gbs,mbs,seq_len,tp,pp,ep,tflops_per_gpu",
             named,
             needed));
  }
  PublishedTable result;
  result.fitted_models.assign(std::begin(kFittedModels), std::end(kFittedModels));
  for (const CsvRow& row : table.rows) {
    try {
      result.runs.push_back(read_row(table, row, model_named));
    } catch (const UnusableRow& reason) {
      result.left_out.push_back(text("line {}: {}", row.line, reason.why));
    } catch (const base::ConfigError& error) {  // an unknown model
      result.left_out.push_back(text("line {}: {}", row.line, error.what()));
    }
  }
  return result;
}

}  // namespace weft::plan
