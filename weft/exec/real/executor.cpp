#include "weft/exec/real/executor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error_context.h"

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

}  // namespace

Executor::Executor(const schedule::Graph& graph, const Lanes& lanes)
    : graph_(graph), lanes_(lanes), awaited_(graph.entries.size(), false) {
  for (const schedule::Entry& entry : graph.entries) {
    names_.push_back(schedule::print(entry.node));
    for (const int wait : entry.waits) awaited_[static_cast<std::size_t>(wait)] = true;
  }
}

void Executor::run(const Body& body, Tracing tracing) {
  events_.assign(graph_.entries.size(), {});
  host_spans_.clear();
  if (tracing == Tracing::On) start_recording();
  issue_all(body);
  lanes_.synchronize();
  if (tracing == Tracing::On) collect_spans();
}

void Executor::start_recording() const {
  for (int i = 0; i < schedule::kLanes; ++i) {
    if (lanes_.has(static_cast<Lane>(i))) lanes_[static_cast<Lane>(i)].start_recording();
  }
}

void Executor::issue_all(const Body& body) {
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    try {
      issue(i, body);
    } catch (...) {
      fail(names_[i]);
    }
  }
}

// Called while an exception is handled. What a stream threw carries the name of its node already.
void Executor::fail(const std::string& name) const {
  const std::exception_ptr error = std::current_exception();
  const std::vector<std::exception_ptr> kept = lanes_.drain();
  for (int i = 0; i < schedule::kLanes; ++i) {
    if (lanes_.has(static_cast<Lane>(i))) lanes_[static_cast<Lane>(i)].take_recording();
  }
  if (std::ranges::find(kept, error) != kept.end()) std::rethrow_exception(error);
  base::throw_at(name, error);
}

void Executor::issue(std::size_t i, const Body& body) {
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
    host_spans_.push_back({.name = names_[i],
                           .node = names_[i],
                           .lane = std::string(schedule::word(Lane::Host)),
                           .kind = SpanKind::Host,
                           .run = traced_runs_,
                           .begin_ns = begin,
                           .end_ns = tensor::now_ns()});
    return;
  }
  tensor::Stream& stream = lanes_[entry.lane];
  stream.set_label(names_[i]);
  for (const int wait : entry.waits) stream.wait(events_[static_cast<std::size_t>(wait)]);
  body(entry.node, stream);
  if (awaited_[i]) events_[i] = stream.record();
}

void Executor::collect_spans() {
  for (trace::Span& span : host_spans_) spans_.push_back(std::move(span));
  for (int i = 0; i < schedule::kLanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    if (!lanes_.has(lane)) continue;
    const std::string lane_name(schedule::word(lane));
    std::string open_node;
    std::size_t open = 0;
    for (const tensor::WorkSpan& work : lanes_[lane].take_recording()) {
      if (work.label != open_node) {
        open_node = std::string(work.label);
        open = spans_.size();
        spans_.push_back({.name = open_node,
                          .node = open_node,
                          .lane = lane_name,
                          .kind = SpanKind::Node,
                          .run = traced_runs_,
                          .begin_ns = work.begin_ns,
                          .end_ns = work.end_ns});
      }
      spans_[open].end_ns = work.end_ns;
      spans_.push_back({.name = std::string(work.name),
                        .node = open_node,
                        .lane = lane_name,
                        .kind = kind_of(work.kind),
                        .run = traced_runs_,
                        .begin_ns = work.begin_ns,
                        .end_ns = work.end_ns});
    }
  }
  ++traced_runs_;
}

}  // namespace weft::exec
