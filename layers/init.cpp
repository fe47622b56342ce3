#include "layers/init.h"

#include <algorithm>
#include <cmath>

namespace tessera {

namespace {

// Values are drawn on the host and moved once, so that both devices start from the same bytes.
Tensor host_like(const Tensor& value) { return Tensor::empty(value.shape(), value.dtype()); }

}  // namespace

void init_kaiming_normal(Parameter& parameter, RngStream stream, std::int64_t fan) {
  init_normal(parameter, stream, std::sqrt(2.0 / static_cast<double>(std::max<std::int64_t>(fan, 1))));
}

void init_normal(Parameter& parameter, RngStream stream, double deviation) {
  const Tensor value = host_like(parameter.value());
  fill_normal(value, stream, 0, deviation);
  parameter.set_value(value.to(parameter.value().device()));
}

void init_uniform(Parameter& parameter, RngStream stream, double bound) {
  const Tensor value = host_like(parameter.value());
  fill_uniform(value, stream, -bound, bound);
  parameter.set_value(value.to(parameter.value().device()));
}

void init_constant(Parameter& parameter, double value) {
  parameter.set_value(Tensor::full(parameter.value().shape(), value, parameter.value().dtype(), parameter.value().device()));
}

}  // namespace tessera
