// Strict reading of single values; what is wrong with one is appended to a list of problems.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/duration.h"
#include "core/config/field_spec.h"
#include "core/config/read.h"

namespace tessera::detail {

class ScalarReader {
 public:
  explicit ScalarReader(std::vector<ConfigProblem>& problems) : problems_(problems) {}

  // Whether `given` is what `value` takes and `spec` allows; `value` stays as it is otherwise.
  bool read(const Value& given, const std::string& path, bool& value, const FieldSpec& spec);
  bool read(const Value& given, const std::string& path, std::int64_t& value, const FieldSpec& spec);
  bool read(const Value& given, const std::string& path, double& value, const FieldSpec& spec);
  bool read(const Value& given, const std::string& path, std::string& value, const FieldSpec& spec);
  bool read(const Value& given, const std::string& path, Duration& value, const FieldSpec& spec);

  void report(const Value& value, std::string path, std::string message);
  // "expected ..., found ..."; false, for callers to return.
  bool mismatch(const Value& value, std::string path, std::string_view expected, std::string_view advice = "");

 private:
  bool in_range(const Value& given, const std::string& path, double number, const FieldSpec& spec);

  std::vector<ConfigProblem>& problems_;
};

}  // namespace tessera::detail
