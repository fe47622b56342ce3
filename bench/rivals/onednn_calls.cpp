#include "bench/rivals/onednn_calls.h"

namespace tessera::bench {
namespace {

dnnl::memory on_tensor(const dnnl::memory::desc& layout, const Tensor& data) { return {layout, rival_engine(), data.raw()}; }

dnnl::memory::desc row_major(const dnnl::memory::dims& sizes) {
  dnnl::memory::dims strides(sizes.size(), 1);
  for (std::size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  return strided(sizes, strides);
}

}  // namespace

const dnnl::engine& rival_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

void OnednnCalls::read(int argument, const Tensor& data, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs) {
  if (!reorders_) return read_constant(argument, data, ours, theirs);
  const dnnl::memory from = on_tensor(ours, data);
  main_.arguments.emplace(argument, from);
  if (ours == theirs) return;
  const dnnl::memory own(theirs, rival_engine());
  main_.arguments[argument] = own;
  before_.push_back({dnnl::reorder(from, own), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, own}}});
}

// Goes through the row-major layout, the only one that oneDNN reorders to Winograd's filters from.
void OnednnCalls::read_constant(int argument, const Tensor& data, const dnnl::memory::desc& ours,
                                const dnnl::memory::desc& theirs) {
  dnnl::memory from = on_tensor(ours, data);
  main_.arguments.emplace(argument, from);
  if (ours == theirs) return;
  dnnl::memory between(row_major(ours.dims()), rival_engine());
  dnnl::memory own(theirs, rival_engine());
  dnnl::reorder(from, between).execute(stream_, from, between);
  dnnl::reorder(between, own).execute(stream_, between, own);
  stream_.wait();
  main_.arguments[argument] = own;
}

void OnednnCalls::write(int argument, const Tensor& data, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs) {
  const dnnl::memory to = on_tensor(ours, data);
  main_.arguments.emplace(argument, to);
  if (ours == theirs) return;
  const dnnl::memory own(theirs, rival_engine());
  main_.arguments[argument] = own;
  if (reorders_) after_.push_back({dnnl::reorder(own, to), {{DNNL_ARG_FROM, own}, {DNNL_ARG_TO, to}}});
}

void OnednnCalls::primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad) {
  main_.primitive = primitive;
  main_.arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad, rival_engine()));
}

void OnednnCalls::run() {
  for (Step& step : before_) step.primitive.execute(stream_, step.arguments);
  main_.primitive.execute(stream_, main_.arguments);
  for (Step& step : after_) step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

dnnl::primitive_attr with_own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc strided(const dnnl::memory::dims& sizes, const dnnl::memory::dims& strides) {
  return {sizes, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc any_layout(const dnnl::memory::dims& sizes) {
  return {sizes, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

}  // namespace tessera::bench
