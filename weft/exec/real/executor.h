// Executor: issues a graph's nodes in order on the streams of their lanes. For each entry it waits,
// calls the body, records an event and, when tracing, a span.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/exec/real/lanes.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify_union.h"
#include "weft/trace/span.h"

namespace weft::exec {

// Body of a node: enqueues its work on the stream and returns. A host node gets the compute stream;
// everything it waits for is complete when it is called.
using Body = std::function<void(const schedule::Node&, tensor::Stream&)>;

enum class Tracing { Off, On };

class Executor {
 public:
  // `graph` and `lanes` must outlive the executor and everything it enqueues. `over`: sends that a
  // receive proves to be complete.
  Executor(const schedule::Graph& graph, const Lanes& lanes, const schedule::SendsOver& over = {});

  // Runs one step and waits for its end; throws the first error with the node's name. No work is in
  // flight when it returns or throws, so the bodies' data may be freed.
  void run(const Body& body, Tracing tracing);

  const schedule::Graph& graph() const { return graph_; }

  // Returns the spans of traced runs, by lane: each node, and the operations inside it.
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
  std::vector<std::string> names_;     // by entry
  std::vector<bool> awaited_;          // true if some entry waits for it
  std::vector<tensor::Event> events_;  // end of each entry in this run
  // by entry: span without times and sizes; see describe_nodes
  std::vector<trace::Span> described_;
  std::map<std::string, std::size_t, std::less<>> entry_of_;  // by name
  std::vector<trace::Span> host_spans_;
  std::vector<trace::Span> spans_;
  int traced_runs_ = 0;
};

}  // namespace weft::exec
