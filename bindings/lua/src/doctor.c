/* What is wrong with this machine's GPUs: yoke.doctor and yoke.doctor_record. */
#include "bindings/lua/src/convert.h"

#include "yoke/doctor.h"

#include <string.h>

static const char kReportName[] = "yoke.report";
static const char *const kStatus[] = {"ok", "warn", "fail", "skip"};

/* A report is a userdata while its texts are copied, so that an error cannot leak it. */
static int report_gc(lua_State *L)
{
    yoke_report **box = luaL_checkudata(L, 1, kReportName);
    yoke_report *report = *box;
    *box = NULL;
    yoke_report_release(report);
    return 0;
}

/* The options in the table at `index`, which may be absent. Raises for others. */
static uint32_t options_arg(lua_State *L, Binding *b, int index, const char *call, double *deadline)
{
    uint32_t flags = 0;
    if (lua_isnoneornil(L, index)) return 0;
    const Target target = {b, call, "options"};
    if (!lua_istable(L, index))
        return (uint32_t)yl_wrong_type(L, target, index, "a table of options");
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        const int value = lua_gettop(L);
        if (!strcmp(key, "probe")) {
            flags |= yl_bool_arg(L, b, value, call, "probe") ? YOKE_DOCTOR_PROBE : 0u;
        } else if (!strcmp(key, "redact")) {
            flags |= yl_bool_arg(L, b, value, call, "redact") ? YOKE_DOCTOR_REDACT : 0u;
        } else if (!strcmp(key, "deadline")) {
            *deadline = yl_number_arg(L, b, value, call, "deadline");
        } else {
            static const char *const names[] = {"probe", "redact", "deadline"};
            yl_raise(L, b, YOKE_E_VALUE, call,
                     "there is no option '%s'%s; there are probe, redact, deadline", key,
                     yl_meant(L, key, names, 3));
        }
    }
    return flags;
}

static void set_text(lua_State *L, const char *key, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, lua_Integer number)
{
    lua_pushinteger(L, number);
    lua_setfield(L, -2, key);
}

static void push_check(lua_State *L, const yoke_check *check)
{
    lua_createtable(L, 0, 8);
    set_number(L, "number", check->number);
    set_number(L, "card", check->card);
    set_text(L, "id", check->id);
    set_text(L, "title", check->title);
    set_text(L, "status", kStatus[check->status]);
    set_text(L, "evidence", check->evidence);
    set_text(L, "remedy", check->remedy);
    set_text(L, "url", check->url);
}

/* yoke.doctor{probe=, redact=, deadline=} -> {checks = {…}, exit_code = 0} */
static int doctor(lua_State *L)
{
    Binding *b = yl_binding(L);
    double deadline = 0;
    yl_arg_count(L, b, "doctor", 0, 1);
    const uint32_t flags = options_arg(L, b, 1, "doctor", &deadline);
    yoke_report **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, kReportName);
    yl_check(L, b, yoke_doctor(flags, deadline, box));
    const int32_t count = yoke_report_count(*box);
    lua_createtable(L, 0, 2);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_check check = {.struct_size = sizeof check};
        yl_check(L, b, yoke_report_check(*box, i, &check));
        push_check(L, &check);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "checks");
    set_number(L, "exit_code", yoke_report_exit_code(*box));
    return 1;
}

/* yoke.doctor_record(folder, {probe=, redact=, deadline=}): true, or nil and why not. */
static int doctor_record(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "doctor_record", 1, 2);
    const char *folder = yl_string_arg(L, b, 1, "doctor_record", "folder");
    double deadline = 0;
    const uint32_t flags = options_arg(L, b, 2, "doctor_record", &deadline);
    if (yoke_doctor_record_v2(folder, flags, deadline)) return yl_nil_error(L, b);
    lua_pushboolean(L, 1);
    return 1;
}

void yl_open_doctor(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"doctor", doctor}, {"doctor_record", doctor_record}, {NULL, NULL}};
    static const luaL_Reg no_methods[] = {{NULL, NULL}};
    yl_open_class(L, b, kReportName, report_gc, no_methods);
    yl_set_functions(L, b, functions);
}
