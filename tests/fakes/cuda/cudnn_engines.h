// Engines of the fake libcudnn_graph, and configurations for them.
#pragma once

#include "tests/fakes/cuda/cudnn_fake.h"

namespace yoke::fake {

// Engine for a plan. The module must take only engines with allowed notes.
struct Engine {
    std::vector<cudnnBackendNumericalNote_t> notes;
    int64_t workspace;
};
extern const std::vector<Engine> kEngines;

// Attribute of a configuration, and of an engine read from a configuration: a number in the order of kEngines.
constexpr int kEngineOfConfig = CUDNN_ATTR_ENGINE_GLOBAL_INDEX;

// Knob of each engine. A single choice for this knob is right.
constexpr int kKnob = CUDNN_KNOB_TYPE_TILE_SIZE;
inline int64_t choice_of(int64_t engine)
{
    return 10 + engine;
}

template <class T>
CudnnValue value_of(cudnnBackendAttributeType_t type, const T &value)
{
    CudnnValue made{type, 1, std::vector<char>(sizeof value), {}};
    __builtin_memcpy(made.bytes.data(), &value, sizeof value);
    return made;
}

bool is_float_graph(const CudnnObject &graph);

// Order of the sums in a graph that is an attention's gradient. In order, the last step is a product.
enum class Gradient { kNone, kInOrder, kAnyOrder };
Gradient gradient_of(const CudnnObject &graph);

// Returns the bytes of a workspace: the engine's and the graph's.
int64_t workspace_of(const CudnnObject &config);

// Returns an engine's number from FAKE_CUDNN_MICROSECONDS. The last number in the list holds for all further engines.
int microseconds_of(size_t engine);

// Finishes a configuration made from an engine and a choice for the engine's knob.
cudnnStatus_t take_engine(CudnnObject &config);

// Adds a graph's configurations, one for each engine.
void add_results(CudnnObject &heuristics);

}  // namespace yoke::fake
