#include "core/cpu/onednn.h"

#include <omp.h>

namespace tessera::cpu::onednn {
namespace {

thread_local std::size_t built = 0;

dnnl::memory unbound(const dnnl::memory::desc& description) { return dnnl::memory(description, engine(), nullptr); }

dnnl::memory::data_type type_of(DType dtype) {
  TESSERA_CHECK(dtype == DType::f32 || dtype == DType::bf16, InternalError, "onednn: dtype is ", dtype, "; needs f32 or bf16");
  return dtype == DType::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

Tensor buffer_for(const dnnl::memory& memory) {
  return Tensor::empty({static_cast<std::int64_t>(memory.get_desc().get_size())}, DType::u8);
}

void execute_now(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments) {
  try {
    primitive.execute(stream(), arguments);
  } catch (const dnnl::error& error) {
    fail(error.status, error.message);
  }
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream in_order(engine());
  return in_order;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::primitive_attr relu_attributes() {
  dnnl::post_ops relu;
  relu.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attr = attributes();
  attr.set_post_ops(relu);
  return attr;
}

dnnl::memory::desc strided(const dnnl::memory::dims& sizes, const dnnl::memory::dims& strides, DType dtype) {
  return dnnl::memory::desc(sizes, type_of(dtype), strides);
}

dnnl::memory::desc any_layout(const dnnl::memory::dims& sizes, DType dtype) {
  return dnnl::memory::desc(sizes, type_of(dtype), dnnl::memory::format_tag::any);
}

std::size_t primitives_built() noexcept { return built; }

void fail(dnnl_status_t status, const std::string& what) {
  TESSERA_CHECK(status != dnnl_out_of_memory, OutOfMemoryError, "cpu: out of memory: ", what, ": ",
                memory_stats(Device::cpu()).in_use, " bytes in use, the system has no more for oneDNN's own buffers");
  throw InternalError(str("onednn: ", what, ": ends with status ", static_cast<int>(status)));
}

int threads_now() noexcept { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

Primitive::Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad, const std::vector<Operand>& operands)
    : primitive_(primitive), scratchpad_(unbound(scratchpad)) {
  for (const Operand& operand : operands) {
    Bound bound{operand.argument, operand.output, unbound(operand.ours), {}, {}};
    if (operand.theirs == operand.ours) {
      bound.theirs = bound.ours;
    } else {
      bound.theirs = unbound(operand.theirs);
      bound.reorder = operand.output ? dnnl::reorder(bound.theirs, bound.ours) : dnnl::reorder(bound.ours, bound.theirs);
    }
    arguments_.emplace(operand.argument, bound.theirs);
    bound_.push_back(std::move(bound));
  }
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_);
  ++built;
}

Tensor Primitive::reordered(std::size_t operand, void* data) {
  Bound& bound = bound_[operand];
  if (!bound.reorder) return {};
  Tensor result = buffer_for(bound.theirs);
  bound.ours.set_data_handle(data);
  bound.theirs.set_data_handle(result.raw());
  execute_now(bound.reorder, {{DNNL_ARG_FROM, bound.ours}, {DNNL_ARG_TO, bound.theirs}});
  stream().wait();
  return result;
}

std::vector<Tensor> Primitive::buffers(std::optional<std::size_t> ready) const {
  std::vector<Tensor> all;
  all.push_back(buffer_for(scratchpad_));
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (i != ready && bound_[i].reorder) all.push_back(buffer_for(bound_[i].theirs));
  }
  return all;
}

void Primitive::execute_in(const std::vector<Tensor>& buffers, std::span<void* const> data, std::optional<std::size_t> ready) {
  TESSERA_CHECK(data.size() == bound_.size(), InternalError, "onednn: ", data.size(), " tensors for ", bound_.size(),
                " operands");
  auto next = buffers.begin();
  scratchpad_.set_data_handle((next++)->raw());
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    Bound& bound = bound_[i];
    if (i == ready) {
      bound.theirs.set_data_handle(data[i]);
      continue;
    }
    bound.ours.set_data_handle(data[i]);
    if (!bound.reorder) continue;
    bound.theirs.set_data_handle((next++)->raw());
    if (!bound.output) {
      execute_now(bound.reorder, {{DNNL_ARG_FROM, bound.ours}, {DNNL_ARG_TO, bound.theirs}});
    }
  }
  execute_now(primitive_, arguments_);
  for (Bound& bound : bound_) {
    if (bound.reorder && bound.output) {
      execute_now(bound.reorder, {{DNNL_ARG_FROM, bound.theirs}, {DNNL_ARG_TO, bound.ours}});
    }
  }
  stream().wait();
}

}  // namespace tessera::cpu::onednn
