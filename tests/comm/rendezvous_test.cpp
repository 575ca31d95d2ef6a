// Rendezvous over TCP; ranks are threads of one process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/comm/rendezvous/message.h"
#include "weft/comm/rendezvous/place.h"
#include "weft/comm/rendezvous/socket.h"
#include "weft/comm/rendezvous/store.h"

namespace weft::comm::rendezvous {
namespace rendezvous_test {

using Seconds = std::chrono::duration<double>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Port without a listener.
int free_port() {
  const base::Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0), "a socket");
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  return ntohs(at.sin_port);
}

Place place_of(int rank, int world, int port) {
  return {.rank = rank, .world = world, .local_rank = rank, .port = port};
}

// Runs each function on its own thread; returns their errors.
std::vector<std::string> errors_of(const std::vector<std::function<void()>>& ranks) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { errors[i] = error_of(ranks[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Runs one body on every rank of a world.
std::vector<std::string> run_world(int world,
                                   const std::function<void(Store&, int rank)>& body,
                                   int port = free_port()) {
  std::vector<std::function<void()>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.emplace_back([=] {
      Store store(place_of(rank, world, port), base::text("card {}", rank), 5);
      body(store, rank);
    });
  }
  return errors_of(ranks);
}

Environment torchrun(const Environment& changes = {}) {
  Environment all{{"RANK", "5"},
                  {"WORLD_SIZE", "16"},
                  {"LOCAL_RANK", "1"},
                  {"MASTER_ADDR", "node7"},
                  {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : changes) all[name] = value;
  return all;
}

TEST(Place, IsWhatTorchrunSays) {
  const Place place = place_from(torchrun(), 16);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world, 16);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "node7");
  EXPECT_EQ(place.port, 29500);
}

TEST(Place, LeavesThePortOfTorchrunsAgentToIt) {
  EXPECT_EQ(place_from(torchrun({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}), 0).port, 29501);
  EXPECT_EQ(place_from(torchrun({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}), 0).port, 29500);
}

TEST(Place, IsWhatOpenMpiSays) {
  Environment all{{"OMPI_COMM_WORLD_RANK", "3"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(place_from(all, 4).rank, 3);
  EXPECT_EQ(place_from(all, 4).address, "127.0.0.1");
  EXPECT_GT(place_from(all, 4).port, 0);
  all["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";  // on several machines, rank 0's address is unknown
  const std::string error = error_of([&] { place_from(all, 4); });
  EXPECT_TRUE(has(error, "MASTER_ADDR is not set")) << error;
  EXPECT_TRUE(has(error, "MASTER_PORT is not set")) << error;
  all["MASTER_ADDR"] = "node7";
  all["MASTER_PORT"] = "4000";
  EXPECT_EQ(place_from(all, 4).port, 4000);
}

TEST(Place, OneRankNeedsNoLauncher) {
  EXPECT_EQ(place_from({}, 1).world, 1);
  EXPECT_EQ(place_from({}, 0).world, 1);
  const std::string error = error_of([] { place_from({}, 8); });
  EXPECT_TRUE(has(error, "torchrun")) << error;
}

TEST(Place, EveryWrongVariableIsNamedWithItsValue) {
  const Environment wrong = torchrun(
      {{"RANK", "16"}, {"LOCAL_RANK", "-1"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "70000"}});
  const std::string error = error_of([&] { place_from(wrong, 0); });
  for (const char* part : {"RANK=16", "LOCAL_RANK=-1", "MASTER_ADDR", "MASTER_PORT=70000"}) {
    EXPECT_TRUE(has(error, part)) << part << ": " << error;
  }
  for (const char* value : {"", "0", "two", "4x", "99999999999999999999", "1048577", "-4"}) {
    EXPECT_THROW(place_from(torchrun({{"WORLD_SIZE", value}}), 0), base::ConfigError) << value;
  }
}

TEST(Place, AWorldOfAnotherSizeThanTheRunNeedsIsRefused) {
  const std::string error = error_of([] { place_from(torchrun(), 8); });
  EXPECT_TRUE(has(error, "8 ranks") && has(error, "16")) << error;
}

TEST(Message, ComesBackAsItWasWhereverItIsCut) {
  const Message sent{.kind = Message::Kind::Failed,
                     .rank = 70000,
                     .number = -3,
                     .key = std::string("k\0y", 3),
                     .value = "why"};
  const std::string bytes = encoded(sent) + encoded({.kind = Message::Kind::AllEnded});
  std::string heard;
  std::vector<Message> all;
  for (const char byte : bytes) {
    heard.push_back(byte);
    while (const auto message = take_message(heard)) all.push_back(*message);
  }
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, sent.kind);
  EXPECT_EQ(all[0].rank, sent.rank);
  EXPECT_EQ(all[0].number, sent.number);
  EXPECT_EQ(all[0].key, sent.key);
  EXPECT_EQ(all[0].value, sent.value);
  EXPECT_TRUE(heard.empty());
}

TEST(Message, WhatIsNoneIsRefused) {
  const auto taken = [](std::string bytes) { return error_of([&] { take_message(bytes); }); };
  EXPECT_TRUE(has(taken("GET / HTTP/1.1"), "no message"));
  EXPECT_TRUE(has(taken("X"), "no message"));
  std::string whole = encoded({.kind = Message::Kind::Put, .key = "k", .value = "v"});
  std::string other = whole;
  other[4] = 9;
  EXPECT_TRUE(has(taken(other), "version 9")) << taken(other);
  for (const std::size_t at : {6u, 17u, 19u}) {  // its kind and its two lengths
    std::string damaged = whole;
    damaged[at] = '\xff';
    EXPECT_TRUE(has(taken(damaged), "which none has")) << at;
  }
}

TEST(Message, ALongReasonIsCut) {
  std::string bytes = encoded({.kind = Message::Kind::Failed, .value = std::string(1 << 20, 'x')});
  EXPECT_LE(bytes.size(), kLongestMessage);
  EXPECT_EQ(take_message(bytes)->value.size(), kLongestValue);
}

TEST(Store, RanksMeetAndPassValues) {
  for (const int world : {1, 2, 5}) {
    const auto errors = run_world(world, [&](Store& store, int rank) {
      store.put(base::text("of {}", rank), std::string(128, static_cast<char>(rank)));
      for (int peer = 0; peer < world; ++peer) {
        const std::string value = store.get(base::text("of {}", peer));
        if (value != std::string(128, static_cast<char>(peer))) throw std::runtime_error("value");
      }
      store.gather_ends();
      if (store.failure()) throw std::runtime_error(store.failure()->reason);
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "no error");
  }
}

TEST(Store, RanksThatComeLateAreWaitedFor) {
  const int port = free_port();
  std::vector<std::function<void()>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([=] {
      std::this_thread::sleep_for(Seconds(0.1 * (2 - rank)));  // rank 0 comes last
      Store(place_of(rank, 3, port), "", 5).gather_ends();
    });
  }
  for (const std::string& error : errors_of(ranks)) EXPECT_EQ(error, "no error");
}

TEST(Store, ARankStartedForAnotherWorldEndsAll) {
  const int port = free_port();
  const auto errors = errors_of(
      {[&] { Store(place_of(0, 2, port), "", 5); }, [&] { Store(place_of(1, 3, port), "", 5); }});
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "rank 1 was started for a world of 3 and rank 0 for one of 2")) << error;
    EXPECT_TRUE(has(error, "WORLD_SIZE")) << error;
  }
}

TEST(Store, TwoProcessesOfOneRankEndAll) {
  const int port = free_port();
  const auto errors = errors_of({[&] { Store(place_of(0, 3, port), "", 5); },
                                 [&] { Store(place_of(1, 3, port), "", 5); },
                                 [&] { Store(place_of(1, 3, port), "", 5); }});
  EXPECT_TRUE(has(errors[0], "two processes say that they are rank 1")) << errors[0];
  for (const std::string& error : errors) EXPECT_NE(error, "no error");
}

TEST(Store, TwoRanksOnOneCardEndAll) {
  const int port = free_port();
  std::vector<std::function<void()>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    const char* card = rank == 0 ? "GPU A" : "GPU B";
    ranks.emplace_back([=] { Store(place_of(rank, 3, port), card, 5); });
  }
  for (const std::string& error : errors_of(ranks)) {
    EXPECT_TRUE(has(error, "ranks 1 and 2 are on the same card, GPU B")) << error;
  }
}

TEST(Store, ARankThatNeverComesIsNamedInTime) {
  const int port = free_port();
  const auto begin = Clock::now();
  const auto errors = errors_of({[&] { Store(place_of(0, 4, port), "", 0.3); },
                                 [&] { Store(place_of(1, 4, port), "", 0.3); },
                                 [&] { Store(place_of(3, 4, port), "", 0.3); }});
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "rank 2 failed: it did not come")) << error;
  }
  EXPECT_LT(Clock::now() - begin, Seconds(2));
}

TEST(Store, RankZeroThatNeverComesIsNamedInTime) {
  const auto begin = Clock::now();
  const int port = free_port();
  const std::string error = error_of([&] { Store(place_of(1, 2, port), "", 0.3); });
  EXPECT_TRUE(has(error, base::text("nobody answers at 127.0.0.1:{}", port))) << error;
  EXPECT_LT(Clock::now() - begin, Seconds(2));
}

TEST(Store, AFailureReachesAllAndTheFirstCounts) {
  const auto begin = Clock::now();
  const auto errors = run_world(4, [](Store& store, int rank) {
    if (rank == 2) {
      store.fail("the disk is full");
      store.fail("something else");
    } else {
      EXPECT_TRUE(
          has(error_of([&] { store.get("what nobody puts"); }), "rank 2 failed: the disk is full"));
    }
    store.gather_ends();
    throw std::runtime_error(base::text("{} {}", store.failure()->rank, store.failure()->reason));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "2 the disk is full");
  EXPECT_LT(Clock::now() - begin, Seconds(4));
}

TEST(Store, AProcessThatEndsWithoutAWordIsNamed) {
  for (const int gone : {0, 1}) {
    const auto errors = run_world(3, [&](Store& store, int rank) {
      if (rank == gone) return;  // the connection ends, like a killed process's
      store.get("what nobody puts");
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == gone) continue;
      const std::string& error = errors[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(has(error, base::text("rank {} failed: its process ended", gone))) << error;
    }
  }
}

TEST(Store, AValueThatNobodyPutsIsNamedInTime) {
  const std::string error = error_of([] {
    Store store(place_of(0, 1, 0), "", 0.2);
    store.get("the key");
  });
  EXPECT_TRUE(has(error, "'the key'")) << error;
}

// Other programs at the port: silent, sending garbage, sending half a message, or leaving at once.
TEST(Store, StrangersChangeNothing) {
  const int port = free_port();
  std::atomic<bool> over = false;
  std::thread strangers([&] {
    const std::string hello = encoded({.kind = Message::Kind::Hello, .rank = 1, .number = 3});
    const std::string put = encoded({.kind = Message::Kind::Put, .key = "k", .value = "wrong"});
    std::vector<base::Descriptor> silent;
    for (int i = 0; !over; ++i) {
      try {
        const auto now = Clock::now() + std::chrono::milliseconds(200);
        base::Descriptor socket = connect_to("127.0.0.1", port, now);
        const std::string words[] = {"", "GET / HTTP/1.1\r\n\r\n", hello.substr(0, 9), put};
        send_all(socket, words[i % 4], now);
        if (i < 20) silent.push_back(std::move(socket));
      } catch (const base::SystemError&) {
        continue;  // no connection is accepted any more
      }
    }
  });
  std::vector<std::function<void()>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([=] {
      std::this_thread::sleep_for(Seconds(0.1 * rank));
      Store store(place_of(rank, 3, port), "", 5);
      if (rank == 2) store.put("k", "right");
      if (store.get("k") != "right") throw std::runtime_error("a stranger's value");
      store.gather_ends();
    });
  }
  const auto errors = errors_of(ranks);
  over = true;
  strangers.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "no error");
}

TEST(Store, WhatIsNotRankZeroIsSaidToBeSomethingElse) {
  const int port = free_port();
  const base::Descriptor listener = listen_at("127.0.0.1", port);
  std::atomic<bool> over = false;
  std::thread other([&] {
    std::vector<base::Descriptor> all;
    while (!over) {
      for (base::Descriptor& socket : accept_waiting(listener)) {
        send_all(socket, "HTTP/1.1 400 Bad Request\r\n", seconds_from_now(1));
        all.push_back(std::move(socket));
      }
      std::this_thread::sleep_for(Seconds(0.005));
    }
  });
  const std::string error = error_of([&] { Store(place_of(1, 2, port), "", 5); });
  over = true;
  other.join();
  EXPECT_TRUE(has(error, "is not rank 0 of this run")) << error;
}

TEST(Store, APortThatIsTakenIsNamed) {
  const int port = free_port();
  const base::Descriptor listener = listen_at("127.0.0.1", port);
  const std::string error = error_of([&] { Store(place_of(0, 2, port), "", 5); });
  EXPECT_TRUE(has(error, base::text("port {}", port)) && has(error, "MASTER_PORT")) << error;
}

TEST(Store, AnAddressThatIsNobodysIsNamed) {
  Place place = place_of(0, 2, 4000);
  place.address = "no.such.machine.invalid";
  const std::string error = error_of([&] { Store(place, "", 1); });
  EXPECT_TRUE(has(error, "MASTER_ADDR=no.such.machine.invalid")) << error;
}

}  // namespace rendezvous_test
}  // namespace weft::comm::rendezvous
