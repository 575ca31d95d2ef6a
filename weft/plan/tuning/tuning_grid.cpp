#include "weft/plan/tuning/tuning_grid.h"

#include <algorithm>

#include "weft/config/field.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using GridKnob = std::vector<TuningMove>;

bool sets_same_keys(const TuningMove& one, const TuningMove& other) {
  return std::ranges::equal(one.sets, other.sets, [](const auto& a, const auto& b) {
    return a.first == b.first;
  });
}

std::vector<GridKnob> knobs_of(const std::vector<TuningMove>& moves) {
  std::vector<GridKnob> knobs;
  for (const TuningMove& move : moves) {
    const auto known = std::ranges::find_if(knobs, [&](const GridKnob& knob) {
      return sets_same_keys(knob.front(), move);
    });
    if (known == knobs.end()) {
      knobs.push_back({move});
    } else {
      known->push_back(move);
    }
  }
  return knobs;
}

void forget_what_asked(config::CommOverlapConfig& overlap) {
  overlap.overlap_grad_reduce.reset();
  overlap.overlap_param_gather.reset();
  overlap.overlap_param_gather_with_optimizer_step.reset();
  overlap.align_param_gather.reset();
}

}  // namespace

TuningMove joined(TuningMove move, const TuningMove& other) {
  move.sets.insert(move.sets.end(), other.sets.begin(), other.sets.end());
  if (other.kind == MoveKind::Work) move.kind = MoveKind::Work;
  return move;
}

bool is_same_run(config::Config one, config::Config other) {
  forget_what_asked(one.comm_overlap);
  forget_what_asked(other.comm_overlap);
  return std::ranges::all_of(config::fields(), [&](const config::Field& field) {
    return field.get(one) == field.get(other);
  });
}

std::vector<GridSetting> tuning_grid(const config::Config& config,
                                     const std::vector<TuningMove>& moves) {
  std::vector<TuningMove> all{{.sets = {}, .kind = MoveKind::Order}};
  for (const GridKnob& knob : knobs_of(moves)) {
    std::vector<TuningMove> longer = all;  // with the current value
    for (const TuningMove& value : knob) {
      for (const TuningMove& move : all) longer.push_back(joined(move, value));
    }
    all = std::move(longer);
  }
  std::vector<GridSetting> grid;
  std::vector<config::Config> judged;
  for (const TuningMove& move : all) {
    const config::Config asked = with_move(config, move);
    const rules::Verdict verdict = rules::judge(asked);
    const bool is_known = std::ranges::any_of(judged, [&](const config::Config& other) {
      return is_same_run(verdict.config, other);
    });
    if (!verdict.runs() || is_known) continue;
    judged.push_back(verdict.config);
    grid.push_back({.move = move, .config = asked});
  }
  return grid;
}

}  // namespace weft::plan
