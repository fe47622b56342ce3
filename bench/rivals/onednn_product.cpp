#include <memory>

#include "bench/rivals/onednn_calls.h"
#include "bench/rivals/onednn_rival.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

using Desc = dnnl::memory::desc;

struct Layouts {
  Desc a, b, y;
};

Layouts plain(const Product& p) {
  const auto [m, n, k] = p.shape;
  return {p.transpose_a ? strided({m, k}, {1, m}) : strided({m, k}, {k, 1}),
          p.transpose_b ? strided({k, n}, {1, k}) : strided({k, n}, {n, 1}), strided({m, n}, {n, 1})};
}

Contestant contestant(std::string name, const Product& p, std::shared_ptr<OnednnCalls> calls) {
  // The calls read the operands' memory, and `p` keeps it alive.
  return {std::move(name), [calls, p] { calls->run(); }, {}, [y = p.y] { return y; }};
}

Contestant matmul_calls(std::string name, const Product& p, const Layouts& wanted, bool reorders) {
  const Layouts ours = plain(p);
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(wanted.a, wanted.b, wanted.y), with_own_scratchpad(),
                                            rival_engine());
  auto calls = std::make_shared<OnednnCalls>(reorders);
  calls->read(DNNL_ARG_SRC, p.a, ours.a, chosen.src_desc());
  calls->read(DNNL_ARG_WEIGHTS, p.b, ours.b, chosen.weights_desc());
  calls->write(DNNL_ARG_DST, p.y, ours.y, chosen.dst_desc());
  calls->primitive(dnnl::matmul(chosen), chosen.scratchpad_desc());
  return contestant(std::move(name), p, calls);
}

Contestant sgemm(const Product& p) {
  const auto run = [p] {
    const auto [m, n, k] = p.shape;
    const dnnl_status_t status =
        dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m, n, k, 1.0f, p.a.data<float>(), p.transpose_a ? m : k,
                   p.b.data<float>(), p.transpose_b ? k : n, 0.0f, p.y.data<float>(), n);
    TESSERA_CHECK(status == dnnl_success, InternalError, "sgemm: status ", static_cast<int>(status));
  };
  return {"sgemm", run, {}, [y = p.y] { return y; }};
}

// oneDNN stores weights as [n, k].
Contestant inner_product(std::string name, const Product& p, bool any) {
  using Forward = dnnl::inner_product_forward;
  const auto [m, n, k] = p.shape;
  const Layouts ours = plain(p);
  const Desc weight = p.transpose_b ? strided({n, k}, {k, 1}) : strided({n, k}, {1, n});
  const Desc wanted = any ? any_layout({n, k}) : weight;
  const Forward::primitive_desc chosen(Forward::desc(dnnl::prop_kind::forward_inference, ours.a, wanted, ours.y),
                                       with_own_scratchpad(), rival_engine());
  auto calls = std::make_shared<OnednnCalls>(true);
  calls->read(DNNL_ARG_SRC, p.a, ours.a, chosen.src_desc());
  calls->read(DNNL_ARG_WEIGHTS, p.b, weight, chosen.weights_desc());
  calls->write(DNNL_ARG_DST, p.y, ours.y, chosen.dst_desc());
  calls->primitive(Forward(chosen), chosen.scratchpad_desc());
  return contestant(std::move(name), p, calls);
}

// y = a^T b is the weight gradient of an inner product with output gradient a and input b.
Contestant inner_product_gradient(std::string name, const Product& p, bool any) {
  using Forward = dnnl::inner_product_forward;
  using Backward = dnnl::inner_product_backward_weights;
  const auto [m, n, k] = p.shape;
  const Desc source = strided({k, n}, {n, 1});
  const Desc gradient = strided({k, m}, {m, 1});
  const Desc weight = strided({m, n}, {n, 1});
  const Desc x = any ? any_layout({k, n}) : source;
  const Desc y = any ? any_layout({k, m}) : gradient;
  const Desc w = any ? any_layout({m, n}) : weight;
  const Forward::primitive_desc hint(Forward::desc(dnnl::prop_kind::forward_training, x, w, y), rival_engine());
  const Backward::primitive_desc chosen(Backward::desc(x, w, y), with_own_scratchpad(), rival_engine(), hint);
  auto calls = std::make_shared<OnednnCalls>(true);
  calls->read(DNNL_ARG_SRC, p.b, source, chosen.src_desc());
  calls->read(DNNL_ARG_DIFF_DST, p.a, gradient, chosen.diff_dst_desc());
  calls->write(DNNL_ARG_DIFF_WEIGHTS, p.y, weight, chosen.diff_weights_desc());
  calls->primitive(Backward(chosen), chosen.scratchpad_desc());
  return contestant(std::move(name), p, calls);
}

}  // namespace

std::vector<Contestant> product_rivals(const Product& p) {
  const auto [m, n, k] = p.shape;
  const Layouts ours = plain(p);
  std::vector<Contestant> all{
      matmul_calls("matmul", p, ours, true), matmul_calls("matmul, b packed", p, {ours.a, any_layout({k, n}), ours.y}, true),
      matmul_calls("matmul, a and b packed", p, {any_layout({m, k}), any_layout({k, n}), ours.y}, true), sgemm(p)};
  if (p.transpose_a && !p.transpose_b) {
    all.push_back(inner_product_gradient("inner product's gradient", p, false));
    all.push_back(inner_product_gradient("inner product's gradient, any layout", p, true));
  }
  if (!p.transpose_a) {
    all.push_back(inner_product("inner product", p, false));
    all.push_back(inner_product("inner product, b packed", p, true));
  }
  return all;
}

std::vector<Contestant> packed_product_rivals(const Product& p) {
  const auto [m, n, k] = p.shape;
  const Layouts ours = plain(p);
  return {matmul_calls("matmul, b packed before", p, {ours.a, any_layout({k, n}), ours.y}, false)};
}

}  // namespace tessera::bench
