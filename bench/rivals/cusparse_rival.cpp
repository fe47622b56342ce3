#include "bench/rivals/cusparse_rival.h"

#include <cusparse.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/rivals/sparse_formats.h"
#include "core/cuda/libraries/blas_handle.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/handle.h"
#include "core/ops/sparse_product.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr int kLogErrors = 1;  // a level of cuSPARSE's log
constexpr float kOne = 1, kZero = 0;

using Handle = cuda::UniqueHandle<cusparseHandle_t, cusparseDestroy>;
using SharedHandle = std::shared_ptr<const Handle>;
using SparseMatrix = cuda::UniqueHandle<cusparseSpMatDescr_t, cusparseDestroySpMat>;
using DenseMatrix = cuda::UniqueHandle<cusparseDnMatDescr_t, cusparseDestroyDnMat>;

// The library's last log message. A status alone does not say why a call was refused.
std::string& complaint() {
  static std::string text;
  return text;
}

void hear(int, const char*, const char* message) { complaint() = message; }

void check(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  cuda::forget_error();
  const std::string why = std::exchange(complaint(), {});
  const std::string text = str(call, ": ", cusparseGetErrorString(status), why.empty() ? "" : ": ", why);
  if (status == CUSPARSE_STATUS_ALLOC_FAILED) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

// A handle on the device's stream. Scalars are on the host.
SharedHandle make_handle(Device device) {
  const cudaStream_t stream = cuda::stream_of(device);
  check(cusparseLoggerSetCallback(hear), "cusparseLoggerSetCallback");
  check(cusparseLoggerOpenFile("/dev/null"), "cusparseLoggerOpenFile");  // otherwise it prints into the table
  check(cusparseLoggerSetLevel(kLogErrors), "cusparseLoggerSetLevel");
  cusparseHandle_t made = nullptr;
  check(cusparseCreate(&made), "cusparseCreate");
  auto handle = std::make_shared<const Handle>(made);
  check(cusparseSetStream(made, stream), "cusparseSetStream");
  return handle;
}

// Describes a row-major matrix [rows, columns] as it is.
DenseMatrix row_major(const Tensor& t) {
  cusparseDnMatDescr_t made = nullptr;
  check(cusparseCreateDnMat(&made, t.dim(0), t.dim(1), t.dim(1), t.raw(), cuda::blas_type(t.dtype()), CUSPARSE_ORDER_ROW),
        "cusparseCreateDnMat");
  return DenseMatrix(made);
}

Tensor turned(const Tensor& matrix) { return matrix.permute({1, 0}); }

// Describes the same bytes as the transposed, column-major matrix [columns, rows].
DenseMatrix column_major(const Tensor& t) {
  cusparseDnMatDescr_t made = nullptr;
  check(cusparseCreateDnMat(&made, t.dim(1), t.dim(0), t.dim(1), t.raw(), cuda::blas_type(t.dtype()), CUSPARSE_ORDER_COL),
        "cusparseCreateDnMat");
  return DenseMatrix(made);
}

template <class To, class From>
Tensor on_device(const std::vector<From>& numbers, Device device) {
  return Tensor::from(std::vector<To>(numbers.begin(), numbers.end()), {std::ssize(numbers)}).to(device);
}

// Arrays and the matrix descriptor that refers to them.
struct Sparse {
  Tensor offsets, columns, values;
  SparseMatrix matrix;
};

Sparse csr(const SparseIndex& index, const Tensor& values) {
  Sparse made{on_device<std::int32_t>(index.offsets, values.device()),
              on_device<std::int32_t>(index.indices, values.device()),
              values,
              {}};
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreateCsr(&matrix, index.rows, index.columns, index.count(), made.offsets.raw(), made.columns.raw(), values.raw(),
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda::blas_type(values.dtype())),
        "cusparseCreateCsr");
  made.matrix = SparseMatrix(matrix);
  return made;
}

Sparse bsr(const SparseIndex& index, const BlockIndex& blocks, const Tensor& values) {
  Sparse made{on_device<std::int32_t>(blocks.offsets, values.device()),
              on_device<std::int32_t>(blocks.columns, values.device()),
              values,
              {}};
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreateBsr(&matrix, index.rows / blocks.size, index.columns / blocks.size, std::ssize(blocks.columns), blocks.size,
                          blocks.size, made.offsets.raw(), made.columns.raw(), values.raw(), CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda::blas_type(values.dtype()), CUSPARSE_ORDER_ROW),
        "cusparseCreateBsr");
  made.matrix = SparseMatrix(matrix);
  return made;
}

Sparse blocked_ell(const SparseIndex& index, const EllIndex& ell, const Tensor& values) {
  Sparse made{{}, on_device<std::int32_t>(ell.columns, values.device()), values, {}};
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreateBlockedEll(&matrix, index.rows, index.columns, ell.size, ell.width, made.columns.raw(), values.raw(),
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda::blas_type(values.dtype())),
        "cusparseCreateBlockedEll");
  made.matrix = SparseMatrix(matrix);
  return made;
}

// Scatters f32 values, given row by row, to their places among `size` elements with zeros elsewhere. Rounds them to `dtype`.
Tensor laid_out(const Tensor& values, const std::vector<std::int64_t>& places, std::int64_t size, DType dtype) {
  const Tensor made = Tensor::empty({size}, DType::f32, values.device());
  cuda::scatter_values(values, on_device<std::int64_t>(places, values.device()), made);
  return made.to(dtype);
}

Tensor workspace_of(std::size_t bytes, Device device) {
  return Tensor::empty({std::max<std::int64_t>(static_cast<std::int64_t>(bytes), 1)}, DType::u8, device);
}

// c' = op(a) b' for row-major b and c, analysed and called once. With column-major matrices, b and c are used in place. With
// row-major ones, each call transposes b before the product and c after it.
class SparseTimesDense {
 public:
  SparseTimesDense(SharedHandle handle, bool by_rows, Sparse a, cusparseOperation_t op, const Tensor& b, const Tensor& c,
                   cusparseSpMMAlg_t algorithm)
      : handle_(std::move(handle)),
        a_(std::move(a)),
        op_(op),
        tensors_{b, c},
        turned_(by_rows ? std::vector<Tensor>{turned(b).contiguous(), turned(c).contiguous()} : std::vector<Tensor>{}),
        b_(by_rows ? row_major(turned_[0]) : column_major(b)),
        c_(by_rows ? row_major(turned_[1]) : column_major(c)),
        algorithm_(algorithm) {
    std::size_t bytes = 0;
    check(cusparseSpMM_bufferSize(handle_->get(), op_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, a_.matrix.get(), b_.get(), &kZero,
                                  c_.get(), CUDA_R_32F, algorithm_, &bytes),
          "cusparseSpMM_bufferSize");
    workspace_ = workspace_of(bytes, c.device());
    // From here on the workspace holds the analysis of this matrix.
    check(cusparseSpMM_preprocess(handle_->get(), op_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, a_.matrix.get(), b_.get(), &kZero,
                                  c_.get(), CUDA_R_32F, algorithm_, workspace_.raw()),
          "cusparseSpMM_preprocess");
    run();
  }

  void run() const {
    if (!turned_.empty()) turned_[0].copy_from(turned(tensors_[0]));
    check(cusparseSpMM(handle_->get(), op_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, a_.matrix.get(), b_.get(), &kZero, c_.get(),
                       CUDA_R_32F, algorithm_, workspace_.raw()),
          "cusparseSpMM");
    if (!turned_.empty()) tensors_[1].copy_from(turned(turned_[1]));
  }

 private:
  SharedHandle handle_;
  Sparse a_;
  cusparseOperation_t op_;
  std::vector<Tensor> tensors_;  // b and c
  std::vector<Tensor> turned_;  // their transposes, row-major, if the library reads and writes row-major matrices
  DenseMatrix b_, c_;
  cusparseSpMMAlg_t algorithm_;
  Tensor workspace_;
};

// c = a' b at the elements that c has, for row-major a [rows, out] and b [rows, in]. It is expressed with row-major matrices, the
// first of them transposed, or with column-major ones, the second of them transposed.
class SampledProduct {
 public:
  SampledProduct(SharedHandle handle, bool by_rows, const Tensor& a, const Tensor& b, Sparse c)
      : handle_(std::move(handle)),
        op_a_(by_rows ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE),
        op_b_(by_rows ? CUSPARSE_OPERATION_NON_TRANSPOSE : CUSPARSE_OPERATION_TRANSPOSE),
        tensors_{a, b},
        a_(by_rows ? row_major(a) : column_major(a)),
        b_(by_rows ? row_major(b) : column_major(b)),
        c_(std::move(c)) {
    std::size_t bytes = 0;
    check(cusparseSDDMM_bufferSize(handle_->get(), op_a_, op_b_, &kOne, a_.get(), b_.get(), &kZero, c_.matrix.get(), CUDA_R_32F,
                                   CUSPARSE_SDDMM_ALG_DEFAULT, &bytes),
          "cusparseSDDMM_bufferSize");
    workspace_ = workspace_of(bytes, a.device());
    check(cusparseSDDMM_preprocess(handle_->get(), op_a_, op_b_, &kOne, a_.get(), b_.get(), &kZero, c_.matrix.get(), CUDA_R_32F,
                                   CUSPARSE_SDDMM_ALG_DEFAULT, workspace_.raw()),
          "cusparseSDDMM_preprocess");
    run();
  }

  void run() const {
    check(cusparseSDDMM(handle_->get(), op_a_, op_b_, &kOne, a_.get(), b_.get(), &kZero, c_.matrix.get(), CUDA_R_32F,
                        CUSPARSE_SDDMM_ALG_DEFAULT, workspace_.raw()),
          "cusparseSDDMM");
  }

 private:
  SharedHandle handle_;
  cusparseOperation_t op_a_, op_b_;
  std::vector<Tensor> tensors_;  // the memory that a_ and b_ describe
  DenseMatrix a_, b_;
  Sparse c_;
  Tensor workspace_;
};

// One call for each of the sets.
template <class Call>
using Calls = std::vector<std::shared_ptr<const Call>>;

template <class Call>
RotatedSide side_of(const std::string& name, Calls<Call> calls, const Tensor& output,
                    std::function<Tensor(const Tensor&)> in_order = {}) {
  return {name, [calls = std::move(calls)](std::size_t set) { calls[set]->run(); }, output, std::move(in_order)};
}

// Adds the side that `make` returns, or the reason why there is none.
template <class Make>
void offer(SparseRivals& rivals, const std::string& name, const Make& make) {
  try {
    rivals.sides.emplace_back(make());
  } catch (const DeviceError& error) {
    rivals.unsupported.push_back({name, error.what()});
  } catch (const OutOfMemoryError& error) {
    rivals.unsupported.push_back({name, error.what()});
  }
}

struct Sets {
  SharedHandle handle;
  ConvPass pass;
  const std::vector<SparseProduct>& tensors;

  DType dtype() const { return tensors.front().x.dtype(); }
  const Tensor& output() const { return tensors.front().result(pass); }
};

// Offers the product in both layouts. `sparse` returns the matrix of a set.
template <class MakeSparse>
void offer_product(SparseRivals& rivals, const Sets& sets, const std::string& name, cusparseSpMMAlg_t algorithm,
                   const MakeSparse& sparse, cusparseOperation_t op = CUSPARSE_OPERATION_NON_TRANSPOSE) {
  for (const bool by_rows : {false, true}) {
    const std::string full = by_rows ? name + ", row-major" : name;
    offer(rivals, full, [&] {
      Calls<SparseTimesDense> calls;
      for (std::size_t set = 0; set < sets.tensors.size(); ++set) {
        const SparseProduct& t = sets.tensors[set];
        const bool forward = sets.pass == ConvPass::forward;
        calls.push_back(std::make_shared<const SparseTimesDense>(sets.handle, by_rows, sparse(set), op, forward ? t.x : t.y,
                                                                 forward ? t.y : t.x, algorithm));
      }
      return side_of(full, std::move(calls), sets.output());
    });
  }
}

// The left matrix of the product: w, or w' for the gradient of x. Each set has its values row by row.
struct Left {
  SparseIndex index;
  std::vector<Tensor> values;
};

Left left_of(const Sets& sets, const SparseIndex& index) {
  Left left{index, {}};
  for (const SparseProduct& t : sets.tensors) left.values.push_back(t.values);
  if (sets.pass == ConvPass::forward) return left;
  TransposedIndex turned = transposed(index);
  const Tensor from = on_device<std::int64_t>(turned.from, sets.output().device());
  for (Tensor& values : left.values) {
    const Tensor in_turn = Tensor::empty_like(values);
    cuda::gather_values(values, from, in_turn);
    values = in_turn;
  }
  left.index = std::move(turned.index);
  return left;
}

void offer_products(SparseRivals& rivals, const Sets& sets, const SparseIndex& index, std::int64_t block) {
  const Left left = left_of(sets, index);
  const auto rows = [&](std::size_t set) { return csr(left.index, left.values[set].to(sets.dtype())); };
  offer_product(rivals, sets, "cuSPARSE CSR, algorithm 1", CUSPARSE_SPMM_CSR_ALG1, rows);
  offer_product(rivals, sets, "cuSPARSE CSR, algorithm 2", CUSPARSE_SPMM_CSR_ALG2, rows);
  offer_product(rivals, sets, "cuSPARSE CSR, algorithm 3", CUSPARSE_SPMM_CSR_ALG3, rows);
  if (sets.pass == ConvPass::backward_input) {  // algorithm 3 takes no transposed matrix
    const auto as_it_is = [&](std::size_t set) { return csr(index, sets.tensors[set].values.to(sets.dtype())); };
    const auto op = CUSPARSE_OPERATION_TRANSPOSE;
    offer_product(rivals, sets, "cuSPARSE CSR transposed, algorithm 1", CUSPARSE_SPMM_CSR_ALG1, as_it_is, op);
    offer_product(rivals, sets, "cuSPARSE CSR transposed, algorithm 2", CUSPARSE_SPMM_CSR_ALG2, as_it_is, op);
  }
  if (block == 0) return;
  const BlockIndex blocks = block_index(left.index, block);
  const EllIndex ell = ell_index(left.index, blocks);
  offer_product(rivals, sets, "cuSPARSE BSR", CUSPARSE_SPMM_BSR_ALG1, [&](std::size_t set) {
    return bsr(left.index, blocks, laid_out(left.values[set], blocks.places, left.index.count(), sets.dtype()));
  });
  offer_product(rivals, sets, "cuSPARSE Blocked-ELL", CUSPARSE_SPMM_BLOCKED_ELL_ALG1, [&](std::size_t set) {
    return blocked_ell(left.index, ell, laid_out(left.values[set], ell.places, left.index.rows * ell.width, sets.dtype()));
  });
}

// `sparse` returns the matrix of a set that the gradient is written to.
template <class MakeSparse>
void offer_gradient(SparseRivals& rivals, const Sets& sets, const std::string& name, const Tensor& output,
                    const MakeSparse& sparse, const std::function<Tensor(const Tensor&)>& in_order = {}) {
  for (const bool by_rows : {true, false}) {
    const std::string full = name + (by_rows ? ", row-major" : ", column-major");
    offer(rivals, full, [&] {
      Calls<SampledProduct> calls;
      for (std::size_t set = 0; set < sets.tensors.size(); ++set) {
        const SparseProduct& t = sets.tensors[set];
        calls.push_back(std::make_shared<const SampledProduct>(sets.handle, by_rows, t.y, t.x, sparse(set)));
      }
      return side_of(full, std::move(calls), output, in_order);
    });
  }
}

void offer_gradients(SparseRivals& rivals, const Sets& sets, const SparseIndex& index, std::int64_t block) {
  offer_gradient(rivals, sets, "cuSPARSE SDDMM, CSR", sets.output(),
                 [&](std::size_t set) { return csr(index, sets.tensors[set].values); });
  if (block == 0) return;
  const BlockIndex blocks = block_index(index, block);
  const std::vector<Tensor> values = empty_sets({index.count()}, DType::f32, sets.output().device(), sets.tensors.size());
  const Tensor places = on_device<std::int64_t>(blocks.places, sets.output().device());
  const auto row_by_row = [places](const Tensor& in_blocks) {
    const Tensor made = Tensor::empty_like(in_blocks);
    cuda::gather_values(in_blocks, places, made);
    return made;
  };
  offer_gradient(
      rivals, sets, "cuSPARSE SDDMM, BSR", values.front(), [&](std::size_t set) { return bsr(index, blocks, values[set]); },
      row_by_row);
}

}  // namespace

const Tensor& SparseProduct::result(ConvPass pass) const {
  switch (pass) {
    case ConvPass::forward: return y;
    case ConvPass::backward_input: return x;
    case ConvPass::backward_weight: return values;
  }
  throw InternalError("sparse product: unknown pass");
}

SparseRivals cusparse_rivals(ConvPass pass, const SparseIndex& index, std::int64_t block,
                             const std::vector<SparseProduct>& sets) {
  SparseRivals rivals;
  const Sets all{make_handle(sets.front().x.device()), pass, sets};
  if (pass == ConvPass::backward_weight) {
    offer_gradients(rivals, all, index, block);
  } else {
    offer_products(rivals, all, index, block);
  }
  if (block == 0) rivals.unsupported.push_back({"cuSPARSE BSR, Blocked-ELL", "what is kept is not whole square blocks"});
  return rivals;
}

std::string cusparse_version() {
  std::string text = "cuSPARSE";
  const char* separator = " ";
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    check(cusparseGetProperty(part, &number), "cusparseGetProperty");
    text += str(std::exchange(separator, "."), number);
  }
  return text;
}

}  // namespace tessera::bench
