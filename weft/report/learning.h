// Learning curve in metrics.jsonl: loss by step, evaluations and skipped steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"

namespace weft::report {

struct Learning {
  // One step, or the mean of adjacent steps if a picture cannot show all.
  struct Point {
    std::int64_t step = 0;       // last step of the point
    std::optional<double> loss;  // nullopt: no finite loss in these steps
    double tokens_per_second = 0;
  };
  struct Evaluation {
    std::int64_t step = 0;
    std::string set;  // set of dataset.valid_data_path; empty: the held-out part
    double loss = 0;
  };

  std::vector<Point> points;  // by step
  std::vector<Evaluation> evaluations;
  std::optional<double> first_loss, last_loss, test_loss;
  std::int64_t last_step = 0;
  std::int64_t skipped = 0;   // non-finite steps, which changed nothing
  std::int64_t repeated = 0;  // steps that ran twice because of their row budget
  bool pretended = false;     // one rank ran with pretended peers: its losses are meaningless
};

// Collects a learning curve from the lines of the file.
class LearningLines {
 public:
  void take(const base::SortedJson& line);
  // nullopt: no line has a loss.
  std::optional<Learning> finish();

 private:
  void take_evaluations(const base::SortedJson& line, std::int64_t step);

  Learning all_;
};

// Reduces to at most `most` points by averaging adjacent points.
std::vector<Learning::Point> thinned(const std::vector<Learning::Point>& points, std::size_t most);

// "loss 5.545 -> 4.127 in 20 steps; held-out 4.311 after step 20"
std::string learning_text(const Learning& learning);
base::Json to_json(const Learning& learning);

}  // namespace weft::report
