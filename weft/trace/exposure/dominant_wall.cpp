#include "weft/trace/exposure/dominant_wall.h"

#include <algorithm>
#include <array>

namespace weft::trace {
namespace {

// Share of the step; smaller losses count as all compute.
constexpr double kSmallLoss = 0.1;

}  // namespace

std::string_view word(Wall wall) {
  switch (wall) {
    case Wall::Compute:
      return "compute";
    case Wall::Communication:
      return "communication";
    case Wall::Host:
      return "host";
    case Wall::Update:
      return "update";
    case Wall::Bubble:
      return "bubble";
    case Wall::Idle:
      return "idle";
    case Wall::Memory:
      return "memory";
  }
  return "";
}

double LostMs::of(Wall wall) const {
  switch (wall) {
    case Wall::Communication:
      return communication;
    case Wall::Host:
      return host;
    case Wall::Update:
      return update;
    case Wall::Bubble:
      return bubble;
    case Wall::Idle:
      return idle;
    case Wall::Compute:
    case Wall::Memory:
      return 0;
  }
  return 0;
}

LostMs lost_of(const Walls& walls) {
  return {.communication = walls.communication + walls.late + walls.copy,
          .host = walls.host,
          .bubble = walls.bubble,
          .idle = walls.idle};
}

Wall dominant_wall(const LostMs& lost, double step_ms) {
  constexpr std::array kLosses{Wall::Communication,
                               Wall::Host,
                               Wall::Update,
                               Wall::Bubble,
                               Wall::Idle};
  const Wall largest =
      *std::ranges::max_element(kLosses, {}, [&](Wall wall) { return lost.of(wall); });
  return lost.of(largest) < kSmallLoss * step_ms ? Wall::Compute : largest;
}

}  // namespace weft::trace
