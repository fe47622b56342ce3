// The NCCL functions that tessera calls, by MPI on the memory of the ranks' simulated GPUs. A group's work runs when the group
// ends, after everything that its stream holds before: a host that waits for another with its part still queued blocks both.
#include <mpi.h>
#include <nccl.h>

#include <vector>

#include "tests/simulated_gpu/stream.h"

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
};

namespace {

using namespace tessera::simulated_gpu;

struct Message {
  ncclComm_t comm;
  void* memory;
  int bytes, peer;
  bool is_sent;
  cudaStream_t stream;
};

bool grouped = false;
std::vector<Message> group;

ncclResult_t add(const Message& message) {
  if (!grouped || message.comm == nullptr) return ncclInvalidUsage;
  group.push_back(message);
  return ncclSuccess;
}

int bytes_of(std::size_t count, ncclDataType_t type) { return static_cast<int>(count) * (type == ncclFloat64 ? 8 : 4); }

void exchange(const std::vector<Message>& messages) {
  std::vector<MPI_Request> requests;
  for (const Message& m : messages) {
    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
    if (m.is_sent) {
      MPI_Isend(m.memory, m.bytes, MPI_BYTE, m.peer, 0, m.comm->ranks, &request);
    } else {
      MPI_Irecv(m.memory, m.bytes, MPI_BYTE, m.peer, 0, m.comm->ranks, &request);
    }
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t status) { return status == ncclSuccess ? "no error" : "error of the simulated NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}

// Returns before the communicator is ready, as NCCL does for calls that need not wait.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId, int rank, ncclConfig_t* config) {
  int size = 0, own = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (size != ranks || own != rank) return ncclInvalidArgument;
  *comm = new ncclComm;
  MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->ranks);
  return config->blocking == 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm == nullptr) return ncclInvalidArgument;
  *state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclInProgress; }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  MPI_Comm_free(&comm->ranks);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return comm == nullptr ? ncclSuccess : ncclCommDestroy(comm); }

ncclResult_t ncclGroupStart() {
  grouped = true;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* memory, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({comm, const_cast<void*>(memory), bytes_of(count, type), peer, true, stream});
}

ncclResult_t ncclRecv(void* memory, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add({comm, memory, bytes_of(count, type), peer, false, stream});
}

ncclResult_t ncclGroupEnd() {
  grouped = false;
  if (group.empty()) return ncclSuccess;
  const std::lock_guard lock(gpu_mutex());
  const cudaStream_t stream = group.front().stream;
  put(stream, [messages = std::exchange(group, {})] { exchange(messages); });
  run_until(*stream->queue, stream->queue->put);
  return ncclInProgress;
}

}  // extern "C"
