#include "weft/trace/svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "weft/base/text.h"
#include "weft/trace/activity.h"
#include "weft/trace/exposure/waits.h"
#include "weft/trace/svg_text.h"

namespace weft::trace {
namespace {

using base::text;
using svg::escape;
using svg::px;

constexpr double kWidth = 1200;
constexpr double kMargin = 16;
constexpr double kLetter = 6.7;  // width of a letter of 11 px
constexpr double kTrack = 14;    // height of a lane
constexpr double kTrackStep = 16;
constexpr double kRankGap = 6;
constexpr double kCaption = 28;
constexpr double kWaiting = 4;  // height of a waiting span
constexpr double kTitleLine = 20;
constexpr std::size_t kTitleLetters = 128;  // letters of 16 px per line
constexpr double kThinnest = 0.3;           // a span is never drawn thinner

// Drawn part of a row: one run, its nodes by rank and lane.
struct Row {
  std::string caption;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  struct Node {
    const Span* span = nullptr;
    std::int64_t waited_ns = 0;  // from its begin
  };
  struct Track {
    std::string rank;  // on the first track of a rank
    std::string lane;
    std::vector<Node> nodes;
  };
  std::vector<Track> tracks;

  double step_ms() const { return static_cast<double>(end - begin) / 1e6; }
};

bool is_drawn(const Span& span) {
  return is_node(span) && (span.lane == kComputeLane || !communication_kind(span.lane).empty());
}

int last_run(const Picture::Row& row) {
  int last = 0;
  for (const Timeline& timeline : row.timelines) {
    for (const Span& span : timeline.spans) last = std::max(last, span.run);
  }
  return last;
}

std::string rank_name(const Timeline& timeline) {
  return timeline.label.empty() ? text("rank {}", timeline.rank) : timeline.label;
}

// Relative to the beginning of the step.
struct Extent {
  double begin_ms = 0, end_ms = 0;
};

Extent extent_of(const Span& node, const Row& row) {
  return {.begin_ms = static_cast<double>(node.begin_ns - row.begin) / 1e6,
          .end_ms = static_cast<double>(node.end_ns - row.begin) / 1e6};
}

// Drops spans and lanes outside the window. A rank's name moves to its first remaining lane.
void cut(double from_ms, double to_ms, Row& row) {
  std::vector<Row::Track> left;
  std::string rank;
  for (Row::Track& track : row.tracks) {
    if (!track.rank.empty()) rank = std::exchange(track.rank, {});
    std::erase_if(track.nodes, [&](const Row::Node& node) {
      const Extent extent = extent_of(*node.span, row);
      return extent.end_ms < from_ms || extent.begin_ms > to_ms;
    });
    if (track.nodes.empty()) continue;
    track.rank = std::exchange(rank, {});
    left.push_back(std::move(track));
  }
  row.tracks = std::move(left);
}

void add_rank(const Timeline& timeline, int run, const Waits& waits, Row& row) {
  std::map<std::pair<int, std::string>, std::vector<Row::Node>> lanes;
  for (const Span& span : timeline.spans) {
    if (span.run == run && is_drawn(span)) {
      lanes[{lane_position(span.lane), span.lane}].push_back(
          {.span = &span, .waited_ns = waits.waited_ns(timeline, span)});
    }
  }
  bool first = true;
  for (auto& [lane, nodes] : lanes) {
    row.tracks.push_back(
        {.rank = first ? rank_name(timeline) : "", .lane = lane.second, .nodes = std::move(nodes)});
    first = false;
  }
}

Row lay_out(const Picture::Row& source, const SvgOptions& options) {
  Row row{.caption = source.caption, .tracks = {}};
  const int run = options.run.value_or(last_run(source));
  bool any = false;
  const Waits waits(source.timelines, Clocks::Shared);
  for (const Timeline& timeline : source.timelines) {
    add_rank(timeline, run, waits, row);
    for (const Span& span : timeline.spans) {
      if (span.run != run) continue;
      row.begin = any ? std::min(row.begin, span.begin_ns) : span.begin_ns;
      row.end = any ? std::max(row.end, span.end_ns) : span.end_ns;
      any = true;
    }
  }
  if (source.step) {
    row.begin = source.step->begin_ns;
    row.end = source.step->end_ns;
  }
  return row;
}

// 1, 2 or 5 times a power of ten: about ten ticks fill the window.
double tick_of(double window_ms) {
  const double rough = std::max(window_ms, 1e-9) / 10;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const Picture& picture, const SvgOptions& options)
      : title_(picture.title), from_(options.from_ms) {
    double longest = 0;
    for (const Picture::Row& source : picture.rows) {
      rows_.push_back(lay_out(source, options));
      longest = std::max(longest, rows_.back().step_ms());
    }
    to_ = std::max(options.to_ms.value_or(longest), from_ + 1e-6);
    std::size_t rank_letters = 0, lane_letters = 0;
    for (Row& row : rows_) {
      cut(from_, to_, row);
      for (const Row::Track& track : row.tracks) {
        rank_letters = std::max(rank_letters, track.rank.size());
        lane_letters = std::max(lane_letters, track.lane.size());
      }
    }
    lane_right_ = kMargin + kLetter * static_cast<double>(rank_letters + lane_letters + 1);
    left_ = lane_right_ + 8;
  }

  std::string draw() {
    double y = 26;
    for (const std::string& words : svg::wrapped(title_, kTitleLetters)) {
      line(kMargin, y, "t", words);
      y += kTitleLine;
    }
    y = y - kTitleLine + 14;
    const double top = y;
    for (const Row& row : rows_) y = draw_row(row, y);
    draw_axis(top, y + 4);
    y = draw_legend(y + 44);
    // The axis lies under the spans, so the parts are joined at the end.
    return text(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\">\n"
        "{2}<rect class=\"paper\" width=\"{0}\" height=\"{1}\" rx=\"8\"/>\n{3}{4}</svg>\n",
        px(kWidth),
        px(y),
        svg::style(),
        axis_,
        body_);
  }

 private:
  double x_of(double ms) const {
    return left_ + (ms - from_) / (to_ - from_) * (kWidth - kMargin - left_);
  }

  void line(double x, double y, std::string_view style, std::string_view words) {
    body_ += text("<text{} x=\"{}\" y=\"{}\">{}</text>\n",
                  style.empty() ? "" : text(" class=\"{}\"", style),
                  px(x),
                  px(y),
                  escape(words));
  }

  std::string caption_of(const Row& row) const {
    std::string words = text("{}: {:.2f} ms a step", row.caption, row.step_ms());
    const bool whole = from_ <= 0 && to_ >= row.step_ms();
    return whole ? words : words + text(", of which {:.4g} to {:.4g} ms are shown", from_, to_);
  }

  double draw_row(const Row& row, double y) {
    line(kMargin, y + 18, "c", caption_of(row));
    y += kCaption;
    bool first = true;
    for (const Row::Track& track : row.tracks) {
      if (!track.rank.empty() && !first) y += kRankGap;
      first = false;
      if (!track.rank.empty()) line(kMargin, y + 11, "", track.rank);
      line(lane_right_, y + 11, "r", track.lane);
      draw_track(row, track, y);
      y += kTrackStep;
    }
    return y + 6;
  }

  // A span is a thick line, which is short to write. Spans of one colour form one group.
  void draw_track(const Row& row, const Row::Track& track, double y) {
    // The lane ends with the step.
    body_ += text("<path class=\"lane\" stroke-width=\"{}\" d=\"M{} {}H{}\"/>\n",
                  px(kTrack),
                  px(left_),
                  px(y + kTrack / 2),
                  px(x_of(std::clamp(row.step_ms(), from_, to_))));
    std::map<Activity, std::string> groups, waits;
    for (const Row::Node& node : track.nodes) {
      const auto [begin, end] = extent_of(*node.span, row);
      const double waited = static_cast<double>(node.waited_ns) / 1e6;
      const Activity activity = activity_of(*node.span);
      const double works = begin + waited, x = x_of(std::clamp(works, from_, to_));
      groups[activity] += text("<path d=\"M{} {}h{}\"><title>{} {:.3g} ms{}</title></path>\n",
                               px(x),
                               px(y + kTrack / 2),
                               px(std::max(x_of(std::min(end, to_)) - x, kThinnest)),
                               escape(node.span->name),
                               end - begin,
                               waited > 0 ? text(", waited {:.3g}", waited) : "");
      const double waits_from = x_of(std::max(begin, from_));
      if (x - waits_from < kThinnest) continue;
      waits[activity] += text("M{} {}h{}", px(waits_from), px(y + kTrack / 2), px(x - waits_from));
    }
    for (const auto& [activity, paths] : waits) {
      any_waits_ = true;
      body_ += text("<path stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"0.6\" d=\"{}\"/>\n",
                    colour_of(activity),
                    px(kWaiting),
                    paths);
    }
    for (const auto& [activity, paths] : groups) {
      used_.insert(activity);
      body_ += text("<g stroke=\"{}\" stroke-width=\"{}\">\n{}</g>\n",
                    colour_of(activity),
                    px(kTrack),
                    paths);
    }
  }

  void draw_axis(double top, double bottom) {
    const double tick = tick_of(to_ - from_);
    // Adding to 0 avoids "-0" as the ceiling of a small negative number.
    for (double n = 0 + std::ceil(from_ / tick - 1e-9); n * tick <= to_ * (1 + 1e-9); ++n) {
      const std::string x = px(x_of(n * tick));
      axis_ += text("<path class=\"tick\" d=\"M{} {}V{}\"/>\n", x, px(top), px(bottom));
      axis_ +=
          text("<text class=\"m\" x=\"{}\" y=\"{}\">{:.6g}</text>\n", x, px(bottom + 14), n * tick);
    }
    axis_ +=
        text("<text class=\"r\" x=\"{}\" y=\"{}\">ms</text>\n", px(left_ - 8), px(bottom + 14));
  }

  double draw_legend(double y) {
    double x = kMargin;
    const auto add = [&](std::string_view words, std::string_view colour, double height) {
      const double width = 34 + kLetter * static_cast<double>(words.size());
      if (x + width > kWidth) {
        x = kMargin;
        y += 18;
      }
      body_ += text("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"{}\" fill=\"{}\"/>\n",
                    px(x),
                    px(y - 4 - height / 2),
                    px(height),
                    colour);
      line(x + 17, y, "", words);
      x += width;
    };
    for (const Activity activity : used_) add(words_of(activity), colour_of(activity), 12);
    if (any_waits_) add("thin: it waits", "#8c959f", kWaiting);
    return y + 16;
  }

  std::string title_;
  double from_ = 0, to_ = 0;  // ms
  double lane_right_ = 0, left_ = 0;
  std::vector<Row> rows_;
  std::string axis_, body_;
  std::set<Activity> used_;
  bool any_waits_ = false;
};

}  // namespace

std::string to_svg(const Picture& picture, const SvgOptions& options) {
  return Drawing(picture, options).draw();
}

}  // namespace weft::trace
