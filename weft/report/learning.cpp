#include "weft/report/learning.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"

namespace weft::report {
namespace {

using base::text;
using MetricsLine = base::SortedJson;

constexpr std::size_t kMostPoints = 1'000'000;  // first points only
constexpr std::size_t kMostEvaluations = 100'000;
constexpr std::size_t kMostShownPoints = 600;

std::optional<double> finite_at(const MetricsLine& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::int64_t step_count(const MetricsLine& line, const char* key) {
  return static_cast<std::int64_t>(std::clamp(finite_at(line, key).value_or(0), 0.0, 1e15));
}

base::Json json_of(const std::optional<double>& number) {
  return number ? base::Json(*number) : base::Json(nullptr);
}

}  // namespace

void LearningLines::take(const MetricsLine& line) {
  const std::int64_t step = step_count(line, "iteration");
  if (step == 0) return;
  all_.last_step = step;
  all_.skipped = std::max(all_.skipped, step_count(line, "skipped_iterations"));
  all_.repeated = std::max(all_.repeated, step_count(line, "repeated_steps"));
  const auto flag = line.find("pretended");
  all_.pretended |= flag != line.end() && flag->is_boolean() && flag->get<bool>();
  const std::optional<double> loss = finite_at(line, "lm_loss");
  if (loss && !all_.first_loss) all_.first_loss = loss;
  if (loss) all_.last_loss = loss;
  if (const auto test = finite_at(line, "test_loss")) all_.test_loss = test;
  take_evaluations(line, step);
  if (all_.points.size() >= kMostPoints) return;
  all_.points.push_back({.step = step,
                         .loss = loss,
                         .tokens_per_second = finite_at(line, "tokens_per_second").value_or(0)});
}

void LearningLines::take_evaluations(const MetricsLine& line, std::int64_t step) {
  if (all_.evaluations.size() >= kMostEvaluations) return;
  if (const auto loss = finite_at(line, "eval_loss")) {
    all_.evaluations.push_back({.step = step, .set = "", .loss = *loss});
  }
  const auto sets = line.find("eval_losses");
  if (sets == line.end() || !sets->is_object()) return;
  for (const auto& [name, loss] : sets->items()) {
    if (!loss.is_number()) continue;
    all_.evaluations.push_back(
        {.step = step, .set = base::shown(name), .loss = loss.get<double>()});
  }
}

std::optional<Learning> LearningLines::finish() {
  if (all_.points.empty() || !all_.first_loss) return std::nullopt;
  return std::move(all_);
}

std::vector<Learning::Point> thinned(const std::vector<Learning::Point>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<Learning::Point> few;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    double loss = 0, tokens = 0, with_loss = 0;
    for (std::size_t at = begin; at < end; ++at) {
      tokens += points[at].tokens_per_second;
      if (!points[at].loss) continue;
      loss += *points[at].loss;
      ++with_loss;
    }
    few.push_back({.step = points[end - 1].step,
                   .loss = with_loss > 0 ? std::optional(loss / with_loss) : std::nullopt,
                   .tokens_per_second = tokens / static_cast<double>(end - begin)});
  }
  return few;
}

std::string learning_text(const Learning& learning) {
  std::string all = text("loss {:.4g} -> {:.4g} in {}",
                         learning.first_loss.value_or(0),
                         learning.last_loss.value_or(0),
                         base::counted(learning.last_step, "step"));
  if (learning.pretended) all += ", of a pretended world: one rank ran";
  std::vector<std::string> told;  // sets with a printed last evaluation
  for (auto at = learning.evaluations.rbegin(); at != learning.evaluations.rend(); ++at) {
    if (std::ranges::find(told, at->set) != told.end()) continue;
    told.push_back(at->set);
    all += text("; {} {:.4g} after step {}",
                at->set.empty() ? "held-out" : at->set,
                at->loss,
                at->step);
  }
  if (learning.test_loss) all += text("; test {:.4g}", *learning.test_loss);
  if (learning.skipped > 0) {
    all += text("; {} not finite and skipped", base::counted(learning.skipped, "step"));
  }
  if (learning.repeated > 0) {
    all += text("; {} ran twice for the row budget", base::counted(learning.repeated, "step"));
  }
  return all;
}

base::Json to_json(const Learning& learning) {
  base::Json points = base::Json::array(), evaluations = base::Json::array();
  for (const Learning::Point& point : thinned(learning.points, kMostShownPoints)) {
    points.push_back({{"step", point.step},
                      {"loss", json_of(point.loss)},
                      {"tokens_per_second", point.tokens_per_second}});
  }
  for (const Learning::Evaluation& one : learning.evaluations) {
    evaluations.push_back({{"step", one.step}, {"set", one.set}, {"loss", one.loss}});
  }
  return {{"first_loss", json_of(learning.first_loss)},
          {"last_loss", json_of(learning.last_loss)},
          {"test_loss", json_of(learning.test_loss)},
          {"last_step", learning.last_step},
          {"skipped_iterations", learning.skipped},
          {"repeated_steps", learning.repeated},
          {"pretended", learning.pretended},
          {"evaluations", std::move(evaluations)},
          {"points", std::move(points)}};
}

}  // namespace weft::report
