// Toy steps for the executor's tests: graphs from text, bodies as small lambdas.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "weft/exec/real/executor.h"
#include "weft/kernels/device.h"
#include "weft/schedule/text/text.h"
#include "weft/tensor/transfers.h"

namespace weft::exec {

// A graph with its streams and executor.
class Toy {
 public:
  explicit Toy(schedule::Graph graph)
      : graph_(std::move(graph)), lanes_(*device_, graph_), executor_(graph_, lanes_) {}
  explicit Toy(const std::string& text) : Toy(schedule::parse_graph(text)) {}

  const schedule::Graph& graph() const { return graph_; }
  const Lanes& lanes() const { return lanes_; }
  Executor& executor() { return executor_; }

  // The body gets the node's text.
  using TextBody = std::function<void(const std::string&, tensor::Stream&)>;
  void run(const TextBody& body, Tracing tracing = Tracing::Off) {
    executor_.run([&](const schedule::Node& node,
                      tensor::Stream& stream) { body(schedule::print(node), stream); },
                  tracing);
  }

 private:
  const std::unique_ptr<tensor::Device> device_ = kernels::make_cpu_device();
  schedule::Graph graph_;
  Lanes lanes_;
  Executor executor_;
};

inline void enqueue(tensor::Stream& stream, std::function<void()> work) {
  stream.enqueue_host("toy",
                      tensor::WorkClass::Memory,
                      [work = std::move(work)](tensor::Transfers&) { work(); });
}

inline void sleep_us(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

}  // namespace weft::exec
