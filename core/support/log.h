// Where messages of library code go: one sink, set by the program. The default discards. Nothing else writes to the terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tessera {

enum class LogLevel { debug, info, warning, error };
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the sink; call before threads start. An empty function discards.
void set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view message);
inline void log_warning(std::string_view message) { log(LogLevel::warning, message); }

}  // namespace tessera
