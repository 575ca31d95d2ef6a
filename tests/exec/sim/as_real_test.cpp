// Simulation and executor give equal spans for a graph, except for times.
#include <gtest/gtest.h>

#include "tests/exec/real/toy_support.h"
#include "tests/exec/sim/toy_support.h"
#include "weft/exec/sim/timelines.h"

namespace weft::exec {
namespace as_real_test {

const char* const kLanes =
    "compute F0.embed\n"
    "compute 0F0.route\n"
    "ep 0F0.counts < 0F0.route\n"
    "compute 1D1.mlp\n"
    "host 0F0.sizes < 0F0.counts\n"
    "compute 0F0.permute\n"
    "compute 0F0.shared\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "pp_receive_previous c1F0.receive\n"
    "dp reduce.dense#2 < F0.embed\n"
    "compute 0F0.experts < 0F0.dispatch c1F0.receive\n"
    "host clip < reduce.dense#2\n"
    "compute optimizer\n";
const char* const kOneLane =
    "compute 0F0.mlp\n"
    "host clip < 0F0.mlp\n"
    "compute optimizer\n"
    "compute 0W0.mlp\n";

// Node spans without times; members are set by the communicator.
std::vector<trace::Span> nodes_of(const std::vector<trace::Span>& spans) {
  std::vector<trace::Span> nodes;
  for (trace::Span span : spans) {
    if (!trace::is_node(span)) continue;
    span.begin_ns = span.end_ns = 0;
    span.members.clear();
    nodes.push_back(std::move(span));
  }
  return nodes;
}

TEST(ClockAndExecutor, GiveTheSameNodeSpans) {
  for (const std::string text : {kLanes, kOneLane}) {
    Toy real(text);
    real.run(
        [](const std::string& node, tensor::Stream& stream) {
          if (node != "0F0.sizes" && node != "clip") enqueue(stream, [] {});
        },
        Tracing::On);
    sim::ToyStep clock({text}, {});
    clock.step().members = [](int, const schedule::Entry&) { return std::vector{0}; };
    const std::vector<trace::Span> measured = nodes_of(real.executor().take_spans());
    const std::vector<trace::Span> predicted =
        nodes_of(sim::timelines_of(clock.step(), clock.run())[0].spans);
    ASSERT_EQ(measured.size(), predicted.size());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      EXPECT_EQ(measured[i], predicted[i]) << measured[i].name << " and " << predicted[i].name;
      EXPECT_EQ(measured[i].after, predicted[i].after) << measured[i].name;
    }
  }
}

}  // namespace as_real_test
}  // namespace weft::exec
