// yoke state: content of a file of a state, a set of files, or a folder of checkpoints, and whether it is whole.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/state_json.h"
#include "bindings/cli/src/text.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

struct StateOptions {
    std::string path;
    bool verify = false, json = false;
};

std::string text_of(const Json &text)
{
    return plain(text.get<std::string>());
}

std::string shape_text(const Json &shape)
{
    std::string text;
    for (const Json &size : shape) text += (text.empty() ? "" : " x ") + size.dump();
    return text.empty() ? "scalar" : text;
}

std::string bytes_text(const Json &bytes)
{
    const auto count = bytes.get<double>();
    return bytes.dump() + " bytes" + (count < 1000 ? "" : " (" + rate(count, "B") + ")");
}

// ---- A file or a set --------------------------------------------------------------------------------------------

void print_tensors(const Json &state)
{
    const bool is_set = state["kind"] == "set";
    std::vector<Table::Column> columns{{"TENSOR"}, {"DTYPE"}, {"SHAPE"}, {"BYTES", true}};
    if (is_set) columns.push_back({"FILE", false, true});
    Table table(columns);
    for (const auto &[name, tensor] : state["tensors"].items())
        table.add({text_of(name), text_of(tensor["dtype"]), shape_text(tensor["shape"]),
                   tensor["bytes"].dump(), is_set ? text_of(tensor["file"]) : ""});
    if (!state["tensors"].empty()) fputs(table.text(terminal_width()).c_str(), stdout);
}

void print_state(const Json &state)
{
    printf("%s: %s, %s%s\n", text_of(state["path"]).c_str(),
           state["kind"] == "set"
               ? ("a set of " + std::to_string(state["files"].size()) + " files").c_str()
               : "a safetensors file",
           bytes_text(state["bytes"]).c_str(),
           state["has_tree"] == true ? ", with a tree of plain values" : "");
    for (const auto &[key, value] : state["metadata"].items())
        printf("  %s = %s\n", text_of(key).c_str(), text_of(value).c_str());
    print_tensors(state);
    for (const auto &[dtype, total] : state["totals"].items())
        printf("%s: %s tensors, %s\n", text_of(dtype).c_str(), total["tensors"].dump().c_str(),
               bytes_text(total["bytes"]).c_str());
}

void print_verdict(const Json &state)
{
    if (state["whole"] == false)
        printf("%s: %s\n", coloured(Colour::kBad, "damaged").c_str(),
               text_of(state["problem"]).c_str());
    else if (state["verified"] == true)
        printf("%s: headers, sizes and all bytes were read%s\n",
               coloured(Colour::kGood, "whole").c_str(),
               state.contains("step") ? ", and the hashes of its manifest match" : "");
}

// ---- A folder of checkpoints ------------------------------------------------------------------------------------

void print_checkpoints(const Json &folder)
{
    const auto count = std::ranges::count_if(
        folder["steps"], [](const Json &step) { return !step["whole"].is_null(); });
    printf("%s: %td checkpoints, the newest is %s\n", text_of(folder["path"]).c_str(), count,
           folder["latest"].is_null() ? "none" : folder["latest"].dump().c_str());
    Table table({{"STEP", true}, {"SAVED"}, {"TENSORS", true}, {"BYTES", true}, {"STATE"}});
    for (const Json &step : folder["steps"]) {
        const bool is_damaged = step["whole"] == false;
        const auto cell = [&](const char *key) {
            return step[key].is_null() ? std::string("-") : step[key].dump();
        };
        const std::string state = is_damaged                 ? "damaged"
                                  : step["whole"].is_null()  ? "foreign"
                                  : step["verified"] == true ? "whole, and its hashes match"
                                                             : "whole by its sizes";
        table.add({cell("step"), step["time"].is_null() ? "-" : text_of(step["time"]),
                   cell("tensors"), cell("bytes"), state},
                  is_damaged ? Colour::kBad : Colour::kPlain);
    }
    fputs(table.text(terminal_width()).c_str(), stdout);
    for (const Json &step : folder["steps"])
        if (step["whole"] != true)
            fputs(wrapped("step " + step["step"].dump() + ": " + text_of(step["problem"]),
                          terminal_width(), 0)
                      .c_str(),
                  stdout);
}

int run(const StateOptions &options)
{
    const bool is_folder = holds_checkpoints(options.path);
    const Json found = is_folder ? checkpoints_json(options.path, options.verify)
                                 : state_json(options.path, options.verify);
    if (options.json) {
        print_json(found);
    } else if (is_folder) {
        print_checkpoints(found);
    } else {
        if (found.contains("tensors")) print_state(found);
        print_verdict(found);
    }
    return found["whole"] == true ? 0 : 1;
}

}  // namespace

void add_state(CLI::App &app, Action &action)
{
    auto options = std::make_shared<StateOptions>();
    CLI::App *command = app.add_subcommand(
        "state", "Show a saved state: a file, a set of files, a folder of checkpoints");
    command->footer(
        "Exit code: 0, the state is complete; 1, the state is damaged; 2, the path has no state, or could not be read.");
    command
        ->add_option(
            "path", options->path,
            "A safetensors file, a set's index, a folder with a set, or a folder of checkpoints")
        ->required()
        ->check(not_empty());
    command->add_flag("--verify", options->verify,
                      "Read and check everything: hashes of checkpoints, the tree, every byte");
    command->add_flag("--json", options->json, "JSON output for programs");
    command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace yoke::cli
