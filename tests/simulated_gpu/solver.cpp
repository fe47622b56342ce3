// The cuSOLVER functions that tessera calls, by Eigen on the GPU's memory: column-major, in double.
#include <cusolverDn.h>

#include <Eigen/Dense>
#include <cstring>

#include "tests/simulated_gpu/handles.h"
#include "tests/simulated_gpu/stream.h"

struct cusolverDnContext {
  cudaStream_t stream;
};
struct cusolverDnParams {};
struct gesvdjInfo {};

namespace {

using namespace tessera::simulated_gpu;
using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Columns = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
using Vector = Eigen::Map<Eigen::VectorXd>;

constexpr std::size_t kOnDevice = 4096;
constexpr std::size_t kOnHost = 64;
constexpr int kElements = 512;
constexpr int kMostJacobi = 32;

Columns columns(void* data, Index rows, Index count, Index lead) {
  return Columns(static_cast<double*>(data), rows, count, Eigen::OuterStride<>(lead));
}
Vector vector(void* data, Index size) { return Vector(static_cast<double*>(data), size); }

bool all_double(std::initializer_list<cudaDataType> types) {
  for (const cudaDataType type : types) {
    if (type != CUDA_R_64F) return false;
  }
  return true;
}

// Queues the work. It overwrites the workspace and sets info = 0 for each of `batch` matrices.
template <class Work>
cusolverStatus_t run(cusolverDnHandle_t handle, void* workspace, std::size_t bytes, int* info, std::int64_t batch,
                     const Work& work) {
  const std::lock_guard lock(gpu_mutex());
  put(handle->stream, [=] {
    std::memset(workspace, 0xab, bytes);
    work();
    for (std::int64_t i = 0; i < batch; ++i) info[i] = 0;
  });
  return CUSOLVER_STATUS_SUCCESS;
}

// Reads only the triangle that `fill` names; the other one may hold anything.
void diagonalise(cusolverEigMode_t mode, cublasFillMode_t fill, Columns a, Vector values) {
  const Matrix triangle = a;
  const Matrix whole = fill == CUBLAS_FILL_MODE_LOWER ? Matrix(triangle.selfadjointView<Eigen::Lower>())
                                                      : Matrix(triangle.selfadjointView<Eigen::Upper>());
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(whole);
  values = solver.eigenvalues();
  if (mode == CUSOLVER_EIG_MODE_VECTOR)
    a = solver.eigenvectors();
  else
    a.setConstant(-7);  // destroyed
}

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) { return make<cusolverStatus_t>(handle); }
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t, cusolverDeterministicMode_t) {
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* made) { return make<cusolverStatus_t>(made); }
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return destroy<cusolverStatus_t>(params); }
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* made) { return make<cusolverStatus_t>(made); }
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) { return destroy<cusolverStatus_t>(info); }

// Only for m >= n.
cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, signed char jobu, signed char jobvt,
                                             std::int64_t m, std::int64_t n, cudaDataType a, const void*, std::int64_t,
                                             cudaDataType s, const void*, cudaDataType u, const void*, std::int64_t,
                                             cudaDataType vt, const void*, std::int64_t, cudaDataType compute,
                                             std::size_t* on_device, std::size_t* on_host) {
  if (m < n || jobu != 'S' || jobvt != 'S' || !all_double({a, s, u, vt, compute})) return CUSOLVER_STATUS_INVALID_VALUE;
  *on_device = kOnDevice;
  *on_host = kOnHost;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t, signed char, signed char, std::int64_t m,
                                  std::int64_t n, cudaDataType, void* a, std::int64_t lda, cudaDataType, void* s, cudaDataType,
                                  void* u, std::int64_t ldu, cudaDataType, void* vt, std::int64_t ldvt, cudaDataType,
                                  void* workspace, std::size_t bytes, void*, std::size_t host_bytes, int* info) {
  if (m < n || bytes < kOnDevice || host_bytes < kOnHost) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, bytes, info, 1, [=] {
    const Eigen::JacobiSVD<Matrix> svd(Matrix(columns(a, m, n, lda)), Eigen::ComputeThinU | Eigen::ComputeThinV);
    vector(s, n) = svd.singularValues();
    columns(u, m, n, ldu) = svd.matrixU();
    columns(vt, n, n, ldvt) = svd.matrixV().transpose();
    columns(a, m, n, lda).setConstant(-7);  // destroyed
  });
}

cusolverStatus_t cusolverDnDgesvdjBatched_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, int m, int n, const double*, int,
                                                     const double*, const double*, int, const double*, int, int* elements,
                                                     gesvdjInfo_t, int) {
  if (m > kMostJacobi || n > kMostJacobi) return CUSOLVER_STATUS_INVALID_VALUE;
  *elements = kElements;
  return CUSOLVER_STATUS_SUCCESS;
}
// U [m, m] and V [n, n] are complete and not transposed.
cusolverStatus_t cusolverDnDgesvdjBatched(cusolverDnHandle_t handle, cusolverEigMode_t, int m, int n, double* a, int lda,
                                          double* s, double* u, int ldu, double* v, int ldv, double* workspace, int elements,
                                          int* info, gesvdjInfo_t, int batch) {
  if (m > kMostJacobi || n > kMostJacobi || elements < kElements) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, static_cast<std::size_t>(elements) * sizeof(double), info, batch, [=] {
    const Index count = std::min(m, n);
    for (Index i = 0; i < batch; ++i) {
      const Columns one = columns(a + i * lda * n, m, n, lda);
      const Eigen::JacobiSVD<Matrix> svd(Matrix(one), Eigen::ComputeFullU | Eigen::ComputeFullV);
      vector(s + i * count, count) = svd.singularValues();
      columns(u + i * ldu * m, m, m, ldu) = svd.matrixU();
      columns(v + i * ldv * n, n, n, ldv) = svd.matrixV();
    }
  });
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t,
                                             std::int64_t, cudaDataType a, const void*, std::int64_t, cudaDataType values,
                                             const void*, cudaDataType compute, std::size_t* on_device, std::size_t* on_host) {
  if (!all_double({a, values, compute})) return CUSOLVER_STATUS_INVALID_VALUE;
  *on_device = kOnDevice;
  *on_host = kOnHost;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode, cublasFillMode_t fill,
                                  std::int64_t n, cudaDataType, void* a, std::int64_t lda, cudaDataType, void* values,
                                  cudaDataType, void* workspace, std::size_t bytes, void*, std::size_t host_bytes, int* info) {
  if (bytes < kOnDevice || host_bytes < kOnHost) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, bytes, info, 1, [=] { diagonalise(mode, fill, columns(a, n, n, lda), vector(values, n)); });
}
cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t mode,
                                                   cublasFillMode_t fill, std::int64_t n, cudaDataType type_a, const void* a,
                                                   std::int64_t lda, cudaDataType type_values, const void* values,
                                                   cudaDataType compute, std::size_t* on_device, std::size_t* on_host,
                                                   std::int64_t) {
  return cusolverDnXsyevd_bufferSize(handle, params, mode, fill, n, type_a, a, lda, type_values, values, compute, on_device,
                                     on_host);
}
cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode,
                                        cublasFillMode_t fill, std::int64_t n, cudaDataType, void* a, std::int64_t lda,
                                        cudaDataType, void* values, cudaDataType, void* workspace, std::size_t bytes, void*,
                                        std::size_t host_bytes, int* info, std::int64_t batch) {
  if (bytes < kOnDevice || host_bytes < kOnHost) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, bytes, info, batch, [=] {
    for (std::int64_t i = 0; i < batch; ++i) {
      diagonalise(mode, fill, columns(static_cast<double*>(a) + i * lda * n, n, n, lda),
                  vector(static_cast<double*>(values) + i * n, n));
    }
  });
}

cusolverStatus_t cusolverDnDgeqrf_bufferSize(cusolverDnHandle_t, int, int, double*, int, int* elements) {
  *elements = kElements;
  return CUSOLVER_STATUS_SUCCESS;
}
// R is in the upper triangle and the reflections are below it, as in LAPACK.
cusolverStatus_t cusolverDnDgeqrf(cusolverDnHandle_t handle, int m, int n, double* a, int lda, double* scales, double* workspace,
                                  int elements, int* info) {
  if (elements < kElements) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, static_cast<std::size_t>(elements) * sizeof(double), info, 1, [=] {
    const Eigen::HouseholderQR<Matrix> qr(Matrix(columns(a, m, n, lda)));
    columns(a, m, n, lda) = qr.matrixQR();
    vector(scales, std::min(m, n)) = qr.hCoeffs();
  });
}
cusolverStatus_t cusolverDnDorgqr_bufferSize(cusolverDnHandle_t, int, int, int, const double*, int, const double*,
                                             int* elements) {
  *elements = kElements;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDorgqr(cusolverDnHandle_t handle, int m, int n, int k, double* a, int lda, const double* scales,
                                  double* workspace, int elements, int* info) {
  if (elements < kElements || k > n || n > m) return CUSOLVER_STATUS_INVALID_VALUE;
  return run(handle, workspace, static_cast<std::size_t>(elements) * sizeof(double), info, 1, [=] {
    const Matrix reflections = columns(a, m, k, lda);
    const Eigen::VectorXd coefficients = vector(const_cast<double*>(scales), k);
    columns(a, m, n, lda) = Eigen::householderSequence(reflections, coefficients) * Matrix::Identity(m, n);
  });
}

}  // extern "C"
