#include "train/plan/check_inputs.h"

#include "core/support/error.h"

namespace tessera {

void check_inputs(const Module& network, const Dataset& data) {
  const Field& field = data.fields().front();
  const std::int64_t limit = network.input_limit();
  TESSERA_CHECK(is_floating(field.dtype) == (limit == 0), ConfigError, "the network reads ",
                limit == 0 ? "real numbers" : "whole numbers", ", but the input '", field.name, "' of ", data.name(), " is ",
                field.dtype);
  TESSERA_CHECK(limit == 0 || field.limit <= limit, ConfigError, "the network reads whole numbers below ", limit,
                ", but the input '", field.name, "' of ", data.name(), " has ", field.limit, " of them");
}

}  // namespace tessera
