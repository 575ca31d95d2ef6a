// Starts threads; a refusal by the system becomes an error that names the purpose.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace weft::base {

// Throws SystemError: "cannot start <what>: <reason>: <fix>".
[[noreturn]] void throw_no_thread(std::string_view what, const std::system_error& refused);

// Starts a thread for `function`; `what` ("a compute thread") is for the error.
template <typename Thread = std::thread, typename Function>
Thread start_thread(std::string_view what, Function&& function) {
  try {
    return Thread(std::forward<Function>(function));
  } catch (const std::system_error& refused) {
    throw_no_thread(what, refused);
  }
}

}  // namespace weft::base
