/* Captured steps: yoke.Graph, over yoke/graph.h. */
#include "bindings/lua/src/convert.h"

static const char kGraphName[] = "yoke.Graph";

typedef struct GraphBox {
    yoke_graph *graph; /* NULL when closed */
} GraphBox;

static yoke_graph *need_graph(lua_State *L, Binding *b, const char *call)
{
    const GraphBox *box = luaL_testudata(L, 1, kGraphName);
    const Target target = {b, call, "self"};
    if (!box) yl_wrong_type(L, target, 1, "a Graph");
    if (!box->graph) yl_raise(L, b, YOKE_E_CLOSED, call, "argument 'self' is a closed Graph");
    return box->graph;
}

static int graph_close(lua_State *L)
{
    GraphBox *box = luaL_checkudata(L, 1, kGraphName);
    yoke_graph *graph = box->graph;
    box->graph = NULL;
    yoke_graph_release(graph);
    return 0;
}

/* yoke.Graph([device]) */
static int make_graph(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "Graph", "device"};
    lua_settop(L, 1);
    yoke_device *device = yl_need_device(L, target, 1);
    GraphBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->graph = NULL;
    luaL_setmetatable(L, kGraphName);
    yl_check(L, b, yoke_graph_create(device, &box->graph));
    return 1;
}

/* graph:capture(fn, ...) returns what fn returns. fn cannot yield: another coroutine's work would be taken
 * down with its own. */
static int graph_capture(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_graph *graph = need_graph(L, b, "capture");
    if (lua_type(L, 2) != LUA_TFUNCTION)
        return yl_raise(L, b, YOKE_E_TYPE, "capture",
                        "argument 'fn' is a %s; give a function to capture", luaL_typename(L, 2));
    yl_check(L, b, yoke_graph_begin(graph));
    const int failed = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    graph = need_graph(L, b, "capture"); /* which fn may have closed */
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
    yl_check(L, b, yoke_graph_replay(need_graph(L, b, "replay")));
    return 0;
}

void yl_open_graph(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"Graph", make_graph}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"capture", graph_capture}, {"replay", graph_replay}, {"close", graph_close}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, kGraphName, graph_close, methods);
}
