// What metrics.jsonl tells of learning: the loss by step, evaluations, and what was skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"

namespace weft::report {

struct Learning {
  // One step, or the mean of neighbours where there are more than a picture shows.
  struct Point {
    std::int64_t step = 0;       // the last one
    std::optional<double> loss;  // nullopt: no step of them had a finite one
    double tokens_per_second = 0;
  };
  struct Evaluation {
    std::int64_t step = 0;
    std::string set;  // of dataset.valid_data_path; empty: the held-out part
    double loss = 0;
  };

  std::vector<Point> points;  // by step
  std::vector<Evaluation> evaluations;
  std::optional<double> first_loss, last_loss, test_loss;
  std::int64_t last_step = 0;
  std::int64_t skipped = 0;   // steps that were not finite and changed nothing
  std::int64_t repeated = 0;  // steps that ran twice, for their row budget
  bool pretended = false;     // one rank ran: its losses are not those of a run
};

// Gathers it from the lines of the file, one after the other.
class LearningLines {
 public:
  void take(const base::SortedJson& line);
  // nullopt: no line told a loss.
  std::optional<Learning> finish();

 private:
  void take_evaluations(const base::SortedJson& line, std::int64_t step);

  Learning all_;
};

// At most as many points: neighbours become their mean.
std::vector<Learning::Point> thinned(const std::vector<Learning::Point>& points, std::size_t most);

// "loss 5.545 -> 4.127 in 20 steps; held-out 4.311 after step 20"
std::string learning_text(const Learning& learning);
base::Json to_json(const Learning& learning);

}  // namespace weft::report
