// Context for errors: the text of an exception, and rethrowing it with a place in front.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace weft::base {

// Text of any exception.
std::string reason_of(const std::exception_ptr& error);

// Text for the user of the command. An exception that is not Weft's, the system's or out of memory
// is reported as a bug.
std::string told(const std::exception_ptr& error);

// Rethrows with "<where>: " in front, keeping the kind of error. Other exceptions become
// InternalError; out of memory becomes SystemError.
[[noreturn]] void throw_at(std::string_view where, const std::exception_ptr& error);

}  // namespace weft::base
