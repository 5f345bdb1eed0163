// The engines of the fake libcudnn_graph, and configurations that name one.
#pragma once

#include "tests/fakes/cuda/cudnn_fake.h"

namespace yoke::fake {

// A plan that the module takes must be of one whose notes allow.
struct Engine {
    std::vector<cudnnBackendNumericalNote_t> notes;
    int64_t workspace;
};
extern const std::vector<Engine> kEngines;

// Of a configuration, and of an engine that was read from one: a number in the order of kEngines.
constexpr int kEngineOfConfig = CUDNN_ATTR_ENGINE_GLOBAL_INDEX;

// Each engine has one knob, of which one choice alone is right.
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

// Bytes: an engine's own, and those of the graph.
int64_t workspace_of(const CudnnObject &config);

// Of FAKE_CUDNN_MICROSECONDS, a number for each engine; the last is that of all others.
int microseconds_of(size_t engine);

// Finishes a configuration that was put together by hand, of an engine and a choice for its knob.
cudnnStatus_t take_engine(CudnnObject &config);

// Configurations for a graph, one an engine.
void add_results(CudnnObject &heuristics);

}  // namespace yoke::fake
