#include "optim/power_sgd.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/autograd/accumulate.h"
#include "core/comm/buckets.h"
#include "core/linalg/qr.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kLeastSaving = 2;  // a compressed gradient is more than this many times the size of its factors
constexpr std::size_t kGathered = std::size_t{256} << 20;  // bytes that one gather holds for all ranks together

Tensor product(const Tensor& a, const Tensor& b, const MatmulOptions& options = {}) {
  const auto one = [](const Tensor& x) { return x.reshape({1, x.dim(0), x.dim(1)}); };
  const Tensor y = Tensor::empty({a.dim(options.transpose_a ? 1 : 0), b.dim(options.transpose_b ? 0 : 1)}, a.dtype());
  cpu::matmul(one(a), one(b), one(y), options);
  return y;
}

std::string error_name(int rank, const std::string& path) { return str("error/", rank, '/', path); }

}  // namespace

void PowerSgdConfig::fields(Fields& f) {
  f.add("rank", rank,
        {.help = "rank of a compressed gradient; a larger one is more exact and sends more",
         .range = at_least(1),
         .example = "2",
         .observable = "bytes"});
}

void check_power_sgd(Device device) {
  TESSERA_CHECK(device.is_cpu(), ConfigError, "compresses gradients on the CPU alone, and the device is ", device.name(),
                "; set device: cpu");
}

PowerSgd::PowerSgd(const PowerSgdConfig& config, Communicator& ranks, std::span<const NamedParameter> parameters,
                   std::uint64_t seed)
    : ranks_(ranks), parameters_(parameters), at_(parameters.size(), kNone) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& value = parameters[i].parameter->value();
    check_power_sgd(value.device());
    if (value.rank() < 2 || value.numel() == 0) continue;
    const std::int64_t rows = value.dim(0), columns = value.numel() / rows;
    if (config.rank * (rows + columns) * kLeastSaving >= rows * columns) continue;
    at_[i] = all_.size();
    all_.push_back({i, Tensor::empty({columns, config.rank}, value.dtype()), Tensor::zeros({rows, columns}, value.dtype())});
    fill_normal(all_.back().factor, RngStream(seed, parameters[i].path, "power_sgd"), 0, 1);
  }
}

void PowerSgd::all_reduce(std::span<Compressed* const> of, std::span<const Tensor> factors) const {
  Bucket bucket;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!bucket.takes(factors[i])) std::exchange(bucket, Bucket()).all_reduce(ranks_);
    bucket.add(factors[i], str(kMessages, parameters_[of[i]->parameter].path));
  }
  bucket.all_reduce(ranks_);
}

void PowerSgd::sum() {
  gathered_.clear();
  std::vector<Compressed*> present;
  std::vector<Tensor> left;  // M Q
  for (Compressed& each : all_) {
    const Tensor& gradient = parameters_[each.parameter].parameter->grad();
    if (!gradient.defined()) continue;
    accumulate(each.error, gradient.reshape(each.error.shape()));
    present.push_back(&each);
    left.push_back(product(each.error, each.factor));
  }
  all_reduce(present, left);
  std::vector<Tensor> right;  // M' P
  std::vector<Tensor> own;  // -M' P of this rank's M alone
  for (std::size_t i = 0; i < present.size(); ++i) {
    left[i] = linalg::qr(left[i]).q;
    right.push_back(product(present[i]->error, left[i], {.transpose_a = true}));
    own.push_back(Tensor::empty(right.back().shape(), right.back().dtype()));
    cpu::affine(right.back(), -1, 0, own.back());
  }
  all_reduce(present, right);
  for (std::size_t i = 0; i < present.size(); ++i) {
    Parameter& parameter = *parameters_[present[i]->parameter].parameter;
    parameter.set_grad(product(left[i], right[i], {.transpose_b = true}).reshape(parameter.value().shape()));
    accumulate(present[i]->error, product(left[i], own[i], {.transpose_b = true}));
    present[i]->factor = right[i];
  }
}

void PowerSgd::gather() {
  gathered_.clear();
  if (ranks_.size() == 1) return;
  const bool keeps = ranks_.rank() == 0;
  const std::size_t piece = kGathered / static_cast<std::size_t>(ranks_.size());
  gathered_.resize(keeps ? static_cast<std::size_t>(ranks_.size()) : 0);
  for (const Compressed& each : all_) {
    for (std::vector<Tensor>& errors : gathered_) errors.push_back(Tensor::empty(each.error.shape(), each.error.dtype()));
    const std::string_view own(static_cast<const char*>(each.error.raw()), each.error.bytes());
    for (std::size_t begin = 0; begin < own.size(); begin += piece) {
      const std::vector<std::string> pieces = ranks_.all_gather(own.substr(begin, piece));
      for (std::size_t rank = 0; rank < gathered_.size(); ++rank) {
        std::memcpy(static_cast<char*>(gathered_[rank].back().raw()) + begin, pieces[rank].data(), pieces[rank].size());
      }
    }
  }
}

State PowerSgd::factors() const {
  State state;
  for (const Compressed& each : all_) state.tensors["factor/" + parameters_[each.parameter].path] = each.factor;
  return state;
}

State PowerSgd::state() const {
  TESSERA_CHECK(ranks_.size() == 1 || !gathered_.empty(), InternalError, "power_sgd: the errors of other ranks are not here");
  State state = factors();
  state.meta.set("ranks", std::int64_t{ranks_.size()});
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const std::string& path = parameters_[all_[i].parameter].path;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      state.tensors[error_name(rank, path)] = ranks_.size() == 1 ? all_[i].error : gathered_[static_cast<std::size_t>(rank)][i];
    }
  }
  return state;
}

void PowerSgd::load_state(const State& state) {
  const auto saved_ranks = static_cast<int>(state.meta.at("ranks").as_int());
  const bool as_many = saved_ranks == ranks_.size();
  const bool sums = !as_many && ranks_.rank() == 0;
  std::map<std::string, Tensor> saved = state.tensors, into;
  for (const Compressed& each : all_) {
    const std::string& path = parameters_[each.parameter].path;
    into["factor/" + path] = each.factor;
    for (int rank = 0; rank < saved_ranks; ++rank) {
      const std::string name = error_name(rank, path);
      if (as_many && rank == ranks_.rank()) {
        into[name] = each.error;
      } else if (sums) {
        into[name] = Tensor::empty(each.error.shape(), each.error.dtype());
      } else {
        saved.erase(name);  // another rank reads it
      }
    }
  }
  load_tensors("power_sgd", saved, into);
  for (const Compressed& each : all_) {
    if (!as_many) each.error.fill(0);
    for (int rank = 0; sums && rank < saved_ranks; ++rank) {
      accumulate(each.error, into.at(error_name(rank, parameters_[each.parameter].path)));
    }
  }
  gathered_.clear();
}

}  // namespace tessera
