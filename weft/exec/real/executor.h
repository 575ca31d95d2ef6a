// The doing: issues a graph's nodes in order on the streams of their lanes: wait, call, record,
// span.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/exec/real/lanes.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify.h"
#include "weft/trace/span.h"

namespace weft::exec {

// What a node does: enqueues its work on the stream and returns. Host nodes get the compute stream,
// and what they wait for is over when they are called.
using Body = std::function<void(const schedule::Node&, tensor::Stream&)>;

enum class Tracing { Off, On };

class Executor {
 public:
  // The first two must outlive the executor and everything it enqueues. `over`: what receives tell
  // of sends.
  Executor(const schedule::Graph& graph, const Lanes& lanes, const schedule::SendsOver& over = {});

  // Runs one step and waits for its end; throws the first error with the node's name. Either way no
  // work is under way when it returns, so that what the bodies refer to may go.
  void run(const Body& body, Tracing tracing);

  const schedule::Graph& graph() const { return graph_; }

  // Spans of the runs with tracing on, by lane: each node, and the operations inside it.
  std::vector<trace::Span> take_spans() { return std::exchange(spans_, {}); }

 private:
  void issue_all(const Body& body, Tracing tracing);
  void issue(std::size_t entry, const Body& body, Tracing tracing);
  void learn(tensor::Stream& stream, std::size_t receive) const;
  void start_recording() const;
  [[noreturn]] void fail(const std::string& name) const;
  void describe_nodes();
  void collect_spans();
  void collect_lane(schedule::Lane lane);

  const schedule::Graph& graph_;
  const Lanes& lanes_;
  const schedule::SendsOver over_;
  std::vector<std::string> names_;      // of each entry
  std::vector<bool> awaited_;           // by some entry
  std::vector<tensor::Event> events_;   // the end of each entry, of this run
  std::vector<trace::Span> described_;  // each entry's span but for when and how much; see
                                        // describe_nodes
  std::map<std::string, std::size_t, std::less<>> entry_of_;  // by name
  std::vector<trace::Span> host_spans_;
  std::vector<trace::Span> spans_;
  int traced_runs_ = 0;
};

}  // namespace weft::exec
