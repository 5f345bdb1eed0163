#include "bindings/lua/src/values/op_call.h"

#include <string.h>

#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/forms.h"

static Target target_of(const OpBinding *binding, int i)
{
    const Target target = {binding->binding, binding->name, binding->names[i]};
    return target;
}

static void convert(lua_State *L, const OpBinding *op, int i, int index, Call *call)
{
    const int is_boolean =
        op->takes_boolean && op->types[i] == kOperand && lua_type(L, index) == LUA_TBOOLEAN;
    const ArgType type = is_boolean ? kScalar : (ArgType)op->types[i];
    call->args[op->at[i]] = yl_convert(L, target_of(op, i), type, index, &call->lists);
}

static int argument_of(const OpBinding *op, const char *name)
{
    int i = 0;
    while (i < op->arg_count && strcmp(op->names[i], name)) ++i;
    return i;
}

/* Returns what another name means, from the names seen before or from the table. */
static OtherName other_name(OpBinding *op, const char *key)
{
    for (int i = 0; i < op->seen_count; ++i)
        if (!strcmp(op->seen[i].other, key)) return op->seen[i];
    const OtherName found = yl_find_other_name(op->name, key, op->names, op->arg_count);
    if (found.place >= 0 && op->seen_count < kMaxSeenNames) op->seen[op->seen_count++] = found;
    return found;
}

int yl_place_of_key(OpBinding *op, const char *key)
{
    const int place = argument_of(op, key);
    return place < op->arg_count ? place : other_name(op, key).place;
}

/* Pushes and returns the call as a script writes it: "var(x, axis = nil, {keepdim = false, correction = 1})". The types
 * in the op table's signature are left out: a script does not know their names. */
static const char *push_signature(lua_State *L, const OpBinding *op)
{
    const char *from = strchr(op->signature, '('), *end = ")";
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, op->name);
    while (*from && *from != ')') {
        if (*from == ':') {
            from += 2;
            from += strcspn(from, " ,)");
        } else if (*from == '*') { /* later arguments are given by name */
            luaL_addchar(&text, '{');
            from += 3;
            end = "})";
        } else if (!strncmp(from, "= none", 6)) {
            luaL_addstring(&text, "= nil");
            from += 6;
        } else {
            luaL_addchar(&text, *from++);
        }
    }
    if (op->creates)
        luaL_addstring(&text, end[1] ? ", requires_grad = false" : ", {requires_grad = false}");
    luaL_addstring(&text, end);
    luaL_pushresult(&text);
    return lua_tostring(L, -1);
}

/* Raises if a required argument is missing. */
static void check_required(lua_State *L, const OpBinding *op, const Call *call)
{
    for (int i = 0; i < op->required; ++i)
        if ((i >= call->count || call->args[op->at[i]].kind == YOKE_ARG_NONE) &&
            !yl_has_default(op, i))
            yl_raise(L, op->binding, YOKE_E_VALUE, op->name, "argument '%s' is missing: %s",
                     op->names[i], push_signature(L, op));
}

/* Converts a keyword that is no argument: requires_grad of a new tensor, or a mistake. */
static void convert_unknown(lua_State *L, const OpBinding *op, const char *key, Call *call)
{
    const char *names[kMaxArgs + 1 + kMaxFormWords];
    if (op->creates && !strcmp(key, "requires_grad")) {
        call->requires_grad = yl_bool_arg(L, op->binding, lua_gettop(L), op->name, key);
        return;
    }
    int count = op->arg_count;
    memcpy(names, op->names, sizeof op->names);
    if (op->creates) names[count++] = "requires_grad";
    count += yl_form_words(op, names + count);
    yl_raise_keyword(L, op->binding, op->name, key, names, count, push_signature(L, op));
}

/* Converts the value on the top of the stack, the argument `i` of the op under the name `key`. */
static void convert_keyword(lua_State *L, const OpBinding *op, int i, const char *key, int given,
                            Call *call)
{
    const char *const own = op->names[i];
    if (strcmp(key, own) && (i < given || call->args[op->at[i]].kind != YOKE_ARG_NONE))
        yl_raise_both_names(L, op->binding, YOKE_E_VALUE, op->name, own, key);
    if (i < given)
        yl_raise(L, op->binding, YOKE_E_VALUE, op->name,
                 "argument '%s' is given twice, by position and by name; give it once", key);
    if (op->types[i] == kTensors)
        yl_raise(L, op->binding, YOKE_E_VALUE, op->name,
                 "argument '%s' is a list of tensors; give it by its place", key);
    convert(L, op, i, lua_gettop(L), call);
}

/* Converts a keyword that is none of the op's own names. */
static void convert_other(lua_State *L, OpBinding *op, const char *key, int given, Call *call)
{
    const OtherName other = other_name(op, key);
    if (other.place < 0) {
        convert_unknown(L, op, key, call);
        return;
    }
    if (other.is_flag) yl_flag_number(L, op->binding, op->name, key);
    convert_keyword(L, op, other.place, key, given, call);
}

/* Raises for an argument under its own name that is there already under another name. */
static void check_once(lua_State *L, OpBinding *op, int index, int i)
{
    const char *const own = op->names[i];
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        if (strcmp(key, own) && argument_of(op, key) == op->arg_count &&
            other_name(op, key).place == i)
            yl_raise_both_names(L, op->binding, YOKE_E_VALUE, op->name, own, key);
    }
}

/* Converts the keyword arguments in the table at `index`, after `given` positional arguments. */
static void convert_keywords(lua_State *L, OpBinding *op, int index, int given, Call *call)
{
    for (int i = given; i < op->arg_count; ++i) call->args[op->at[i]].kind = YOKE_ARG_NONE;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        const int i = argument_of(op, key);
        if (i == op->arg_count) {
            convert_other(L, op, key, given, call);
            continue;
        }
        if (i >= given && call->args[op->at[i]].kind != YOKE_ARG_NONE) check_once(L, op, index, i);
        convert_keyword(L, op, i, key, given, call);
    }
    call->count = op->arg_count;
}

/* Returns the number of further places for the ints of a spread list: randn(2, 3). */
static int spread_over(lua_State *L, const OpBinding *op, int positional)
{
    int end = op->spread + 1;
    while (end <= positional && lua_isinteger(L, end)) ++end;
    return end > op->spread + 2 ? end - op->spread - 2 : 0;
}

static void convert_spread(lua_State *L, const OpBinding *op, int extra, Call *call)
{
    const int place = op->spread, count = extra + 1;
    if (count > YL_MAX_INTS)
        yl_raise(L, op->binding, YOKE_E_VALUE, op->name,
                 "argument '%s' is %d integers; a tensor has at most %d axes", op->names[place],
                 count, YOKE_MAX_NDIM);
    for (int i = 0; i < count; ++i) call->lists.items[i] = lua_tointeger(L, place + 1 + i);
    call->lists.used = count;
    call->args[place] = (yoke_arg){YOKE_ARG_INTS, count, {.ints = call->lists.items}};
}

/* Converts the leading tensor arguments, the usual case, and returns their number. */
static inline int convert_tensors(lua_State *L, const OpBinding *op, int positional, Call *call)
{
    int i = 0;
    for (; i < positional && op->takes_tensor >> i & 1; ++i) {
        yoke_tensor **box = yl_test_tensor(L, op->binding, i + 1);
        if (!box || !*box) break;
        call->args[i] = (yoke_arg){YOKE_ARG_TENSOR, 0, {*box}};
    }
    return i;
}

void yl_read_arguments(lua_State *L, OpBinding *op, int given, int keywords, Call *call)
{
    const int done = convert_tensors(L, op, given - keywords, call);
    call->lists.used = 0;
    call->requires_grad = 0;
    call->count = given - keywords;
    if (done == given && given >= op->required) return;
    for (int i = done; op->is_form && i < kMaxArgs; ++i) call->args[i].kind = YOKE_ARG_NONE;
    const int extra = op->spread < 0 ? 0 : spread_over(L, op, given - keywords);
    call->count -= extra;
    if (extra) convert_spread(L, op, extra, call);
    for (int i = done; i < call->count; ++i) {
        if (extra && i >= op->spread) {
            if (i > op->spread) convert(L, op, i, i + 1 + extra, call);
            continue;
        }
        convert(L, op, i, i + 1, call);
    }
    if (keywords) convert_keywords(L, op, given, call->count, call);
    check_required(L, op, call);
    if (op->is_form) call->count = op->op->arg_count;
}

void yl_check_count(lua_State *L, const OpBinding *op, int positional)
{
    if (positional <= op->places) return;
    if (op->spread >= 0 && positional - spread_over(L, op, positional) <= op->places) return;
    if (op->places < op->arg_count)
        yl_raise_place(L, op->binding, op->name, op->names[op->places], push_signature(L, op));
    const int most = op->arg_count;
    yl_raise(L, op->binding, YOKE_E_VALUE, op->name,
             "takes at most %d argument%s but %d were given: %s", most, most == 1 ? "" : "s",
             positional, push_signature(L, op));
}

void yl_find_room(lua_State *L, int given, Call *call)
{
    size_t needed = 0;
    for (int i = 1; i <= given; ++i)
        if (lua_type(L, i) == LUA_TTABLE) needed += lua_rawlen(L, i);
    const int fits = needed <= kListRoom;
    call->lists.room = fits ? (size_t)kListRoom : needed;
    call->lists.tensors = fits ? call->room : lua_newuserdatauv(L, needed * sizeof *call->room, 0);
}

static void each_tensor(const Call *call, void (*act)(yoke_tensor *))
{
    for (int i = 0; i < call->count; ++i) {
        const yoke_arg *arg = &call->args[i];
        if (arg->kind == YOKE_ARG_TENSOR) act(arg->v.tensor);
        if (arg->kind == YOKE_ARG_TENSORS)
            for (int32_t j = 0; j < arg->count; ++j) act(arg->v.tensors[j]);
    }
}

static void retain(yoke_tensor *tensor)
{
    yoke_tensor_retain(tensor);
}

lua_State *yl_begin_call_relief(lua_State *L, const Call *call)
{
    each_tensor(call, retain);
    return yl_begin_relief(L);
}

void yl_end_call_relief(lua_State *outer, const Call *call)
{
    yl_end_relief(outer);
    each_tensor(call, yoke_tensor_release);
}
