#include "train/plan/check_inputs.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera {
namespace {

std::string names_of(const std::vector<Field>& fields) {
  std::string names;
  for (const Field& field : fields) names += str(names.empty() ? "" : ", ", field.name);
  return names;
}

// What the network reads first.
void check_numbers(const Module& network, const Dataset& data) {
  const Field& field = data.fields().front();
  const std::int64_t limit = network.input_limit();
  TESSERA_CHECK(is_floating(field.dtype) == (limit == 0), ConfigError, "the network reads ",
                limit == 0 ? "real numbers" : "whole numbers", ", but the input '", field.name, "' of ", data.name(), " is ",
                field.dtype);
  TESSERA_CHECK(limit == 0 || field.limit <= limit, ConfigError, "the network reads whole numbers below ", limit,
                ", but the input '", field.name, "' of ", data.name(), " has ", field.limit, " of them");
}

}  // namespace

void check_inputs(Module& network, const Dataset& data) {
  check_numbers(network, data);
  const std::vector<Field>& fields = data.fields();
  for_each_module(network, [&](const Module& module) {
    for (const std::string& name : module.named_inputs()) {
      TESSERA_CHECK(std::ranges::find(fields, name, &Field::name) != fields.end(), ConfigError, "layer '", module.path(), "' (",
                    module.kind(), ") needs the input '", name, "', which samples of ", data.name(), " do not have; they have ",
                    names_of(fields));
    }
  });
}

}  // namespace tessera
