#include "weft/trace/activity.h"

namespace weft::trace {
namespace {

// Parts of a name: "3F7.attention.core#1" has direction F and piece attention. A name without a
// place has no direction.
struct Words {
  char direction = ' ';
  std::string_view piece;
};

Words words_in(std::string_view name) {
  Words words;
  const std::size_t place = name.find_first_of("FDWR");
  const std::size_t dot = name.find('.');
  if (place != name.npos && dot != name.npos && place < dot) {
    words.direction = name[place];
    name.remove_prefix(dot + 1);
  }
  words.piece = name.substr(0, name.find_first_of(".#"));
  return words;
}

}  // namespace

Activity activity_of(const Span& node) {
  const Words words = words_in(node.name);
  if (!communication_kind(node.lane).empty()) {
    if (words.piece == "dispatch") return Activity::Dispatch;
    if (words.piece == "combine") return Activity::Combine;
    return Activity::OtherCommunication;
  }
  switch (words.direction) {
    case 'F':
      return words.piece == "experts" || words.piece == "mlp" || words.piece == "shared"
                 ? Activity::ForwardExperts
                 : Activity::ForwardAttention;
    case 'D':
      return Activity::Backward;
    case 'W':
      return Activity::WeightGradient;
    case 'R':
      return Activity::Recompute;
    default:
      return Activity::StepEnd;
  }
}

std::string_view words_of(Activity activity) {
  switch (activity) {
    case Activity::ForwardAttention:
      return "forward: attention, routing";
    case Activity::ForwardExperts:
      return "forward: experts";
    case Activity::Backward:
      return "backward";
    case Activity::WeightGradient:
      return "weight gradient";
    case Activity::Recompute:
      return "recompute";
    case Activity::StepEnd:
      return "optimizer";
    case Activity::Dispatch:
      return "dispatch";
    case Activity::Combine:
      return "combine";
    case Activity::OtherCommunication:
      return "other communication";
  }
  return "";
}

// Blues are forward, greens are communication. Colours differ in lightness as well as in hue, for
// colour-blind readers.
std::string_view colour_of(Activity activity) {
  switch (activity) {
    case Activity::ForwardAttention:
      return "#6baed6";
    case Activity::ForwardExperts:
      return "#08519c";
    case Activity::Backward:
      return "#d9602f";
    case Activity::WeightGradient:
      return "#f2b84b";
    case Activity::Recompute:
      return "#a1887f";
    case Activity::StepEnd:
      return "#596673";
    case Activity::Dispatch:
      return "#17803d";
    case Activity::Combine:
      return "#57b894";
    case Activity::OtherCommunication:
      return "#a8c686";
  }
  return "";
}

}  // namespace weft::trace
