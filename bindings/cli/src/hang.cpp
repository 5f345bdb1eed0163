// yoke hang DUMP…: stuck ranks with their call and script line, and missing ranks.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

struct HangOptions {
    std::vector<std::string> paths;
    bool json = false;
};

std::string told(const Json &text)
{
    return plain(text.get<std::string>());
}

std::string seconds_text(const Json &seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f", seconds.get<double>());
    return text;
}

void print_ranks(const Json &group)
{
    Table table({{"RANK", true},
                 {"HOST", false, true},
                 {"PROCESS", true, true},
                 {"STATE"},
                 {"CALL", true},
                 {"OP"},
                 {"SECONDS", true},
                 {"LINE"}});
    for (const Json &rank : group["ranks"]) {
        const Json &call = rank["call"];
        const bool is_there = !call.is_null();
        const std::string state = rank["state"] == "no_dump"      ? "no dump"
                                  : rank["state"] == "rendezvous" ? "in a rendezvous"
                                  : !is_there                     ? "no call yet"
                                  : rank["state"] == "in"         ? "in"
                                                                  : "behind";
        table.add(
            {rank["rank"].dump(), told(rank["host"]), rank["process"].dump(), state,
             is_there ? call["sequence"].dump() : "", is_there ? told(call["op"]) : "",
             is_there ? seconds_text(rank["seconds"]) : "", is_there ? told(call["line"]) : ""},
            rank["state"] == "no_dump" ? Colour::kDim : Colour::kPlain);
    }
    fputs(table.text(terminal_width()).c_str(), stdout);
}

void print_finding(const Json &finding)
{
    const auto lines = wrapped("- " + told(finding["text"]), terminal_width(), 0);
    fputs(lines.c_str(), stdout);
}

std::string blamed_text(const Json &group)
{
    std::string text;
    for (const Json &rank : group["blamed"]) text += (text.empty() ? "" : ", ") + rank.dump();
    return text;
}

void print_group(const Json &group)
{
    printf("group %s of %s ranks: all dumped ranks have finished call %s\n",
           told(group["group"]).c_str(), group["size"].dump().c_str(),
           group["finished"].dump().c_str());
    print_ranks(group);
    for (const Json &finding : group["findings"]) print_finding(finding);
    for (const Json &path : group["older"])
        printf("- left out, because the rank has a newer dump: %s\n", told(path).c_str());
    const std::string blamed = blamed_text(group);
    if (group["hangs"] == false)
        printf("%s\n", coloured(Colour::kGood, "no hang").c_str());
    else if (blamed.empty())
        printf("%s: no rank is to blame\n", coloured(Colour::kBad, "hang").c_str());
    else
        printf("%s: look at rank%s %s\n", coloured(Colour::kBad, "hang").c_str(),
               group["blamed"].size() == 1 ? "" : "s", blamed.c_str());
}

void print_report(const Json &found)
{
    for (const Json &group : found["groups"]) {
        if (&group != &found["groups"].front()) puts("");
        print_group(group);
    }
}

Json report_of(const std::vector<const char *> &paths)
{
    try {
        const auto count = static_cast<int64_t>(paths.size());
        return tree_json(make<Tree>(yoke_comm_hang, paths.data(), count).get());
    } catch (const Failure &failure) {
        throw std::runtime_error(plain(failure.what()));
    }
}

int run(const HangOptions &options)
{
    std::vector<const char *> paths;
    for (const std::string &path : options.paths) paths.push_back(path.c_str());
    const Json found = report_of(paths);
    if (options.json)
        print_json(found);
    else
        print_report(found);
    for (const Json &problem : found["problems"])
        fprintf(stderr, "yoke: hang: %s: %s\n", told(problem["path"]).c_str(),
                told(problem["text"]).c_str());
    if (found["hangs"] == true) return 1;
    return found["problems"].empty() ? 0 : 2;
}

}  // namespace

void add_hang(CLI::App &app, Action &action)
{
    auto options = std::make_shared<HangOptions>();
    CLI::App *command = app.add_subcommand(
        "hang", "Find the stuck ranks, with call and line, and the ranks that did not arrive");
    command->footer(
        "Group.dump() and a failing group with YOKE_COMM_DUMP write dumps. Exit code: 0, nothing hangs; 1, a hang was found; 2, a file is not a dump, or could not be read.");
    command
        ->add_option("DUMP", options->paths,
                     "Dumps of some or all ranks: files, or folders of files *.json")
        ->required()
        ->check(not_empty());
    command->add_flag("--json", options->json, "JSON output for programs");
    command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace yoke::cli
