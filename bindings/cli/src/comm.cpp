// yoke comm env: what variables of NCCL, Gloo and PyTorch do here.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

// Colours and texts of effects, by YOKE_VARIABLE_*.
constexpr struct {
    Colour colour;
    const char *text;
} kEffects[] = {{Colour::kPlain, "no effect"},        {Colour::kGood, "sets"},
                {Colour::kWarn, "no effect on Yoke"}, {Colour::kGood, "always"},
                {Colour::kWarn, "unknown"},           {Colour::kBad, "invalid"},
                {Colour::kGood, "only NCCL uses it"}};

std::vector<yoke_comm_variable> variables()
{
    std::vector<yoke_comm_variable> all;
    const int32_t count = yoke_comm_variable_count();
    for (int32_t i = 0; i < count; ++i)
        all.push_back(get<yoke_comm_variable>(yoke_comm_variable_get, i));
    return all;
}

// Returns "NAME=value" with "?" for each control character. Values are untrusted, so no character of a value may move
// the cursor.
std::string shown(const yoke_comm_variable &each)
{
    std::string text = std::string(each.name) + "=" + each.value;
    for (char &c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    return text;
}

void print_text(const std::vector<yoke_comm_variable> &all)
{
    if (all.empty()) puts("No variable of NCCL, Gloo or PyTorch's groups is set.");
    constexpr int kIndent = 4;
    for (const yoke_comm_variable &each : all) {
        const auto &[colour, text] = kEffects[each.effect];
        printf("%s: %s", shown(each).c_str(), coloured(colour, text).c_str());
        if (each.effect == YOKE_VARIABLE_SETS) printf(" %s", each.setting);
        putchar('\n');
        fputs(wrapped(each.text, terminal_width(), kIndent).c_str(), stdout);
    }
}

// Prints the variables and their effects. Returns 1 if a variable would be an error, so that a script can check
// before a job starts.
int run(bool json)
{
    const std::vector<yoke_comm_variable> all = variables();
    Json list = Json::array();
    int code = 0;
    for (const yoke_comm_variable &each : all) {
        list.push_back({{"name", each.name},
                        {"value", each.value},
                        {"effect", each.word},
                        {"setting", *each.setting ? Json(each.setting) : Json()},
                        {"text", each.text}});
        if (each.effect == YOKE_VARIABLE_UNREADABLE) code = 1;
    }
    if (json)
        print_json({{"variables", list}});
    else
        print_text(all);
    return code;
}

}  // namespace

void add_comm(CLI::App &app, Action &action)
{
    auto json = std::make_shared<bool>(false);
    CLI::App *comm =
        app.add_subcommand("comm", "Show settings for groups of ranks")->require_subcommand(0, 1);
    CLI::App *command = comm->add_subcommand(
        "env", "Effects of the variables NCCL_*, GLOO_* and TORCH_NCCL_* that are set");
    command->footer(
        "Yoke's own settings, YOKE_*, take precedence. Exit code: 1, a variable cannot be read, and is an error at its first use.");
    command->add_flag("--json", *json, "JSON output for programs");
    command->callback([json, &action] { action = [json] { return run(*json); }; });
}

}  // namespace yoke::cli
