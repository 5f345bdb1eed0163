// Fake libcudnn_graph for tests: graphs on host memory, in the order of their stream, by calls that cuDNN would
// accept. If cuDNN would refuse a call, or answer with wrong memory, the fake refuses the call with a line on stderr.
// See fake.h.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "tests/fakes/cuda/beside_driver.h"
#include "tests/fakes/cuda/cudnn_engines.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::fake {
namespace {

void hold(int change)
{
    static const auto count = driver_symbol<decltype(&fake_hold)>("fake_hold");
    if (count) count(FAKE_HANDLES, change);
}

thread_local char g_said[256];

struct Handle {
    int device;
    cudaStream_t stream;
};

std::mutex g_mutex;
std::set<const void *> g_handles;
std::map<void *, std::shared_ptr<CudnnObject>> g_objects;
int g_runs[2];  // in TF32, and not
int g_engine_runs[8], g_last_engine = -1;
int g_gradients[3];  // by Gradient

std::shared_ptr<CudnnObject> object_of(void *descriptor)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    const auto found = g_objects.find(descriptor);
    return found == g_objects.end() ? nullptr : found->second;
}

cudnnStatus_t check_handle(cudnnHandle_t handle)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (!g_handles.count(handle)) return refuse_cudnn("a handle that is not live");
    const int device = reinterpret_cast<const Handle *>(handle)->device;
    if (device != current_device())
        return refuse_cudnn("a handle of device %d while %d is current", device, current_device());
    return CUDNN_STATUS_SUCCESS;
}

size_t bytes_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
        case CUDNN_TYPE_BOOLEAN:
            return 1;
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
            return 8;
        default:
            return 4;
    }
}

}  // namespace

cudnnStatus_t refuse_cudnn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(g_said, sizeof g_said, format, args);
    va_end(args);
    fprintf(stderr, "fake cuDNN: %s\n", g_said);
    return CUDNN_STATUS_BAD_PARAM;
}

}  // namespace yoke::fake

using namespace yoke::fake;

#define FAULT()                                                     \
    do {                                                            \
        if (const int fault = fault_of(__func__)) {                 \
            snprintf(g_said, sizeof g_said, "asked for by a test"); \
            return static_cast<cudnnStatus_t>(fault);               \
        }                                                           \
    } while (0)

// ---- the library ----------------------------------------------------------------------------------------------------

// Number of graphs run so far in TF32 (1), and otherwise (0).
extern "C" __attribute__((visibility("default"))) int fake_cudnn_runs(int tf32)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_runs[tf32];
}

// Number of runs so far of an engine, by its place in kEngines.
extern "C" __attribute__((visibility("default"))) int fake_cudnn_runs_of(int engine)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_engine_runs[engine];
}

// Number of gradients of attention run so far, in order (1) or in any order (2).
extern "C" __attribute__((visibility("default"))) int fake_cudnn_gradients(int order)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_gradients[order];
}

// Engine of the last run.
extern "C" __attribute__((visibility("default"))) int fake_cudnn_last(int)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    return g_last_engine;
}

// Computes a graph at once, without a handle.
extern "C" __attribute__((visibility("default"))) int fake_cudnn_compute(void *graph, int count,
                                                                         const int64_t *names,
                                                                         void *const *places)
{
    CudnnWork work{};
    work.graph = object_of(graph);
    for (int i = 0; i < count; ++i) work.addresses[names[i]] = places[i];
    if (!work.graph || work.addresses.size() != tensors_of(*work.graph).size())
        return refuse_cudnn("%d addresses for a graph", count);
    run_cudnn_graph(work);
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion()
{
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion()
{
    return CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t)
{
    return "CUDNN_STATUS_FAKE";
}

void cudnnGetLastErrorString(char *message, size_t capacity)
{
    snprintf(message, capacity, "%s", g_said);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    FAULT();
    if (current_device() < 0) return CUDNN_STATUS_NOT_INITIALIZED;
    if (runtime().wait && runtime().wait()) return CUDNN_STATUS_INTERNAL_ERROR;
    const auto *made = new Handle{current_device(), nullptr};
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_handles.insert(made);
    hold(1);
    *handle = reinterpret_cast<cudnnHandle_t>(const_cast<Handle *>(made));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    FAULT();
    if (const cudnnStatus_t status = check_handle(handle)) return status;
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_handles.erase(handle);
    hold(-1);
    delete reinterpret_cast<Handle *>(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    FAULT();
    if (const cudnnStatus_t status = check_handle(handle)) return status;
    reinterpret_cast<Handle *>(handle)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor)
{
    FAULT();
    auto made = std::make_shared<CudnnObject>();
    made->type = type;
    const std::lock_guard<std::mutex> lock(g_mutex);
    *descriptor = made.get();
    g_objects[made.get()] = made;
    hold(1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (!g_objects.erase(descriptor))
        return refuse_cudnn("a descriptor that is not live is destroyed");
    hold(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    FAULT();
    const auto object = object_of(descriptor);
    if (!object || object->is_finalized)
        return refuse_cudnn("attribute %d of a descriptor that is none, or is finalized", name);
    if (const cudnnStatus_t status = check_attribute(*object, name, type, count)) return status;
    const auto *first = static_cast<const char *>(values);
    CudnnValue value{type, count, {first, first + static_cast<size_t>(count) * bytes_of(type)}, {}};
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i) {
        const auto other = object_of(static_cast<void *const *>(values)[i]);
        if (!other || !other->is_finalized)
            return refuse_cudnn("attribute %d is a descriptor that is not finalized", name);
        value.refs.push_back(other);
    }
    object->values[name] = std::move(value);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    FAULT();
    const auto object = object_of(descriptor);
    if (!object || object->is_finalized)
        return refuse_cudnn("a descriptor that is none, or is finalized, is finalized");
    if (const cudnnStatus_t status = check_object(*object)) return status;
    // Making a plan may compile code, and loads the result.
    if (object->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && runtime().unsafe &&
        runtime().unsafe())
        return CUDNN_STATUS_INTERNAL_ERROR;
    if (object->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) add_results(*object);
    if (object->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        if (const cudnnStatus_t status = take_engine(*object)) return status;
    object->is_finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t wanted, int64_t *count,
                                       void *values)
{
    FAULT();
    const auto object = object_of(descriptor);
    if (!object || !object->is_finalized)
        if (!object || object->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR ||
            !object->has(kEngineOfConfig))
            return refuse_cudnn("attribute %d of a descriptor that is not finalized", name);
    auto *const *places = static_cast<void *const *>(values);
    const auto engine = static_cast<size_t>(object->get<int64_t>(kEngineOfConfig));
    switch (static_cast<int>(name)) {
        case CUDNN_ATTR_ENGINEHEUR_RESULTS:
            *count = static_cast<int64_t>(object->results.size());
            for (int64_t i = 0; i < std::min(wanted, *count); ++i) {
                const auto result = object_of(places[i]);
                if (!result) return refuse_cudnn("a result that has no place");
                *result = *object->results[static_cast<size_t>(i)];
            }
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_ENGINECFG_ENGINE:
            *count = 1;
            object_of(places[0])->values[kEngineOfConfig] = object->values.at(kEngineOfConfig);
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
            *count = 1;
            memcpy(values, object->values.at(kEngineOfConfig).bytes.data(), sizeof(int64_t));
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
            *count = wanted > 0;  // cuDNN, too, counts only filled entries
            if (wanted > 0) {
                CudnnObject &choice = *object_of(places[0]);
                choice.values[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE] =
                    value_of(CUDNN_TYPE_KNOB_TYPE, kKnob);
                choice.values[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE] =
                    value_of(CUDNN_TYPE_INT64, choice_of(static_cast<int64_t>(engine)));
                choice.is_finalized = true;
            }
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE: {
            const std::vector<char> &bytes = object->values.at(name).bytes;
            *count = 1;
            memcpy(values, bytes.data(), bytes.size());
            return CUDNN_STATUS_SUCCESS;
        }
        case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
            *count = static_cast<int64_t>(kEngines[engine].notes.size());
            std::copy_n(kEngines[engine].notes.begin(), std::min(wanted, *count),
                        static_cast<cudnnBackendNumericalNote_t *>(values));
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
            const int64_t bytes =
                workspace_of(*object->ref(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
            *count = 1;
            memcpy(values, &bytes, sizeof bytes);
            return CUDNN_STATUS_SUCCESS;
        }
        default:
            return refuse_cudnn("attribute %d cannot be read", name);
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    FAULT();
    if (const cudnnStatus_t status = check_handle(handle)) return status;
    const auto the_plan = object_of(plan), the_pack = object_of(pack);
    if (!the_plan || !the_pack || !the_plan->is_finalized || !the_pack->is_finalized)
        return refuse_cudnn("a plan or a pack that is not finalized");
    if (the_plan->get<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle)
        return refuse_cudnn("a plan of another handle");
    const CudnnObject &config = *the_plan->ref(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Engine &engine = kEngines[static_cast<size_t>(config.get<int64_t>(kEngineOfConfig))];
    CudnnWork work{};
    work.graph = config.values.at(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).refs[0];
    work.workspace_bytes = static_cast<uint64_t>(workspace_of(config));
    work.microseconds = microseconds_of(static_cast<size_t>(&engine - kEngines.data()));
    work.tf32 = is_float_graph(*work.graph) && !engine.notes.empty() &&
                engine.notes[0] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    if (const cudnnStatus_t status = read_cudnn_pack(*the_pack, *work.graph, work)) return status;
    if (!runtime().enqueue) return CUDNN_STATUS_NOT_INITIALIZED;
    std::vector<const void *> used = {work.workspace_bytes ? work.workspace : nullptr};
    for (const auto &[name, address] : work.addresses) used.push_back(address);
    {
        const std::lock_guard<std::mutex> lock(g_mutex);
        ++g_runs[work.tf32];
        ++g_gradients[static_cast<int>(gradient_of(*work.graph))];
        work.turn = g_runs[0] + g_runs[1];
        g_last_engine = static_cast<int>(&engine - kEngines.data());
        ++g_engine_runs[g_last_engine];
    }
    return runtime().enqueue("cuDNN's kernel", reinterpret_cast<Handle *>(handle)->stream,
                             do_cudnn_work, drop_cudnn_work, new CudnnWork(work), used.data(),
                             used.size() * sizeof(void *))
               ? CUDNN_STATUS_EXECUTION_FAILED
               : CUDNN_STATUS_SUCCESS;
}
