// Compares the figures on prices in docs/plan.md and the README with the output of `weft plan`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "tests/meta/page_support.h"
#include "tests/meta/shell_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/median.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace plan_page_test {

using base::Json;
using base::text;

std::string page_text(const std::string& path) {
  return base::read_text(WEFT_SOURCE_DIR "/" + path);
}

Json validated(const std::string& table) {
  const Ran ran = shell("'" WEFT_BINARY "' plan --json --validate='" WEFT_SOURCE_DIR
                        "/tests/golden/published_" +
                        table + ".csv' 2>/dev/null");
  EXPECT_EQ(ran.code, 0) << ran.said;
  return base::parse_json(ran.said);
}

// Row of a table, by the head of each cell.
using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const std::string& cell : base::split(line.substr(1, line.rfind('|') - 1), '|')) {
    cells.push_back(text("{}", fmt::join(words_of(cell), " ")));
  }
  return cells;
}

// First table after `marker`, without its head.
std::vector<Row> table_after(const std::string& page, const std::string& marker) {
  const std::size_t begin = page.find(marker);
  if (begin == page.npos) return {};
  std::vector<std::string> head;
  std::vector<Row> rows;
  for (const std::string& line : lines_of(page.substr(begin))) {
    if (!line.starts_with('|')) {
      if (!head.empty()) break;
      continue;
    }
    const std::vector<std::string> cells = cells_of(line);
    if (head.empty()) head = cells;
    if (cells == head || line.starts_with("|-")) continue;
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(head.size(), cells.size()); ++i) row[head[i]] = cells[i];
  }
  return rows;
}

// "DeepSeek-V3" and "DeepSeekV3" are one name.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const unsigned char c : name) {
    if (std::isalnum(c)) letters += static_cast<char>(std::tolower(c));
  }
  return letters;
}

// Error of a percentage on a page; empty: it is `share`, rounded.
std::string wrong_percent(const std::string& written, double share) {
  const std::string printed = text("{:+.1f} %", 100 * share);
  if (!written.ends_with(" %")) return text("'{}' is no percent, printed is {}", written, printed);
  // Pages write tenths; another compiler may round a half to the other side.
  const double off = std::abs(std::strtod(written.c_str(), nullptr) - 100 * share);
  return off <= 0.06 ? "" : text("'{}' is printed as {}", written, printed);
}

struct Errors {
  double median = 0, p90 = 0, largest = 0;
};

Errors errors_of(std::vector<double> errors) {
  std::ranges::sort(errors);
  const std::size_t place = (9 * errors.size() + 9) / 10;
  return {.median = base::median(errors), .p90 = errors[place - 1], .largest = errors.back()};
}

bool is_of(const Json& priced, const std::string& model, const std::string& use) {
  return (model == "all" || letters_of(priced["model"].get<std::string>()) == letters_of(model)) &&
         priced["used_for_fit"].get<bool>() == (use == "fitted");
}

// Errors in a table of models, compared with the priced rows.
Complaints error_complaints(const std::vector<Row>& table, const Json& priced) {
  Complaints complaints;
  for (const Row& row : table) {
    const std::string& model = row.at("model");
    std::vector<double> errors;
    for (const Json& one : priced) {
      if (is_of(one, model, row.at("use"))) errors.push_back(std::abs(one["error"].get<double>()));
    }
    if (row.at("rows") != std::to_string(errors.size())) {
      complaints.push_back(
          text("{}: '{}' rows, priced are {}", model, row.at("rows"), errors.size()));
    }
    if (errors.empty()) continue;
    const Errors found = errors_of(errors);
    for (const auto& [column, share] : {std::pair("median error", found.median),
                                        std::pair("90th percentile", found.p90),
                                        std::pair("largest error", found.largest)}) {
      if (!row.contains(column)) continue;
      const std::string wrong = wrong_percent(row.at(column), share);
      if (!wrong.empty()) complaints.push_back(text("{}, {}: {}", model, column, wrong));
    }
  }
  return complaints;
}

Complaints gain_complaints(const std::vector<Row>& table, const Json& pairs) {
  Complaints complaints;
  if (table.size() != pairs.size()) {
    complaints.push_back(text("{} pairs, priced are {}", table.size(), pairs.size()));
  }
  for (std::size_t i = 0; i < std::min(table.size(), pairs.size()); ++i) {
    for (const auto& [column, key] :
         {std::pair("measured", "published"), std::pair("predicted", "predicted")}) {
      const std::string wrong = wrong_percent(table[i].at(column), pairs[i][key].get<double>());
      if (!wrong.empty()) complaints.push_back(text("pair {}, {}: {}", i + 1, column, wrong));
    }
  }
  return complaints;
}

// Priced models without a row of their own.
Complaints forgotten_models(const std::vector<Row>& table, const Json& priced) {
  Complaints forgotten;
  for (const Json& one : priced) {
    const bool told = std::ranges::any_of(table, [&](const Row& row) {
      return row.at("model") != "all" && is_of(one, row.at("model"), row.at("use"));
    });
    const std::string model = one["model"];
    if (!told && std::ranges::find(forgotten, model) == forgotten.end()) {
      forgotten.push_back(model);
    }
  }
  return forgotten;
}

// Table of docs/plan.md after the command that prices `table`.
std::vector<Row> told_of(const std::string& table) {
  const std::string page = page_text("docs/plan.md");
  const std::size_t section = page.find("\n## How good it is\n");
  EXPECT_NE(section, page.npos);
  return table_after(page.substr(section),
                     "`weft plan --validate=tests/golden/published_" + table + ".csv`");
}

const Json& throughput() {
  static const Json json = validated("throughput");
  return json;
}

TEST(PlanPage, AStaleFigureIsNoticed) {
  const Json priced = base::parse_json(R"([
      {"model": "Dense_8B", "used_for_fit": false, "error": -0.043},
      {"model": "Dense_8B", "used_for_fit": false, "error": 0.021}])");
  const auto complaints = [&](const std::string& row) {
    const std::string head =
        "said before\n\n| model | use | rows | median error | largest error |\n";
    const auto table = table_after(head + "|---|---|---|---|---|\n" + row + "\n\nbehind", "said");
    EXPECT_EQ(table.size(), 1u) << row;
    return error_complaints(table, priced).size();
  };
  EXPECT_EQ(complaints("| Dense 8B | held out | 2 | 3.2 % | 4.3 % |"), 0u);
  EXPECT_EQ(complaints("| all | held out | 2 | 3.2 % | 4.3 % |"), 0u);
  EXPECT_EQ(complaints("| Dense 8B | held out | 2 | 3.2 % | 4.4 % |"), 1u);
  EXPECT_EQ(complaints("| Dense 8B | held out | 3 | 3.2 | |"), 3u);
  EXPECT_EQ(complaints("| Dense 8B | fitted | 2 | 3.2 % | 4.3 % |"), 1u);
  const Json pairs = base::parse_json(R"([{"published": 0.317, "predicted": -0.014}])");
  EXPECT_EQ(gain_complaints({{{"measured", "+31.7 %"}, {"predicted", "-1.4 %"}}}, pairs).size(),
            0u);
  EXPECT_EQ(gain_complaints({{{"measured", "+31.7 %"}, {"predicted", "+1.4 %"}}}, pairs).size(),
            1u);
}

TEST(PlanPage, ErrorsOfModelsAreThoseThatValidatePrints) {
  const Json others = validated("others");
  for (const auto& [name, json] :
       {std::pair("throughput", &throughput()), std::pair("others", &others)}) {
    const Json& priced = (*json)["rows"];
    const std::vector<Row> table = told_of(name);
    ASSERT_FALSE(table.empty()) << name;
    const Complaints complaints = error_complaints(table, priced);
    EXPECT_TRUE(complaints.empty()) << "docs/plan.md, " << name << ":\n" << listed(complaints);
    const Complaints forgotten = forgotten_models(table, priced);
    EXPECT_TRUE(forgotten.empty()) << "docs/plan.md does not tell of:\n" << listed(forgotten);
  }
}

// Number of rows listed individually, and the worst GPU.
TEST(PlanPage, WhatStandsBehindTheTableIsTrue) {
  std::size_t far = 0;
  std::map<std::string, std::vector<double>> held_out;
  for (const Json& row : throughput()["rows"]) {
    const double error = std::abs(row["error"].get<double>());
    if (error > 0.2) ++far;
    if (row["used_for_fit"].get<bool>()) continue;
    held_out[row["model"].get<std::string>() + row["system"].get<std::string>()].push_back(error);
  }
  double largest = 0;
  for (const auto& [name, errors] : held_out) largest = std::max(largest, base::median(errors));
  const std::string page = page_text("docs/plan.md");
  for (const std::string& said :
       {text("The largest median of a model held out on one kind of GPU is {:.1f} %.",
             100 * largest),
        text("{} rows are more than 20 % off.", far)}) {
    EXPECT_NE(page.find(said), page.npos) << "docs/plan.md does not say: " << said;
  }
}

TEST(PlanPage, GainsOfKnobsAreThoseThatValidatePrints) {
  const Complaints complaints = gain_complaints(told_of("pairs"), validated("pairs")["pairs"]);
  EXPECT_TRUE(complaints.empty()) << "docs/plan.md:\n" << listed(complaints);
}

TEST(PlanPage, ErrorsInTheReadmeAreThoseThatValidatePrints) {
  std::vector<Row> table;
  for (const Row& row :
       table_after(page_text("README.md"), "What the planner says, held against")) {
    const std::string& model = row.at("model");  // "DeepSeek-V3, H100 to GB300, held out"
    table.push_back({{"model", model.substr(0, model.find(','))},
                     {"use", model.substr(model.rfind(", ") + 2)},
                     {"rows", row.at("rows")},
                     {"median error", row.at("median error of TFLOP/s a GPU")}});
  }
  ASSERT_FALSE(table.empty());
  const Complaints complaints = error_complaints(table, throughput()["rows"]);
  EXPECT_TRUE(complaints.empty()) << "README.md:\n" << listed(complaints);
}

// Best shape of the page's search and its steps by mode, from a search of that shape alone, which
// takes a second. Other shapes are not checked.
TEST(PlanPage, TheBestShapeOfItsExampleIsPricedAsShown) {
  const std::string command = "qwen3_30b_a3b --gpus=64 --gpu=h100 --gbs=1024 --seq=4096 --top=1";
  ASSERT_NE(page_text("docs/plan.md").find("`weft plan " + command + "`"), std::string::npos);
  std::string example;
  for (const Fence& fence : parse_page({.path = "", .text = page_text("docs/plan.md")}).fences) {
    if (fence.text.starts_with("qwen3_30b_a3b on 64 x h100")) example = fence.text;
  }
  const std::size_t begin = example.find("  1  tp 1, pp 1, vpp 1, cp 1, ep 16, etp 1, mbs 2,");
  ASSERT_NE(begin, example.npos) << "another shape: pin it below";
  const Ran ran =
      shell("'" WEFT_BINARY "' plan " + command + " tp=1 pp=1 cp=1 ep=16 etp=1 mbs=2 2>/dev/null");
  ASSERT_EQ(ran.code, 0) << ran.said;
  const std::string best = example.substr(begin, example.find("\n\n", begin) - begin);
  EXPECT_NE(ran.said.find(best), std::string::npos) << best << "\nis not in\n" << ran.said;
  int steps = 0;
  for (const std::string& line : lines_of(example)) {
    const auto is_step_in = [&](const char* knob) { return line.starts_with(knob); };
    if (!std::ranges::any_of(
            std::vector{"  dispatcher ", "  offload ", "  host state ", "  graphs "},
            is_step_in)) {
      continue;
    }
    ++steps;
    EXPECT_NE(ran.said.find("\n" + line + "\n"), std::string::npos) << line << "\n" << ran.said;
  }
  EXPECT_GE(steps, 4);
}

}  // namespace plan_page_test
}  // namespace weft::meta
