#include "weft/comm/rendezvous/store.h"

#include <poll.h>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::rendezvous {
namespace {

using base::text;
using Kind = Message::Kind;

constexpr int kStoreTick = 50;       // ms
constexpr double kGraceSeconds = 3;  // time for all ranks to end after a failure
constexpr double kSlackSeconds = 1;  // slack for rank 0's clock: rank 0 names the missing ranks

std::unique_ptr<Server> server_for(const Place& place, double timeout_seconds) {
  return place.rank == 0 ? std::make_unique<Server>(place, timeout_seconds) : nullptr;
}

}  // namespace

Store::Store(const Place& place, const std::string& card, double timeout_seconds)
    : place_(place),
      timeout_seconds_(timeout_seconds),
      deadline_(seconds_from_now(timeout_seconds)),
      server_(server_for(place, timeout_seconds)),
      socket_(server_ ? server_->take_own_end()
                      : connect_to(place.address, place.port, deadline_)) {
  listener_ = std::thread([this] { listen(); });
  try {
    join(card);
  } catch (...) {
    stopping_ = true;
    listener_.join();
    throw;
  }
}

Store::~Store() {
  stopping_ = true;
  listener_.join();
}

void Store::join(const std::string& card) {
  send({.kind = Kind::Hello, .rank = place_.rank, .number = place_.world, .key = card});
  std::unique_lock lock(mutex_);
  const auto until = deadline_ + std::chrono::seconds(int(kSlackSeconds));
  const auto is_over = [&] { return is_welcome_ || refused_ || failure_; };
  if (!heard_.wait_until(lock, until, is_over)) {
    throw base::SystemError(
        text("the world of {} is not complete after {} s: rank 0 at {}:{} is "
             "there, and waits for other ranks",
             place_.world,
             timeout_seconds_,
             place_.address,
             place_.port));
  }
  if (is_welcome_) return;  // a later failure surfaces in this rank's next operation
  if (refused_) throw base::SystemError(*refused_);
  throw_peer_failed(*failure_);
}

void Store::listen() {
  std::string bytes;
  while (!stopping_) {
    pollfd news{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&news, 1, kStoreTick) <= 0) continue;
    const Received received = receive_into(bytes, socket_, kLongestMessage);
    try {
      while (const auto message = take_message(bytes)) take(*message);
    } catch (const base::SystemError& error) {
      return lose_connection(text("what answers at {}:{} is not rank 0 of this run: {}",
                                  place_.address,
                                  place_.port,
                                  error.what()));
    }
    if (received == Received::End) return lose_connection("its process ended without a word");
  }
}

void Store::take(const Message& message) {
  const std::lock_guard lock(mutex_);
  switch (message.kind) {
    case Kind::Welcome:
      is_welcome_ = true;
      break;
    case Kind::Refused:
      refused_ = base::without_controls(message.value);
      break;
    case Kind::Value:
      values_[message.key] = message.value;
      break;
    case Kind::Failed:
      if (!failure_) {
        failure_ = {.rank = message.rank, .reason = base::without_controls(message.value)};
      }
      break;
    case Kind::AllEnded:
      all_ended_ = true;
      break;
    case Kind::Hello:
    case Kind::Put:
    case Kind::Get:
    case Kind::Ended:
      throw base::SystemError("a message that rank 0 does not send");
  }
  heard_.notify_all();
}

void Store::lose_connection(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_ && !all_ended_ && !refused_) failure_ = {.rank = 0, .reason = reason};
  heard_.notify_all();
}

void Store::send(const Message& message) {
  const std::lock_guard lock(sending_);
  // If rank 0 is gone, the listener notices.
  send_all(socket_, encoded(message), seconds_from_now(timeout_seconds_));
}

void Store::put(const std::string& key, const std::string& value) {
  if (const auto failed = failure()) throw_peer_failed(*failed);
  send({.kind = Kind::Put, .rank = place_.rank, .key = key, .value = value});
}

std::string Store::get(const std::string& key) {
  send({.kind = Kind::Get, .rank = place_.rank, .key = key});
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return values_.contains(key) || failure_; };
  const bool in_time = heard_.wait_until(lock, seconds_from_now(timeout_seconds_), is_over);
  if (failure_) throw_peer_failed(*failure_);
  if (!in_time) {
    throw base::SystemError(text("rank {} waited {} s for '{}', which no rank has put",
                                 place_.rank,
                                 timeout_seconds_,
                                 key));
  }
  return values_.at(key);
}

void Store::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = {.rank = place_.rank, .reason = reason};
    heard_.notify_all();
  }
  send({.kind = Kind::Failed, .rank = place_.rank, .value = reason});
}

std::optional<Failure> Store::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Store::gather_ends() {
  send({.kind = Kind::Ended, .rank = place_.rank});
  std::unique_lock lock(mutex_);
  heard_.wait(lock, [&] { return all_ended_ || failure_; });
  heard_.wait_until(lock, seconds_from_now(kGraceSeconds), [&] { return all_ended_; });
}

}  // namespace weft::comm::rendezvous
