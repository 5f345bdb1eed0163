// yoke doctor: what is wrong with this machine's GPUs and what to do, or the proof that Yoke was switched off.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

int verify_off(bool json);  // verify_off.cpp

namespace {

struct Options {
    bool json = false, redact = false, all = false, verify_off = false, no_probe = false;
    double deadline = 0;
    std::string record;
};

struct Look {
    const char *name;
    Colour colour;
};
Look look_of(int32_t status)
{
    static constexpr Look looks[] = {{"ok", Colour::kGood},
                                     {"warn", Colour::kWarn},
                                     {"fail", Colour::kBad},
                                     {"skip", Colour::kDim}};
    return looks[status];
}

Json check_json(const yoke_check &c)
{
    return {{"number", c.number},
            {"id", c.id},
            {"status", look_of(c.status).name},
            {"card", c.card < 0 ? Json() : Json(c.card)},
            {"title", c.title},
            {"evidence", c.evidence},
            {"remedy", c.remedy},
            {"url", c.url}};
}

void print_check(const yoke_check &check, int width)
{
    const Look look = look_of(check.status);
    printf("%s %2d %s%s\n",
           coloured(look.colour, std::string(look.name) + (look.name[2] ? "" : "  ")).c_str(),
           check.number, check.title,
           coloured(Colour::kDim, std::string("  [") + check.id + "]").c_str());
    fputs(wrapped(check.evidence, width, 8).c_str(), stdout);
    if (check.status == YOKE_CHECK_OK || check.status == YOKE_CHECK_SKIP) return;
    for (std::string_view rest = check.remedy; !rest.empty();) {  // a command must not be broken
        const size_t end = std::min(rest.find('\n'), rest.size());
        printf("      > %.*s\n", static_cast<int>(end), rest.data());
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (*check.url) printf("        %s\n", coloured(Colour::kDim, check.url).c_str());
}

void print_report(yoke_report *report, bool all)
{
    int counts[4] = {};
    const int width = terminal_width();
    for (int32_t i = 0; i < yoke_report_count(report); ++i) {
        const auto one = get<yoke_check>(yoke_report_check, report, i);
        ++counts[one.status];
        if (all || one.status == YOKE_CHECK_WARN || one.status == YOKE_CHECK_FAIL)
            print_check(one, width);
    }
    printf("%d checks: %d ok, %d warn, %d fail, %d do not apply here%s\n",
           yoke_report_count(report), counts[0], counts[1], counts[2], counts[3],
           all ? "" : " (--all shows each)");
}

int examine(const Options &options)
{
    const uint32_t flags =
        (options.no_probe ? 0 : YOKE_DOCTOR_PROBE) | (options.redact ? YOKE_DOCTOR_REDACT : 0);
    if (!options.record.empty()) {
        check(yoke_doctor_record(options.record.c_str(), flags));
        fprintf(stderr, "yoke: recorded in %s\n", options.record.c_str());
    }
    const Report report = make<Report>(yoke_doctor, flags, options.deadline);
    if (!options.json) {
        print_report(report.get(), options.all);
        return yoke_report_exit_code(report.get());
    }
    Json checks = Json::array();
    for (int32_t i = 0; i < yoke_report_count(report.get()); ++i)
        checks.push_back(check_json(get<yoke_check>(yoke_report_check, report.get(), i)));
    print_json({{"version", yoke_version()},
                {"exit_code", yoke_report_exit_code(report.get())},
                {"checks", checks}});
    return yoke_report_exit_code(report.get());
}

}  // namespace

void add_doctor(CLI::App &app, Action &action)
{
    auto options = std::make_shared<Options>();
    CLI::App *command =
        app.add_subcommand("doctor", "What is wrong with this machine's GPUs, and the remedy");
    command->footer(
        "Exit code: 0, nothing failed; 1, a check failed; 2, the doctor could not run.");
    command->add_flag("--json", options->json, "For programs; always all checks");
    command->add_flag("--all", options->all, "Also what is well or does not apply");
    command->add_flag("--redact", options->redact, "No host names, users, UUIDs or process names");
    command->add_flag("--no-probe", options->no_probe, "Runs nothing on a device");
    command->add_option("--deadline", options->deadline, "Seconds that one probe may take (10)")
        ->check(CLI::Range(0.1, 3600.0));
    command->add_option("--record", options->record,
                        "A new folder for all that the report rests on, to be replayed elsewhere");
    command->add_flag(
        "--verify-off", options->verify_off,
        "Shows that a disabled kind maps no library, takes no memory, starts no thread");
    command->callback([options, &action] {
        action = [options] {
            return options->verify_off ? verify_off(options->json) : examine(*options);
        };
    });
}

}  // namespace yoke::cli
