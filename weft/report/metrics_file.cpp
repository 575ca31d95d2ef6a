#include "weft/report/metrics_file.h"

#include <cmath>
#include <fstream>
#include <map>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/median.h"
#include "weft/base/text.h"

namespace weft::report {
namespace {

constexpr std::size_t kLongestLine = 1u << 20;
constexpr std::size_t kMostSteps = 1'000'000;  // first steps only; a longer run is no steadier
constexpr std::size_t kMostLayers = 4096;

using Line = base::SortedJson;

double number_of(const Line& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double number = found->get<double>();
  return std::isfinite(number) ? number : 0;
}

// Lines of a file; counts too long ones as unread.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& file) : stream_(file) {
    if (!stream_) throw base::SystemError(base::text("cannot read '{}'", file.string()));
  }

  bool next(std::string& line) {
    line.clear();
    int c = stream_.get();
    if (c == EOF) return false;
    for (; c != EOF && c != '\n'; c = stream_.get()) {
      if (line.size() <= kLongestLine) line += static_cast<char>(c);
    }
    return true;
  }

 private:
  std::ifstream stream_;
};

class Sums {
 public:
  void add_step(const Line& line) {
    learning_.take(line);
    if (is_first_) {
      first_ = line;
      is_first_ = false;
      return;
    }
    add(line);
  }

  MetricsFile finish() {
    if (ms_.empty() && !is_first_) add(first_);  // a run of one step has no other time
    MetricsFile file{.steps = {}, .loads = {}, .learning = learning_.finish(), .unread = unread};
    if (!ms_.empty()) {
      file.steps = StepTimes{.steps = std::ssize(ms_),
                             .median_ms = base::median(ms_),
                             .tokens_per_second = base::median(tokens_),
                             .tflops_per_rank = base::median(tflops_)};
    }
    for (const auto& [layer, sum] : loads_) {
      const double n = sum.steps;
      file.loads.push_back({.layer = layer,
                            .max = sum.max / n,
                            .p95 = sum.p95 / n,
                            .p50 = sum.p50 / n,
                            .dropped = sum.dropped});
    }
    return file;
  }

  std::int64_t unread = 0;

 private:
  struct LoadSum {
    double max = 0, p95 = 0, p50 = 0, steps = 0;
    std::int64_t dropped = 0;
  };

  void add(const Line& line) {
    if (ms_.size() >= kMostSteps) return;
    ms_.push_back(number_of(line, "iteration_time_ms"));
    tokens_.push_back(number_of(line, "tokens_per_second"));
    tflops_.push_back(number_of(line, "throughput_tflops_per_rank"));
    const auto loads = line.find("expert_loads");
    if (loads == line.end() || !loads->is_array()) return;
    for (const Line& load : *loads) {
      if (load.is_object()) add_load(load);
    }
  }

  void add_load(const Line& load) {
    const double layer = number_of(load, "layer");
    if (layer < 0 || layer >= kMostLayers) return;
    LoadSum& sum = loads_[static_cast<int>(layer)];
    sum.max += number_of(load, "max");
    sum.p95 += number_of(load, "p95");
    sum.p50 += number_of(load, "p50");
    sum.dropped += static_cast<std::int64_t>(std::min(number_of(load, "dropped"), 1e15));
    ++sum.steps;
  }

  LearningLines learning_;
  bool is_first_ = true;
  Line first_;
  std::vector<double> ms_, tokens_, tflops_;
  std::map<int, LoadSum> loads_;
};

}  // namespace

MetricsFile read_metrics(const std::filesystem::path& file) {
  Lines lines(file);
  Sums sums;
  for (std::string line; lines.next(line);) {
    if (line.empty()) continue;
    const bool is_whole = line.size() <= kLongestLine;
    const Line json = is_whole ? base::try_parse_sorted_json(line) : Line::object();
    if (json.is_object() && number_of(json, "iteration_time_ms") > 0) {
      sums.add_step(json);
    } else {
      ++sums.unread;
    }
  }
  return sums.finish();
}

}  // namespace weft::report
