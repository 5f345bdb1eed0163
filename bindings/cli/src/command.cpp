#include "bindings/cli/src/command.h"

#include <cstdio>

namespace yoke::cli {

CLI::Validator seconds_between(double least, double most)
{
    char range[64];
    snprintf(range, sizeof range, "%g to %g", least, most);
    const std::string allowed = range;
    const auto problem = [=](std::string &text) {
        double value = 0;
        // Also refuses NaN, because each comparison with NaN is false.
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        return fits ? std::string() : "'" + text + "' is not a number of seconds from " + allowed;
    };
    return CLI::Validator(problem, "in [" + allowed + "]");
}

CLI::Validator not_empty()
{
    return CLI::Validator(
        [](std::string &text) { return text.empty() ? "give a name" : std::string(); }, "");
}

}  // namespace yoke::cli
