#include "weft/plan/hardware/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {
namespace {

using base::text;

// kPrior: deviation from nominal, as a factor, at which the prior costs as much as one row with
// that error. kMostOfRow: limit of one row's weight.
constexpr double kPrior = 0.15;
constexpr double kMostOfRow = 0.5;
constexpr double kFirstStep = 0.2, kLastStep = 0.002;
constexpr int kRounds = 3;

struct FreeNumber {
  std::string_view key;
  std::vector<std::string> gpus;
  double nominal = 0;
};

const std::vector<FreeNumber>& free_numbers() {
  static const std::vector<std::string> hopper = {"h100", "h200"};
  static const std::vector<std::string> blackwell = {"b200", "b300", "gb200", "gb300"};
  static const std::vector<FreeNumber> all = {
      {"sustained_share", hopper, 0.85},
      {"sustained_share", {"b200"}, 0.8},
      {"sustained_share", {"b300"}, 0.85},
      {"sustained_share", {"gb200"}, 0.8},
      {"sustained_share", {"gb300"}, 0.9},
      {"gemm_share_fp8", hopper, 0.8},
      {"gemm_share_fp8", blackwell, 0.75},
      {"gemm_share_mxfp8", blackwell, 0.7},
      {"tile_us", blackwell, 1.0},
      {"memory_share", hopper, 0.7},
      {"memory_share", blackwell, 0.6},
      {"launch_us", hopper, 40},
      {"launch_us", {"b200", "b300"}, 40},
      {"launch_us", {"gb200", "gb300"}, 40},
  };
  return all;
}

const HardwareKey& key_named(std::string_view name) {
  const std::vector<HardwareKey>& all = hardware_keys();
  const auto found = std::ranges::find(all, name, &HardwareKey::key);
  CHECK(found != all.end(), "no hardware key {}", name);
  return *found;
}

class Fitting {
 public:
  Fitting(const PublishedTable& table, const HardwareTable& hardware) : hardware_(hardware) {
    for (const PublishedRun& run : table.runs) {
      const auto gpu = hardware.find(run.gpu);
      if (!table.is_fitted(run) || gpu == hardware.end()) continue;
      if (gpu->second.peak(number_of(run.config.model)) > 0) rows_.push_back(&run);
    }
    std::map<std::pair<std::string, std::string>, double> repeats;
    for (const PublishedRun* run : rows_) ++repeats[{run->model, run->gpu}];
    const double each = static_cast<double>(rows_.size()) / static_cast<double>(repeats.size());
    for (const PublishedRun* run : rows_) {
      weights_.push_back(each / repeats[{run->model, run->gpu}]);
    }
    for (const FreeNumber& free : free_numbers()) set(free, free.nominal);
  }

  Fit run() {
    for (int round = 0; round < kRounds; ++round) {
      correct();
      double best = loss();
      for (double step = kFirstStep; step > kLastStep; step /= 2) {
        for (bool better = true; better;) {
          better = false;
          for (const FreeNumber& free : free_numbers()) better |= descend(free, step, best);
        }
      }
    }
    Fit fit{.numbers = {}, .hardware = hardware_, .rows = rows_.size()};
    for (const FreeNumber& free : free_numbers()) {
      fit.numbers.push_back({.key = std::string(free.key), .gpus = free.gpus, .value = get(free)});
    }
    return fit;
  }

 private:
  double get(const FreeNumber& free) const {
    for (const std::string& gpu : free.gpus) {
      const auto found = hardware_.find(gpu);
      if (found != hardware_.end()) return key_named(free.key).get(found->second);
    }
    return free.nominal;
  }

  void set(const FreeNumber& free, double value) {
    const HardwareKey& key = key_named(free.key);
    for (const std::string& gpu : free.gpus) {
      const auto found = hardware_.find(gpu);
      if (found != hardware_.end()) key.set(found->second, std::clamp(value, key.least, key.most));
    }
  }

  bool descend(const FreeNumber& free, double step, double& best) {
    const double before = get(free);
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      set(free, before * factor);
      const double now = loss();
      if (now < best - 1e-9) {
        best = now;
        return true;
      }
    }
    set(free, before);
    return false;
  }

  // Updates the ratio of the simulated price to the formula, once per round at the current numbers.
  // The fit itself uses the formula, which runs thousands of times.
  void correct() {
    beside_.clear();
    for (const PublishedRun* run : rows_) {
      const Hardware& gpu = hardware_.at(run->gpu);
      beside_.push_back(price_step(run->config, gpu).tflops_per_gpu /
                        sieve_step(run->config, gpu).tflops_per_gpu);
    }
  }

  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const PublishedRun& run = *rows_[i];
      const double predicted =
          beside_[i] * counted_tflops(run, sieve_step(run.config, hardware_.at(run.gpu)));
      const double away = std::abs(std::log(predicted / run.tflops));
      sum += weights_[i] * std::min(kMostOfRow, away);
    }
    for (const FreeNumber& free : free_numbers()) {
      const double away = std::log(get(free) / free.nominal);
      sum += away * away / kPrior;
    }
    return sum;
  }

  HardwareTable hardware_;
  std::vector<const PublishedRun*> rows_;
  std::vector<double> weights_;
  std::vector<double> beside_;  // by row: the price over the formula
};

}  // namespace

Fit fit_hardware(const PublishedTable& table, const HardwareTable& hardware) {
  return Fitting(table, hardware).run();
}

std::string to_text(const Fit& fit) {
  std::string result = text("fitted to {} rows:\n", fit.rows);
  for (const FittedNumber& number : fit.numbers) {
    result += text("  {:24} {:8.4g}  {}\n", number.key, number.value, fmt::join(number.gpus, ", "));
  }
  return result;
}

}  // namespace weft::plan
