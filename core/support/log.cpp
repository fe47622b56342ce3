#include "core/support/log.h"

#include <utility>

namespace tessera {
namespace {

LogSink& sink() {
  static LogSink instance;
  return instance;
}

}  // namespace

void set_log_sink(LogSink replacement) { sink() = std::move(replacement); }

void log(LogLevel level, std::string_view message) {
  if (sink()) sink()(level, message);
}

}  // namespace tessera
