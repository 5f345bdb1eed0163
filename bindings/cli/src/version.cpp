// yoke version: the library, its engines, and what it was built with.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

void add_version(CLI::App &app, Action &action)
{
    auto json = std::make_shared<bool>(false);
    CLI::App *command = app.add_subcommand(
        "version", "Version, compiler, engines, and why a kind of device is not used");
    command->add_flag("--json", *json, "For programs");
    command->callback([json, &action] {
        action = [json] {
            if (*json)
                print_json({{"version", yoke_version()}, {"build", yoke_build_info()}});
            else
                printf("yoke %s\n%s\n", yoke_version(), yoke_build_info());
            return 0;
        };
    });
}

}  // namespace yoke::cli
