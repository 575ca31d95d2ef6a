#include "weft/cli/memory/memory_picture.h"

#include <algorithm>
#include <array>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/trace/svg_text.h"

namespace weft::cli {
namespace {

using base::text;
using trace::svg::escape;
using trace::svg::px;
using train::BytesByTag;

constexpr double kWidth = 1200, kMargin = 16, kLeft = 90, kRank = 130, kCaption = 26;
constexpr double kAbove = 1.02, kLabel = 14;  // space above the top level; height of a number
constexpr double kTitleLine = 20;
constexpr std::size_t kTitleLetters = 128;  // letters of 16 px in a line
constexpr std::size_t kMostColumns = 800;
// By tag in stacking order.
constexpr std::array<const char*, tensor::kDeviceTags> kColours =
    {"#4d6a9a", "#f2b84b", "#596673", "#7f8f1f", "#2e9e5b", "#d0c4b0"};

std::string human(double bytes) { return base::human_bytes(bytes); }

// Keeps the node with the most bytes in each column.
std::vector<BytesByTag> columns_of(const std::vector<BytesByTag>& timeline) {
  const std::size_t nodes = timeline.size(), columns = std::min(nodes, kMostColumns);
  std::vector<BytesByTag> most;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto begin = timeline.begin() + static_cast<std::ptrdiff_t>(i * nodes / columns);
    const auto end = timeline.begin() + static_cast<std::ptrdiff_t>((i + 1) * nodes / columns);
    most.push_back(*std::max_element(begin, end, [](const BytesByTag& a, const BytesByTag& b) {
      return train::total_of(a) < train::total_of(b);
    }));
  }
  return most;
}

class Drawing {
 public:
  Drawing(const MemoryReport& report, const std::string& title) : report_(report), title_(title) {
    for (const train::PredictedMemory& stage : report.forecast.stages) {
      top_ = std::max(top_, static_cast<double>(stage.peak_total_bytes));
    }
    if (const auto& device = report.room.device) {
      top_ = std::max(top_, static_cast<double>(device->bytes()));
    }
    top_ *= kAbove;
  }

  std::string draw() {
    double y = 26;
    for (const std::string& words : trace::svg::wrapped(title_, kTitleLetters)) {
      line(kMargin, y, "t", words);
      y += kTitleLine;
    }
    y = y - kTitleLine + 14;
    for (std::size_t stage = 0; stage < report_.forecast.stages.size(); ++stage) {
      y = draw_rank(stage, y);
    }
    y = draw_legend(y + 22);
    return text(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\">\n"
        "{2}<rect class=\"paper\" width=\"{0}\" height=\"{1}\" rx=\"8\"/>\n{3}</svg>\n",
        px(kWidth),
        px(y),
        trace::svg::style(),
        body_);
  }

 private:
  double x_of(double share) const { return kLeft + share * (kWidth - kMargin - kLeft); }
  static double height_of(double bytes, double top) { return bytes / top * kRank; }

  void line(double x, double y, std::string_view style, std::string_view words) {
    body_ += text("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n",
                  style,
                  px(x),
                  px(y),
                  escape(words));
  }

  double draw_rank(std::size_t stage, double y) {
    const train::PredictedMemory& memory = report_.forecast.stages[stage];
    const train::PeakMoment& peak = memory.at_peak;
    line(kMargin,
         y + 18,
         "c",
         text("pp rank {}: peak {}{}{}",
              stage,
              human(static_cast<double>(memory.peak_total_bytes)),
              peak.node.empty() ? "" : " at ",
              peak.node));
    const double bottom = y + kCaption + kRank;
    const std::vector<BytesByTag> columns = columns_of(memory.timeline);
    for (int tag = tensor::kDeviceTags - 1; tag >= 0; --tag) draw_area(columns, tag, bottom);
    draw_levels(bottom);
    const bool is_drawn = peak.phase == train::Phase::Training && !memory.timeline.empty();
    if (is_drawn) {
      body_ += text("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"#cf222e\"/>\n",
                    px(x_of((static_cast<double>(peak.issued) + 0.5) /
                            static_cast<double>(memory.timeline.size()))),
                    px(bottom - height_of(static_cast<double>(memory.peak_total_bytes), top_)));
    }
    line(kLeft,
         bottom + 14,
         "",
         text("{} as issued", base::counted(std::ssize(memory.timeline), "node")));
    return bottom + 22;
  }

  // Area of this tag and all below; later areas cover the lower part.
  void draw_area(const std::vector<BytesByTag>& columns, int tag, double bottom) {
    if (columns.empty()) return;
    std::string path = text("M{} {}", px(kLeft), px(bottom));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      double bytes = 0;
      for (int below = 0; below <= tag; ++below) {
        bytes += static_cast<double>(columns[i][base::at(below)]);
      }
      const double share = 1.0 / static_cast<double>(columns.size());
      path += text("V{}H{}",
                   px(bottom - height_of(bytes, top_)),
                   px(x_of(static_cast<double>(i + 1) * share)));
    }
    body_ += text("<path fill=\"{}\" d=\"{}V{}Z\"/>\n", kColours[base::at(tag)], path, px(bottom));
  }

  // Draws the picture's peak and the GPU's memory; if their numbers overlap, only the latter.
  void draw_levels(double bottom) {
    const double top = top_ / kAbove;
    const auto& device = report_.room.device;
    const double room = device ? static_cast<double>(device->bytes()) : 0;
    const bool are_apart = !device || height_of(top - room, top_) >= kLabel;
    if (are_apart) draw_level(top, bottom, "#d0d7de");
    if (device) draw_level(room, bottom, "#cf222e");
  }

  void draw_level(double bytes, double bottom, const char* colour) {
    const double y = bottom - height_of(bytes, top_);
    body_ += text("<path stroke=\"{}\" d=\"M{} {}H{}\"/>\n",
                  colour,
                  px(kLeft),
                  px(y),
                  px(kWidth - kMargin));
    line(kLeft - 6, y + 4, "r", human(bytes));
  }

  double draw_legend(double y) {
    double x = kMargin;
    for (int tag = 0; tag < tensor::kDeviceTags; ++tag) {
      body_ += text("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                    px(x),
                    px(y - 10),
                    kColours[base::at(tag)]);
      line(x + 17, y, "", tensor::name_of(static_cast<tensor::Tag>(tag)));
      x += 130;
    }
    const auto& device = report_.room.device;
    if (!device) return y + 16;
    line(kMargin, y + 18, "", "red line: what a run may take of " + device->name);
    return y + 34;
  }

  const MemoryReport& report_;
  const std::string title_;
  double top_ = 1;
  std::string body_;
};

}  // namespace

std::string to_svg(const MemoryReport& report, const std::string& title) {
  return Drawing(report, title).draw();
}

}  // namespace weft::cli
