#include "core/cuda/libraries/solver_calls.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/cuda/libraries/solver_handle.h"
#include "core/cuda/runtime/range.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// What one call needs besides its operands.
struct Workspace {
  Workspace(std::size_t device_bytes, std::size_t host_bytes, Device device, std::int64_t batch = 1)
      : on_device(Tensor::empty({static_cast<std::int64_t>(device_bytes)}, DType::u8, device)),
        on_host(host_bytes),
        info(Tensor::zeros({batch}, DType::i32, device)) {}

  // Waits for the device. Returns 0 if every matrix succeeded, otherwise the first code that is not 0.
  int worst() const {
    const std::vector<std::int32_t> codes = info.to_vector<std::int32_t>();
    const auto failed = std::ranges::find_if(codes, [](std::int32_t code) { return code != 0; });
    return failed == codes.end() ? 0 : *failed;
  }

  Tensor on_device;
  std::vector<std::byte> on_host;
  Tensor info;
};

int whole(std::int64_t size, const char* operation) {
  TESSERA_CHECK(size <= 0x7fffffff, ShapeError, operation, ": size ", size, " on a GPU; must fit 32 bits");
  return static_cast<int>(size);
}

}  // namespace

int factorise(const Tensor& w, const Tensor& left, const Tensor& s, const Tensor& right) {
  const Range range("svd");
  const std::int64_t p = w.dim(0);
  const std::int64_t q = w.dim(1);
  const SolverParameters parameters = make_solver_parameters();
  const cusolverDnHandle_t handle = solver_handle(w.device());
  std::size_t on_device = 0, on_host = 0;
  check(cusolverDnXgesvd_bufferSize(handle, parameters.get(), 'S', 'S', q, p, CUDA_R_64F, w.raw(), q, CUDA_R_64F, s.raw(),
                                    CUDA_R_64F, left.raw(), q, CUDA_R_64F, right.raw(), p, CUDA_R_64F, &on_device, &on_host),
        "svd");
  Workspace space(on_device, on_host, w.device());
  check(cusolverDnXgesvd(handle, parameters.get(), 'S', 'S', q, p, CUDA_R_64F, w.raw(), q, CUDA_R_64F, s.raw(), CUDA_R_64F,
                         left.raw(), q, CUDA_R_64F, right.raw(), p, CUDA_R_64F, space.on_device.raw(), on_device,
                         space.on_host.data(), on_host, space.info.data<std::int32_t>()),
        "svd");
  return space.worst();
}

int factorise_batch(const Tensor& w, const Tensor& u, const Tensor& s, const Tensor& v) {
  const Range range("svd");
  const int m = whole(w.dim(1), "svd");
  const int n = whole(w.dim(2), "svd");
  const int batch = whole(w.dim(0), "svd");
  const JacobiParameters parameters = make_jacobi_parameters();
  const cusolverDnHandle_t handle = solver_handle(w.device());
  int elements = 0;
  check(cusolverDnDgesvdjBatched_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, n, m, w.data<double>(), n, s.data<double>(),
                                            u.data<double>(), n, v.data<double>(), m, &elements, parameters.get(), batch),
        "svd");
  const Workspace space(static_cast<std::size_t>(elements) * sizeof(double), 0, w.device(), batch);
  check(cusolverDnDgesvdjBatched(handle, CUSOLVER_EIG_MODE_VECTOR, n, m, w.data<double>(), n, s.data<double>(), u.data<double>(),
                                 n, v.data<double>(), m, static_cast<double*>(space.on_device.raw()), elements,
                                 space.info.data<std::int32_t>(), parameters.get(), batch),
        "svd");
  return space.worst();
}

int diagonalise(const Tensor& a, const Tensor& values, bool vectors) {
  const Range range("eigh");
  const cusolverEigMode_t mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const std::int64_t batch = a.dim(0);
  const std::int64_t n = a.dim(1);
  const SolverParameters parameters = make_solver_parameters();
  const cusolverDnHandle_t handle = solver_handle(a.device());
  constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_UPPER;  // our lower triangle is the library's upper one
  std::size_t on_device = 0, on_host = 0;
  if (batch == 1) {
    check(cusolverDnXsyevd_bufferSize(handle, parameters.get(), mode, kLower, n, CUDA_R_64F, a.raw(), n, CUDA_R_64F, values.raw(),
                                      CUDA_R_64F, &on_device, &on_host),
          "eigh");
    Workspace space(on_device, on_host, a.device());
    check(
        cusolverDnXsyevd(handle, parameters.get(), mode, kLower, n, CUDA_R_64F, a.raw(), n, CUDA_R_64F, values.raw(), CUDA_R_64F,
                         space.on_device.raw(), on_device, space.on_host.data(), on_host, space.info.data<std::int32_t>()),
        "eigh");
    return space.worst();
  }
  check(cusolverDnXsyevBatched_bufferSize(handle, parameters.get(), mode, kLower, n, CUDA_R_64F, a.raw(), n, CUDA_R_64F,
                                          values.raw(), CUDA_R_64F, &on_device, &on_host, batch),
        "eigh");
  Workspace space(on_device, on_host, a.device(), batch);
  check(cusolverDnXsyevBatched(handle, parameters.get(), mode, kLower, n, CUDA_R_64F, a.raw(), n, CUDA_R_64F, values.raw(),
                               CUDA_R_64F, space.on_device.raw(), on_device, space.on_host.data(), on_host,
                               space.info.data<std::int32_t>(), batch),
        "eigh");
  return space.worst();
}

int reflect(const Tensor& columns, const Tensor& scales) {
  const Range range("qr");
  const int n = whole(columns.dim(0), "qr");
  const int m = whole(columns.dim(1), "qr");
  const cusolverDnHandle_t handle = solver_handle(columns.device());
  int elements = 0;
  check(cusolverDnDgeqrf_bufferSize(handle, m, n, columns.data<double>(), m, &elements), "qr");
  const Workspace space(static_cast<std::size_t>(elements) * sizeof(double), 0, columns.device());
  check(cusolverDnDgeqrf(handle, m, n, columns.data<double>(), m, scales.data<double>(),
                         static_cast<double*>(space.on_device.raw()), elements, space.info.data<std::int32_t>()),
        "qr");
  return space.worst();
}

int expand_reflections(const Tensor& columns, const Tensor& scales) {
  const Range range("qr");
  const int k = whole(columns.dim(0), "qr");
  const int m = whole(columns.dim(1), "qr");
  const cusolverDnHandle_t handle = solver_handle(columns.device());
  int elements = 0;
  check(cusolverDnDorgqr_bufferSize(handle, m, k, k, columns.data<double>(), m, scales.data<double>(), &elements), "qr");
  const Workspace space(static_cast<std::size_t>(elements) * sizeof(double), 0, columns.device());
  check(cusolverDnDorgqr(handle, m, k, k, columns.data<double>(), m, scales.data<double>(),
                         static_cast<double*>(space.on_device.raw()), elements, space.info.data<std::int32_t>()),
        "qr");
  return space.worst();
}

}  // namespace tessera::cuda
