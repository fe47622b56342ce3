#include "core/cpu/map.h"
#include "core/ops/arithmetic.h"
#include "core/ops/arithmetic_math.h"

namespace tessera::cpu {
namespace {

template <class T, class F>
void map_bound(const F& f, const Tensor& y, const Tensor& x) {
  const Tensor expanded = x.expand(y.shape());
  detail::map_typed<T>(f, y, std::array{&expanded}, std::index_sequence<0>{});
}

// A one-element operand is read once and bound: with its stride of 0 the loop would not vectorise.
template <class F>
void binary(const char* operation, const F& f, const Tensor& a, const Tensor& b, const Tensor& y) {
  if (y.numel() > 1 && (a.numel() == 1 || b.numel() == 1)) {
    dispatch_floating(y.dtype(), operation, [&]<class T>() {
      if (b.numel() == 1) {
        const BindSecond<F, Compute<T>> bound{f, widen(*b.data<T>())};
        map_bound<T>(bound, y, a);
      } else {
        const BindFirst<F, Compute<T>> bound{f, widen(*a.data<T>())};
        map_bound<T>(bound, y, b);
      }
    });
    return;
  }
  map(operation, f, y, a, b);
}

}  // namespace

void add(const Tensor& a, const Tensor& b, const Tensor& y) { binary("add", Add{}, a, b, y); }
void sub(const Tensor& a, const Tensor& b, const Tensor& y) { binary("sub", Sub{}, a, b, y); }
void mul(const Tensor& a, const Tensor& b, const Tensor& y) { binary("mul", Mul{}, a, b, y); }
void div(const Tensor& a, const Tensor& b, const Tensor& y) { binary("div", Div{}, a, b, y); }
void div_negated(const Tensor& a, const Tensor& b, const Tensor& y) { binary("div_backward", DivNegated{}, a, b, y); }

void affine(const Tensor& x, double scale, double shift, const Tensor& y) { map("affine", Affine{scale, shift}, y, x); }

void rdiv_scalar(double value, const Tensor& x, const Tensor& y) {
  map("rdiv_scalar", ScalarDiv{value}, y, x);
}

}  // namespace tessera::cpu
