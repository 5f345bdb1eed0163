#include "bindings/lua/src/runtime/flat.h"

static void push_value(lua_State *L, yoke_state *value)
{
    int64_t number = 0, length = 0;
    double part = 0;
    const char *text = "";
    switch (yoke_state_kind(value, "")) {
        case YOKE_STATE_INT:
            yoke_state_get_int(value, "", &number);
            lua_pushinteger(L, number);
            break;
        case YOKE_STATE_FLOAT:
            yoke_state_get_float(value, "", &part);
            lua_pushnumber(L, part);
            break;
        default:
            yoke_state_get_string(value, "", &text, &length);
            lua_pushlstring(L, text, (size_t)length);
    }
}

void yl_push_flat(lua_State *L, yoke_state *dict)
{
    const int64_t count = yoke_state_count(dict);
    lua_createtable(L, 0, (int)count);
    for (int64_t i = 0; i < count; ++i) {
        yoke_state_key key = {.struct_size = sizeof key};
        yoke_state *value = NULL;
        if (yoke_state_entry(dict, i, &key, &value)) continue;
        lua_pushlstring(L, key.text, (size_t)key.length);
        push_value(L, value);
        yoke_state_release(value);
        lua_rawset(L, -3);
    }
    yoke_state_release(dict);
}
