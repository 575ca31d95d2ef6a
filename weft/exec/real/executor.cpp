#include "weft/exec/real/executor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error_context.h"
#include "weft/schedule/meeting.h"

namespace weft::exec {
namespace {

using schedule::Lane;
using trace::SpanKind;

SpanKind kind_of(tensor::WorkClass kind) {
  switch (kind) {
    case tensor::WorkClass::Gemm:
      return SpanKind::Gemm;
    case tensor::WorkClass::Attention:
      return SpanKind::Attention;
    case tensor::WorkClass::Memory:
      return SpanKind::Memory;
    case tensor::WorkClass::Copy:
      return SpanKind::Copy;
    case tensor::WorkClass::Communication:
      return SpanKind::Communication;
  }
  UNREACHABLE("work class {}", static_cast<int>(kind));
}

// Waits of every entry on other lanes: its named waits, and the last host node. That wait is left
// out if the previous entry of its lane has it.
std::vector<std::vector<int>> waits_between_lanes(const schedule::Graph& graph) {
  std::vector<std::vector<int>> waits;
  std::array<int, schedule::kLanes> last_host;  // by lane: last host node that an entry waited for
  last_host.fill(-1);
  int host = -1;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const schedule::Entry& entry = graph.entries[i];
    std::vector<int>& mine = waits.emplace_back();
    for (const int wait : entry.waits) {
      if (graph.entries[static_cast<std::size_t>(wait)].lane != entry.lane) mine.push_back(wait);
    }
    if (entry.lane == Lane::Host) {
      host = static_cast<int>(i);
      continue;
    }
    int& seen = last_host[static_cast<std::size_t>(entry.lane)];
    if (seen != host && std::ranges::find(mine, host) == mine.end()) mine.push_back(host);
    seen = host;
  }
  return waits;
}

// A node's bytes are the sum over its operations; its rows pass through all of them.
void add_work(trace::Span& node, const tensor::WorkSpan& work) {
  node.end_ns = work.end_ns;
  node.bytes += work.size.bytes;
  node.rows = std::max(node.rows, work.size.rows);
  if (!work.size.members.empty()) {
    node.members.assign(work.size.members.begin(), work.size.members.end());
  }
}

}  // namespace

Executor::Executor(const schedule::Graph& graph,
                   const Lanes& lanes,
                   const schedule::SendsOver& over)
    : graph_(graph), lanes_(lanes), over_(over), awaited_(graph.entries.size(), false) {
  for (const std::vector<int>& sends : over_) {
    for (const int send : sends) awaited_[static_cast<std::size_t>(send)] = true;
  }
  for (const schedule::Entry& entry : graph.entries) {
    names_.push_back(schedule::print(entry.node));
    for (const int wait : entry.waits) awaited_[static_cast<std::size_t>(wait)] = true;
  }
}

void Executor::run(const Body& body, Tracing tracing) {
  events_.assign(graph_.entries.size(), {});
  host_spans_.clear();
  if (tracing == Tracing::On) {
    if (described_.empty()) describe_nodes();
    start_recording();
  }
  issue_all(body, tracing);
  lanes_.synchronize();
  if (tracing == Tracing::On) collect_spans();
}

void Executor::start_recording() const {
  for (int i = 0; i < schedule::kLanes; ++i) {
    if (lanes_.has(static_cast<Lane>(i))) lanes_[static_cast<Lane>(i)].start_recording();
  }
}

void Executor::issue_all(const Body& body, Tracing tracing) {
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    try {
      issue(i, body, tracing);
    } catch (...) {
      fail(names_[i]);
    }
  }
}

// Called while an exception is handled. An exception from a stream already contains its node's
// name; the first error is the cause.
void Executor::fail(const std::string& name) const {
  const std::exception_ptr error = std::current_exception();
  lanes_.tell(error);
  const std::vector<std::exception_ptr> kept = lanes_.drain();
  for (int i = 0; i < schedule::kLanes; ++i) {
    if (lanes_.has(static_cast<Lane>(i))) lanes_[static_cast<Lane>(i)].take_recording();
  }
  if (std::ranges::find(kept, error) != kept.end()) std::rethrow_exception(kept.front());
  base::throw_at(name, error);
}

void Executor::issue(std::size_t i, const Body& body, Tracing tracing) {
  const schedule::Entry& entry = graph_.entries[i];
  if (entry.lane == Lane::Host) {
    const std::int64_t begin = tensor::now_ns();
    for (const int wait : entry.waits) {
      const tensor::Event& event = events_[static_cast<std::size_t>(wait)];
      if (event.stream != nullptr) event.stream->host_wait(event);
    }
    tensor::Stream& compute = lanes_[Lane::Compute];
    compute.set_label(names_[i]);
    body(entry.node, compute);
    if (tracing == Tracing::On) {
      trace::Span& span = host_spans_.emplace_back(described_[i]);
      span.run = traced_runs_;
      span.begin_ns = begin;
      span.end_ns = tensor::now_ns();
    }
    return;
  }
  tensor::Stream& stream = lanes_[entry.lane];
  stream.set_label(names_[i]);
  for (const int wait : entry.waits) {
    stream.wait(events_[static_cast<std::size_t>(wait)]);
    learn(stream, static_cast<std::size_t>(wait));
  }
  body(entry.node, stream);
  learn(stream, i);
  if (awaited_[i]) events_[i] = stream.record();
}

// Work after a receive comes after the sends that the message proves to be complete.
void Executor::learn(tensor::Stream& stream, std::size_t receive) const {
  if (receive >= over_.size()) return;
  for (const int send : over_[receive]) stream.learn(events_[static_cast<std::size_t>(send)]);
}

void Executor::describe_nodes() {
  const std::vector<std::vector<int>> awaited = waits_between_lanes(graph_);
  const schedule::Order order(graph_);
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    const schedule::Entry& entry = graph_.entries[i];
    const bool communicates = !trace::communication_kind(schedule::word(entry.lane)).empty();
    trace::Span& span = described_.emplace_back();
    span.name = span.node = names_[i];
    span.lane = schedule::word(entry.lane);
    span.kind = entry.lane == Lane::Host ? SpanKind::Host : SpanKind::Node;
    span.layer = entry.node.layer;
    span.micro_batch = entry.node.micro_batch;
    for (const int wait : awaited[i]) span.after.push_back(names_[static_cast<std::size_t>(wait)]);
    if (communicates || schedule::is_copy(entry.lane)) {
      span.coverable = order.runs_beside(static_cast<int>(i), Lane::Compute);
    }
    if (communicates) span.operation = schedule::print(schedule::meeting_of(entry.node));
    entry_of_.emplace(names_[i], i);
  }
}

void Executor::collect_spans() {
  for (trace::Span& span : host_spans_) spans_.push_back(std::move(span));
  for (int i = 0; i < schedule::kLanes; ++i) {
    if (lanes_.has(static_cast<Lane>(i))) collect_lane(static_cast<Lane>(i));
  }
  ++traced_runs_;
}

void Executor::collect_lane(Lane lane) {
  std::string_view open_node;
  std::size_t open = 0;
  for (const tensor::WorkSpan& work : lanes_[lane].take_recording()) {
    if (work.label != open_node) {
      open_node = work.label;
      open = spans_.size();
      const auto entry = entry_of_.find(open_node);
      CHECK(entry != entry_of_.end(), "work of '{}', which is no node of the graph", open_node);
      trace::Span& node = spans_.emplace_back(described_[entry->second]);
      // A host node's body may leave work on the compute lane; that work is shown as a node of that
      // lane.
      node.lane = schedule::word(lane);
      node.kind = SpanKind::Node;
      node.run = traced_runs_;
      node.begin_ns = work.begin_ns;
    }
    add_work(spans_[open], work);
    spans_.push_back({.name = std::string(work.name),
                      .node = std::string(open_node),
                      .lane = std::string(schedule::word(lane)),
                      .kind = kind_of(work.kind),
                      .run = traced_runs_,
                      .begin_ns = work.begin_ns,
                      .end_ns = work.end_ns});
  }
}

}  // namespace weft::exec
