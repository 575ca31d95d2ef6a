// Effect of a failing node on a step: its name is in the error, and no work remains in flight.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/exec/real/toy_support.h"
#include "weft/base/error.h"

namespace weft::exec {
namespace failure_test {

using schedule::Lane;

const char* const kStep =
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "compute 0F0.experts < 0F0.dispatch\n";

const char* const kLocal = "compute 0F0.route\nhost 0F0.sizes < 0F0.route\ncompute 0F0.experts\n";

template <typename Error>
std::string error_of(Toy& toy, const Toy::TextBody& body, Tracing tracing = Tracing::Off) {
  try {
    toy.run(body, tracing);
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

Toy::TextBody body_that_throws(const std::string& where) {
  return [where](const std::string& node, tensor::Stream&) {
    if (node == where) throw base::SystemError("link down");
  };
}

Toy::TextBody work_that_throws(const std::string& where) {
  return [where](const std::string& node, tensor::Stream& stream) {
    enqueue(stream, [fails = node == where] {
      if (fails) throw base::SystemError("link down");
    });
  };
}

TEST(ExecutorFailure, AnErrorInABodyNamesTheNode) {
  Toy toy(kStep);
  EXPECT_EQ(error_of<base::SystemError>(toy, body_that_throws("0F0.dispatch")),
            "0F0.dispatch: link down");
  Toy local(kLocal);
  EXPECT_EQ(error_of<base::SystemError>(local, body_that_throws("0F0.sizes")),
            "0F0.sizes: link down");
}

TEST(ExecutorFailure, AnErrorInStreamWorkNamesTheNodeOnce) {
  Toy toy(kStep);
  EXPECT_EQ(error_of<base::SystemError>(toy, work_that_throws("0F0.dispatch")),
            "0F0.dispatch (toy): link down");
  Toy local(kLocal);
  EXPECT_EQ(error_of<base::SystemError>(local, work_that_throws("0F0.experts")),
            "0F0.experts (toy): link down");
}

TEST(ExecutorFailure, AHostNodeReportsTheNodeItWaitedFor) {
  Toy toy("ep 0F0.counts\nhost 0F0.sizes < 0F0.counts\n");
  EXPECT_EQ(error_of<base::SystemError>(toy, work_that_throws("0F0.counts")),
            "0F0.counts (toy): link down");
}

TEST(ExecutorFailure, WorkOfAHostNodeCarriesItsName) {
  Toy toy("compute 0F0.route\nep 0F0.counts\nhost 0F0.sizes < 0F0.counts\n");
  EXPECT_EQ(error_of<base::SystemError>(toy, work_that_throws("0F0.sizes")),
            "0F0.sizes (toy): link down");
}

TEST(ExecutorFailure, TheKindOfErrorIsKept) {
  const auto throws = [](auto error) {
    return [error](const std::string&, tensor::Stream&) { throw error; };
  };
  Toy toy(kStep);
  EXPECT_EQ(error_of<base::ConfigError>(toy, throws(base::ConfigError("bad"))), "0F0.permute: bad");
  EXPECT_EQ(error_of<base::InternalError>(toy, throws(base::InternalError("bug"))),
            "0F0.permute: bug");
  EXPECT_EQ(error_of<base::InternalError>(toy, throws(std::out_of_range("at"))), "0F0.permute: at");
  EXPECT_EQ(error_of<base::SystemError>(toy, throws(std::bad_alloc())),
            "0F0.permute: out of memory");
  EXPECT_EQ(error_of<base::InternalError>(toy, throws(42)),
            "0F0.permute: an exception of unknown type");
}

TEST(ExecutorFailure, StreamWorkMayThrowAnything) {
  Toy toy(kStep);
  EXPECT_EQ(error_of<base::InternalError>(toy,
                                          [](const std::string&, tensor::Stream& stream) {
                                            enqueue(stream, [] { throw 42; });
                                          }),
            "0F0.permute (toy): an exception of unknown type");
}

// Data of the work is freed when run() throws, so no work may remain.
TEST(ExecutorFailure, NothingIsUnderWayAfterAnErrorInABody) {
  Toy toy(kStep);
  std::atomic<int> finished = 0;
  EXPECT_EQ(error_of<base::SystemError>(toy,
                                        [&](const std::string& node, tensor::Stream& stream) {
                                          if (node == "0F0.experts") throw base::SystemError("no");
                                          enqueue(stream, [&] {
                                            sleep_us(10000);
                                            ++finished;
                                          });
                                        }),
            "0F0.experts: no");
  EXPECT_EQ(finished, 2);
}

TEST(ExecutorFailure, NothingIsUnderWayAfterAnErrorInAnotherLane) {
  Toy toy("compute 0F0.experts\nep 0F0.dispatch\n");
  std::atomic<bool> finished = false;
  std::promise<void> begun;
  EXPECT_EQ(error_of<base::SystemError>(toy,
                                        [&](const std::string& node, tensor::Stream& stream) {
                                          if (node == "0F0.experts") {
                                            return enqueue(stream, [&] {
                                              begun.get_future().wait();
                                              throw base::SystemError("no");
                                            });
                                          }
                                          enqueue(stream, [&] {
                                            begun.set_value();
                                            sleep_us(20000);
                                            finished = true;
                                          });
                                        }),
            "0F0.experts (toy): no");
  EXPECT_TRUE(finished);
}

TEST(ExecutorFailure, WhatDependsOnAFailedNodeIsSkipped) {
  Toy toy(kStep);
  std::atomic<bool> ran = false;
  error_of<base::SystemError>(toy, [&](const std::string& node, tensor::Stream& stream) {
    enqueue(stream, [&, node] {
      if (node == "0F0.dispatch") throw base::SystemError("no");
      if (node == "0F0.experts") ran = true;
    });
  });
  EXPECT_FALSE(ran);
}

TEST(ExecutorFailure, AfterAnErrorInABodyTheStreamsAreWell) {
  Toy toy(kStep);
  EXPECT_EQ(error_of<base::SystemError>(toy, body_that_throws("0F0.dispatch"), Tracing::On),
            "0F0.dispatch: link down");
  int ran = 0;
  toy.run([&](const std::string&, tensor::Stream& stream) { enqueue(stream, [&] { ++ran; }); });
  EXPECT_EQ(ran, 3);
  EXPECT_TRUE(toy.lanes()[Lane::Compute].take_recording().empty())
      << "a failed run left its stream recording";
  EXPECT_TRUE(toy.executor().take_spans().empty());
}

TEST(ExecutorFailure, AFailedStreamRunsNothingMoreAndKeepsItsFirstError) {
  for (const char* const step : {kStep, kLocal}) {
    Toy toy(step);
    const std::string first = error_of<base::SystemError>(toy, work_that_throws("0F0.experts"));
    EXPECT_EQ(first, "0F0.experts (toy): link down");
    std::atomic<bool> ran = false;
    EXPECT_EQ(error_of<base::SystemError>(toy,
                                          [&](const std::string&, tensor::Stream& stream) {
                                            enqueue(stream, [&] { ran = true; });
                                          }),
              first);
    EXPECT_FALSE(ran);
  }
}

}  // namespace failure_test
}  // namespace weft::exec
