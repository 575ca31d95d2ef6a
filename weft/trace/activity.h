// Activity of a node, for choosing its colour.
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

// Derived from a node's lane and name: "3F7.dispatch" is the forward dispatch of layer 3,
// micro-batch 7.
Activity activity_of(const Span& node);

std::string_view words_of(Activity activity);
std::string_view colour_of(Activity activity);

}  // namespace weft::trace
