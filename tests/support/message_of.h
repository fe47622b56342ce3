// What a call says when it fails.
#pragma once

#include <string>

#include "core/support/error.h"

namespace tessera {

// The message of the exception of type E that `call` throws; "" when it throws none.
template <class E = Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera
