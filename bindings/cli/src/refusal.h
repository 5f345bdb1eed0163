// refusal.h: message about arguments that the command does not accept.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace yoke::cli {

// Returns "yoke: there is no command 'yoke comm evn'; did you mean 'env'?", or CLI11's text, and where to find help.
std::string refusal(const CLI::App *app, const CLI::Error &error);

}  // namespace yoke::cli
