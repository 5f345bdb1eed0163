// command.h: subcommand of `yoke`. It adds itself to the program and, when called, returns the exit code.
//
// Exit codes: 0, done; 1, the answer is no (a check failed, no device fits); 2, not possible, with the reason on
// stderr. Reports go to stdout, all other text to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace yoke::cli {

// Action of the chosen subcommand; main runs it after all arguments were read.
using Action = std::function<int()>;

// Returns the check of a duration: a number from `least` to `most`, but neither "nan" nor "inf".
CLI::Validator seconds_between(double least, double most);
// Returns the check of a file's name: "" names no file.
CLI::Validator not_empty();

void add_devices(CLI::App &app, Action &action);
void add_topology(CLI::App &app, Action &action);
void add_doctor(CLI::App &app, Action &action);
void add_select(CLI::App &app, Action &action);
void add_bench(CLI::App &app, Action &action);
void add_bench_collectives(CLI::App &bench, Action &action);  // a subcommand of bench
void add_comm(CLI::App &app, Action &action);
void add_run(CLI::App &app, Action &action);
void add_state(CLI::App &app, Action &action);
void add_hang(CLI::App &app, Action &action);
void add_version(CLI::App &app, Action &action);

}  // namespace yoke::cli
