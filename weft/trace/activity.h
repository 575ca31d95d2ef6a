// What a node is, for people who look at colours.
#pragma once

#include <string_view>

#include "weft/trace/span.h"

namespace weft::trace {

enum class Activity {
  ForwardAttention,
  ForwardExperts,
  Backward,
  WeightGradient,
  Recompute,
  StepEnd,
  Dispatch,
  Combine,
  OtherCommunication,
};
inline constexpr int kActivities = static_cast<int>(Activity::OtherCommunication) + 1;

// From the lane and the name of a node: "3F7.dispatch" is what layer 3 does forward.
Activity activity_of(const Span& node);

std::string_view words_of(Activity activity);
std::string_view colour_of(Activity activity);

}  // namespace weft::trace
