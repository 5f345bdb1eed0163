#include "yoke/graph.h"

#include "capi/src/guard.h"
#include "core/ops/graph.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

InTurn<Graph> need_graph(yoke_graph *handle, const char *call)
{
    return {need(handle, call, "graph", "give a graph that yoke_graph_create returned"), call,
            "graph"};
}

}  // namespace

yoke_status yoke_graph_create(yoke_device *device, yoke_graph **out)
{
    constexpr const char *call = "yoke_graph_create";
    return guard(call, [&] {
        yoke_graph *&place = need_out(out, call);
        place = hand_out<yoke_graph>(Ref<Graph>::adopt(new Graph(device_or_current(device))));
    });
}

yoke_graph *yoke_graph_retain(yoke_graph *graph)
{
    return retain_handle(graph, "yoke_graph_retain");
}

void yoke_graph_release(yoke_graph *graph)
{
    if (Graph *captured = take_back(graph, "yoke_graph_release")) captured->release_handle();
}

yoke_status yoke_graph_begin(yoke_graph *graph)
{
    constexpr const char *call = "yoke_graph_begin";
    return guard(call, [&] { need_graph(graph, call)->begin(); });
}

yoke_status yoke_graph_end(yoke_graph *graph)
{
    constexpr const char *call = "yoke_graph_end";
    return guard(call, [&] { need_graph(graph, call)->end(); });
}

void yoke_graph_abort(yoke_graph *graph)
{
    constexpr const char *call = "yoke_graph_abort";
    guard(call, [&] {
        if (graph) object_of(graph, call, "graph")->abort();
    });
}

yoke_status yoke_graph_replay(yoke_graph *graph)
{
    constexpr const char *call = "yoke_graph_replay";
    return guard(call, [&] { need_graph(graph, call)->replay(); });
}
