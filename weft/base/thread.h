// Starting threads: what the system refuses is an error of the system, and says what it was for.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace weft::base {

// SystemError: "cannot start <what>: <reason>: <how to mend it>".
[[noreturn]] void throw_no_thread(std::string_view what, const std::system_error& refused);

// A thread that runs `function`; `what` it is ("a compute thread") is for the error.
template <typename Thread = std::thread, typename Function>
Thread start_thread(std::string_view what, Function&& function) {
  try {
    return Thread(std::forward<Function>(function));
  } catch (const std::system_error& refused) {
    throw_no_thread(what, refused);
  }
}

}  // namespace weft::base
