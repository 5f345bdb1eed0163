// Declarations for the files of the fake libcudnn_graph: filled descriptors, and the work of a plan.
#pragma once

#include <cudnn_backend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace yoke::fake {

struct CudnnObject;
using CudnnRef = std::shared_ptr<const CudnnObject>;

struct CudnnValue {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
    std::vector<CudnnRef>
        refs;  // copies of descriptors, because the caller may destroy a descriptor after the call
};

struct CudnnObject {
    cudnnBackendDescriptorType_t type;
    bool is_finalized = false;
    std::map<int, CudnnValue> values;
    std::vector<std::shared_ptr<CudnnObject>> results;  // heuristics: the engines' configurations

    bool has(int name) const { return values.count(name) > 0; }
    template <class T>
    T get(int name, T otherwise = T()) const
    {
        const auto found = values.find(name);
        if (found == values.end()) return otherwise;
        T value;
        __builtin_memcpy(&value, found->second.bytes.data(), sizeof value);
        return value;
    }
    std::vector<int64_t> list(int name) const
    {
        const CudnnValue &value = values.at(name);
        const auto *first = reinterpret_cast<const int64_t *>(value.bytes.data());
        return {first, first + value.count};
    }
    const CudnnObject *ref(int name) const
    {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.refs[0].get();
    }
};

// Reports a problem, on stderr and as the last error, and returns CUDNN_STATUS_BAD_PARAM.
cudnnStatus_t refuse_cudnn(const char *format, ...) __attribute__((format(printf, 1, 2)));

// check_attribute() refuses an attribute foreign to the descriptor, or of a wrong type or count. check_object()
// refuses a descriptor with attributes that are missing or do not fit together.
cudnnStatus_t check_attribute(const CudnnObject &object, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t count);
cudnnStatus_t check_object(const CudnnObject &object);

// The tensors of an operation, in and out, by the attributes' names.
struct CudnnPorts {
    std::vector<int> in;
    int out;
};
CudnnPorts ports_of(const CudnnObject &operation);

// Returns real tensors of a graph, by name.
std::map<int64_t, const CudnnObject *> tensors_of(const CudnnObject &graph);

inline size_t size_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
           : type == CUDNN_DATA_BOOLEAN                           ? 1
                                                                  : 4;
}

struct CudnnWork {
    CudnnRef graph;
    bool tf32;
    std::map<int64_t, void *> addresses;  // by tensors' names
    std::map<int64_t, float> numbers;     // by name: read when the plan was handed over
    void *workspace;
    uint64_t workspace_bytes;
    int microseconds;  // length of the plan on the clock of FAKE_CUDA_TICKS
    int turn;          // number of the run: sums that may come in any order begin elsewhere in each
};
// Takes addresses over. Each real tensor of the graph must have an address, aligned as promised.
cudnnStatus_t read_cudnn_pack(const CudnnObject &pack, const CudnnObject &graph, CudnnWork &work);
void run_cudnn_graph(const CudnnWork &work);
int do_cudnn_work(void *work);
void drop_cudnn_work(void *work);

}  // namespace yoke::fake
