// What the cases of a program share, set while these live: a variable of the environment, the log's sink.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/support/log.h"

namespace tessera::testing {

class VariableScope {
 public:
  VariableScope(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~VariableScope() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Messages are discarded behind it, as without it.
class LogSinkScope {
 public:
  explicit LogSinkScope(LogSink sink) { set_log_sink(std::move(sink)); }
  ~LogSinkScope() { set_log_sink({}); }
  LogSinkScope(const LogSinkScope&) = delete;
  LogSinkScope& operator=(const LogSinkScope&) = delete;
};

}  // namespace tessera::testing
