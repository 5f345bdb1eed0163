/* Captured steps: yoke.Graph, over yoke/graph.h. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/handles.h"

static void release_graph(void *graph)
{
    yoke_graph_release(graph);
}

static const YlClass kGraph = {"yoke.Graph", "a Graph", "a closed Graph", release_graph, 0};

/* Implements yoke.Graph([device]): makes a graph without work. */
static int make_graph(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "Graph", "device"};
    lua_settop(L, 1);
    yoke_device *device = yl_need_device(L, target, 1);
    yoke_graph **box = yl_push_handle(L, &kGraph);
    yl_check(L, b, yoke_graph_create(device, box));
    return 1;
}

/* Implements graph:capture(fn, ...): captures the work of fn, and returns the results of fn. fn cannot yield: else
 * work of another coroutine is captured. */
static int graph_capture(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_graph *graph = yl_need_self(L, &kGraph, "capture");
    if (lua_type(L, 2) != LUA_TFUNCTION)
        return yl_wrong_type(L, (Target){b, "capture", "fn"}, 2, "a function to capture");
    yl_check(L, b, yoke_graph_begin(graph));
    const int failed = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    graph = yl_need_self(L, &kGraph, "capture"); /* fn may have closed the graph */
    if (failed) {
        yoke_graph_abort(graph);
        return lua_error(L);
    }
    yl_check(L, b, yoke_graph_end(graph));
    return lua_gettop(L) - 1;
}

static int graph_replay(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_graph_replay(yl_need_self(L, &kGraph, "replay")));
    return 0;
}

void yl_open_graph(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"Graph", make_graph}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"capture", graph_capture}, {"replay", graph_replay}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kGraph, methods, NULL);
}
