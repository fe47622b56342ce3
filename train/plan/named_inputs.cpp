#include "train/plan/named_inputs.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera {
namespace {

std::string names_of(const std::vector<Field>& fields) {
  std::string names;
  for (const Field& field : fields) names += str(names.empty() ? "" : ", ", field.name);
  return names;
}

}  // namespace

void check_named_inputs(Module& network, const Dataset& data) {
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
