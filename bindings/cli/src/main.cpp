// The `yoke` command: devices of the machine, their problems, and the choice of devices.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/handles.h"
#include "bindings/cli/src/output.h"
#include "bindings/cli/src/refusal.h"

#include <cstdio>

namespace {

void print_log(void *, int32_t level, const char *message)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    fprintf(stderr, "yoke: %s: %s\n", names[level], message);
}

int run(int argc, char **argv)
{
    using namespace yoke::cli;
    CLI::App app(
        "Yoke is one shared library with a C API, through which Python, Lua and C programs train networks on GPUs and processors.\n"
        "This command lists and selects GPUs, explains their problems, and starts groups of ranks.",
        "yoke");
    app.failure_message(refusal);
    app.footer("Help for a command: yoke COMMAND --help. Manual: man yoke.");
    app.require_subcommand(0, 1);  // so an unknown word is an extra argument, which `refusal` names
    app.set_version_flag("--version", std::string("yoke ") + yoke_version());
    Action action;
    for (const auto add : {add_devices, add_topology, add_doctor, add_select, add_bench, add_comm,
                           add_run, add_state, add_hang, add_version})
        add(app, action);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (!action) fputs(app.help().c_str(), stderr);
    return action ? action() : 2;
}

}  // namespace

int main(int argc, char **argv)
{
    yoke::cli::hold_standard_streams();
    yoke_log_set_callback(print_log, nullptr, nullptr);
    try {
        const int code = run(argc, argv);
        yoke::cli::flush_output();
        return code;
    } catch (const std::exception &error) {
        fprintf(stderr, "yoke: %s\n", error.what());
        return 2;
    }
}
