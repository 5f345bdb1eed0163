// yoke version: the library, its engines, its build, and why a kind of device is not used.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

// Kinds to report on. A question why CUDA is not used tries CUDA, as a program's first use would.
constexpr const char *kKinds[] = {"cuda", "cpu"};

int print_version(bool json)
{
    Json kinds = Json::object();
    for (const char *kind : kKinds) {
        const std::string why = yoke_why_unavailable(kind);
        kinds[kind] = why.empty() ? Json() : Json(why);
    }
    if (json) {
        print_json({{"version", yoke_version()},
                    {"build", yoke_build_info()},
                    {"why_unavailable", kinds}});
        return 0;
    }
    const std::string build = yoke_build_info();
    printf("yoke %s\n%s\n", yoke_version(), build.c_str());
    for (const auto &[kind, reason] : kinds.items()) {
        const std::string why = reason.is_null() ? "" : reason.get<std::string>();
        if (why.empty() || build.find(why) != build.npos)
            continue;  // the build info names a missing module
        fputs(wrapped(kind + " is not used: " + why, terminal_width(), 0).c_str(), stdout);
    }
    return 0;
}

}  // namespace

void add_version(CLI::App &app, Action &action)
{
    auto json = std::make_shared<bool>(false);
    CLI::App *command = app.add_subcommand(
        "version", "Print version, compiler, engines, and why a kind of device is not used");
    command->add_flag("--json", *json, "JSON output for programs");
    command->callback([json, &action] { action = [json] { return print_version(*json); }; });
}

}  // namespace yoke::cli
