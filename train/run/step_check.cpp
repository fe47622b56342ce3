#include "train/run/step_check.h"

#include <algorithm>

#include "core/finite.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::string gradients_were(const std::vector<NamedParameter>& parameters) {
  double largest = 0;
  for (const NamedParameter& entry : parameters) largest = std::max(largest, largest_magnitude(entry.parameter->grad()));
  return str("the gradients were finite, up to ", largest, " in magnitude");
}

}  // namespace

void check_batch(const Batch& batch) {
  for (const Batch::Part& part : batch.parts()) {
    if (!is_floating(part.tensor.dtype())) continue;
    const auto bad = first_bad_element(part.tensor);
    TESSERA_CHECK(!bad, NumericError, "the batch brought the first ", bad->kind(), ": ", part.name, ' ',
                  describe(part.tensor, *bad));
  }
}

void check_gradients(Module& model, const std::vector<NamedParameter>& parameters) {
  for (const NamedBuffer& entry : named_buffers(model)) {
    const auto bad = first_bad_element(entry.buffer->value);
    TESSERA_CHECK(!bad, NumericError, "the forward made the first ", bad->kind(), " in a buffer: ", entry.path, ' ',
                  describe(entry.buffer->value, *bad), "; every op's output was finite");
  }
  for (const NamedParameter& entry : parameters) {
    const Tensor& grad = entry.parameter->grad();
    const auto bad = first_bad_element(grad);
    TESSERA_CHECK(!bad, NumericError, "the gradient of ", entry.path, " adds up to the first ", bad->kind(), ": ",
                  describe(grad, *bad), "; every op's gradients were finite");
  }
}

void check_update(const std::vector<NamedParameter>& parameters, const State& optimizer) {
  for (const NamedParameter& entry : parameters) {
    const Tensor& value = entry.parameter->value();
    const auto bad = first_bad_element(value);
    TESSERA_CHECK(!bad, NumericError, "the update made the first ", bad->kind(), ": ", entry.path, ' ', describe(value, *bad),
                  "; ", gradients_were(parameters));
  }
  for (const auto& [name, tensor] : optimizer.tensors) {
    const auto bad = first_bad_element(tensor);
    TESSERA_CHECK(!bad, NumericError, "the update made the first ", bad->kind(), " in the optimiser's ", name, ": ",
                  describe(tensor, *bad), "; ", gradients_were(parameters));
  }
}

}  // namespace tessera
