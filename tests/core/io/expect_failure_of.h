// A use of files over system calls. Those of one name fail from the first on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/core/io/expect_error.h"
#include "tests/core/io/faulty_calls.h"

namespace tessera {

// It throws an IoError with the text, tries the call `attempts` times and leaves nothing open.
inline void expect_failure_of(const std::string& call, int error, const std::function<void(SystemCalls&)>& use,
                              const std::string& text, std::size_t attempts) {
  SCOPED_TRACE(call);
  FaultyCalls faultless;
  use(faultless);
  EXPECT_EQ(faultless.open_handles(), 0u);
  const auto is_call = [&](const std::string& line) { return line.starts_with(call + " "); };
  const auto at = std::ranges::find_if(faultless.log(), is_call) - faultless.log().begin();
  FaultyCalls faulty({.at = static_cast<int>(at), .fault = Fault::lasting, .error = error});
  expect_io_error([&] { use(faulty); }, {text});
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(faulty.log(), is_call)), attempts);
  EXPECT_EQ(faulty.open_handles(), 0u);
}

}  // namespace tessera
