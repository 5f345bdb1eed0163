#include "bindings/lua/src/values/forms.h"

#include <string.h>

#include "bindings/lua/src/values/tensor.h"

const Form yl_forms[] = {
#define YOKE_FORM(call, when, argument, place, op, signature, places, count, ...) \
    {#call, YL_##when, argument, place, op, signature, places, count, {__VA_ARGS__}},
#define YL_kAlone kAlone
#define YL_kGiven kGiven
#define YL_kUnset kUnset
#define YL_kTensor kTensorGiven
#define YL_kList kListGiven
#include "bindings/lua/src/values/forms.inc"
#undef YOKE_FORM
};

const int yl_form_total = sizeof yl_forms / sizeof *yl_forms;

/* Pushes the argument of a form that decides, or nil. `table` is the index of the keyword arguments, or 0. */
static void push_deciding(lua_State *L, OpBinding *op, const Form *form, int positional, int table)
{
    if (form->place >= 0 && form->place < positional) {
        lua_pushvalue(L, form->place + 1);
        return;
    }
    if (table && form->place < 0) {
        lua_getfield(L, table, form->argument);
        return;
    }
    if (table)
        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
            const int is_name = lua_type(L, -2) == LUA_TSTRING;
            if (!is_name || yl_place_of_key(op, lua_tostring(L, -2)) != form->place) continue;
            lua_remove(L, -2);
            return;
        }
    lua_pushnil(L);
}

static int fits(lua_State *L, OpBinding *op, const Form *form, int positional, int table)
{
    if (form->when == kAlone) return positional == 1 && !table;
    if (!table && form->place >= positional) return 0;
    if (!table && form->place < 0) return 0;
    push_deciding(L, op, form, positional, table);
    const int type = lua_type(L, -1);
    int is_fit = type != LUA_TNIL;
    if (form->when == kUnset) is_fit = type == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    if (form->when == kTensorGiven) is_fit = yl_test_tensor(L, op->binding, -1) != NULL;
    if (form->when == kListGiven) is_fit = type == LUA_TTABLE && lua_rawlen(L, -1) > 0;
    lua_pop(L, 1);
    return is_fit;
}

/* Replaces the number on the top of the stack by a tensor without axes: on the device of the first argument and in its
 * dtype, or in float32 where this dtype has no fractions and the number has. */
static void lift(lua_State *L, const OpBinding *form, int i)
{
    Binding *b = form->binding;
    yoke_tensor *const like = yl_tensor_arg(L, b, 1, form->name, form->names[0]);
    const yoke_dtype own = yoke_tensor_dtype(like);
    yoke_scalar number = {YOKE_ARG_FLOAT, 0, {.f = lua_tonumber(L, -1)}};
    if (lua_isinteger(L, -1)) number = (yoke_scalar){YOKE_ARG_INT, 0, {.i = lua_tointeger(L, -1)}};
    const int is_whole = strncmp(yoke_dtype_name(own), "int", 3) == 0 || own == YOKE_U8;
    const yoke_dtype dtype = is_whole && number.kind == YOKE_ARG_FLOAT ? YOKE_F32 : own;
    yoke_device *const device = yoke_tensor_device(like);
    yoke_tensor **box = yl_new_tensor(L, b);
    if (yoke_tensor_scalar(&number, dtype, device, box))
        yl_raise(
            L, b, yoke_last_error()->status, form->name,
            "argument '%s' is %s, which does not fit into %s; give a smaller number, or cast x to a wider dtype",
            form->names[i], luaL_tolstring(L, -2, NULL), yoke_dtype_name(dtype));
    lua_remove(L, -2);
}

static int lifts(const OpBinding *form, int i)
{
    return form->types[i] == kOptionalTensor;
}

/* Copies the table of keyword arguments at `index`, with numbers lifted, into its place. */
static void lift_keywords(lua_State *L, OpBinding *form, int index)
{
    lua_createtable(L, 0, 2);
    const int copy = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const int i =
            lua_type(L, -2) == LUA_TSTRING ? yl_place_of_key(form, lua_tostring(L, -2)) : -1;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        if (i >= 0 && lifts(form, i) && lua_type(L, -1) == LUA_TNUMBER) lift(L, form, i);
        lua_rawset(L, copy);
    }
    lua_replace(L, index);
}

static void lift_numbers(lua_State *L, OpBinding *form, int positional, int table)
{
    for (int i = 0; i < positional && i < form->arg_count; ++i) {
        if (!lifts(form, i) || lua_type(L, i + 1) != LUA_TNUMBER) continue;
        lua_pushvalue(L, i + 1);
        lift(L, form, i);
        lua_replace(L, i + 1);
    }
    if (table) lift_keywords(L, form, table);
}

OpBinding *yl_form_of(lua_State *L, OpBinding *op)
{
    const int given = lua_gettop(L);
    const int table = given && yl_is_keywords(L, given) ? given : 0;
    const int positional = given - (table != 0);
    for (int i = 0; i < op->form_count; ++i) {
        if (!fits(L, op, &op->forms[i], positional, table)) continue;
        OpBinding *form = &op->form_bindings[i];
        lift_numbers(L, form, positional, table);
        return form;
    }
    return op;
}

int yl_form_words(const OpBinding *op, const char **words)
{
    int count = 0;
    for (int i = 0; i < op->form_count && count < kMaxFormWords; ++i)
        if (op->forms[i].when == kGiven) words[count++] = op->forms[i].argument;
    return count;
}
