// Operation graphs by cuDNN's backend API: descriptors with an owner, and a builder.
//
// Contract
//  * The first failed call is kept, with cuDNN's text. Later calls are skipped.
//  * A graph is for a Target: a device by its handle, or the described properties of a device that need not exist.
//    Otherwise both are the same, so engines can be listed without a GPU.
//  * Real tensors have names, under which a plan gets their addresses. Numbers are by value: f32, read from host
//    memory when a plan runs.
#pragma once

#include "core/backend/backend.h"
#include "kernels/cuda/host/cudnn/library.h"

namespace yoke::cuda {

struct Target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;  // in the place of a handle
};

struct CudnnFailure {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const char *call = "";
    char said[512] = "";

    explicit operator bool() const { return status != CUDNN_STATUS_SUCCESS; }
};

// Descriptor, destroyed with its owner.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(const CudnnCalls &call) : call_(&call) {}
    Descriptor(Descriptor &&other) noexcept : call_(other.call_), it_(other.release()) {}
    Descriptor &operator=(Descriptor &&other) noexcept;
    ~Descriptor();

    cudnnBackendDescriptor_t get() const { return it_; }
    cudnnBackendDescriptor_t *place() { return &it_; }
    cudnnBackendDescriptor_t release();

private:
    const CudnnCalls *call_ = nullptr;
    cudnnBackendDescriptor_t it_ = nullptr;
};

// Sequence of backend API calls. After the first failure, create, set, get and finalize make no call.
class CudnnSteps {
public:
    explicit CudnnSteps(const CudnnCalls &functions) : call(functions) {}

    Descriptor create(cudnnBackendDescriptorType_t type);
    void set(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, int64_t count, const void *values);
    template <class T>
    void set(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, const T &value)
    {
        set(it, name, type, 1, &value);
    }
    // Reads up to `count` values. Returns how many values there are, or 0 after a failure.
    int64_t get(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, void *values);
    void finalize(cudnnBackendDescriptor_t it);
    void check(cudnnStatus_t status, const char *what);

    const CudnnFailure &failure() const { return failure_; }
    bool works() const { return !failure_; }

    const CudnnCalls &call;

private:
    CudnnFailure failure_;
};

constexpr int kCudnnAxes = 4;

struct CudnnShape {
    int64_t dims[kCudnnAxes], strides[kCudnnAxes];
};

class Graph {
public:
    using Node = cudnnBackendDescriptor_t;  // tensor, owned by the graph

    Graph(const CudnnCalls &call, const Target &target) : steps(call), target_(target) {}
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    // Makes a tensor in memory, with this name and an alignment in bytes. Like all functions with a Node, returns
    // null after a failure.
    Node tensor(cudnnDataType_t type, const CudnnShape &shape, int64_t name, int64_t alignment);
    // Makes a tensor between two operations, never in memory.
    Node between(cudnnDataType_t type, const CudnnShape &shape);
    // Makes a number of f32, which a plan reads from host memory.
    Node number(int64_t name);

    // Adds y = mode(x, b), computed in f32. `t`, if not null, is the condition of a selection.
    void pointwise(cudnnPointwiseMode_t mode, Node x, Node b, Node y, Node t = nullptr);
    // Adds y = the place of each element of `like` along an axis, in int32.
    void index(int64_t axis, Node like, Node y);
    // Adds y = mode(x, b), a comparison with boolean results.
    void compare(cudnnPointwiseMode_t mode, Node x, Node b, Node y);
    void matmul(Node a, Node b, Node c);
    void reduce(cudnnReduceTensorOp_t op, Node x, Node y);
    void reshape(Node x, Node y);

    // Finalizes a descriptor and takes it into the graph. keep_operation also adds it to the list of operations.
    Node keep(Descriptor &&made);
    void keep_operation(Descriptor &&made);

    // Makes the graph from its operations, after the last of them. Returns false if any call failed; `steps` keeps
    // the failure.
    bool finish();

    Node get() const { return graph_; }
    const Target &target() const { return target_; }
    CudnnSteps steps;

private:
    static constexpr int kMost = 128, kMostOperations = 48;

    Node make_tensor(cudnnDataType_t type, const CudnnShape &shape, int64_t name, int64_t alignment,
                     bool is_virtual, bool is_number);
    Node pointwise_kind(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis);
    void add_pointwise(Node kind, Node x, Node b, Node y, Node t);

    const Target target_;
    Node owned_[kMost];
    Node operations_[kMostOperations];
    int count_ = 0, operation_count_ = 0;
    int64_t next_name_ = 1000;
    Node graph_ = nullptr;
};

// Returns the alignment of an address, up to 16 bytes. A null address counts as aligned.
int64_t alignment_of(const void *address);

// Returns cuDNN's type for f16, bf16 and f32. Graphs use only these types.
cudnnDataType_t cudnn_type(yoke_dtype dtype);

}  // namespace yoke::cuda
