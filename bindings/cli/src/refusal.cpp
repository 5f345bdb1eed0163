#include "bindings/cli/src/refusal.h"

#include "bindings/cli/src/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace yoke::cli {

namespace {

// Returns how many letters were inserted, left out, replaced, or swapped with a neighbour.
size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i)
        for (size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

// Returns "; did you mean 'env'?", or the names of all commands if no name is near.
std::string hint(std::string_view word, const std::vector<const CLI::App *> &commands)
{
    const auto far = [&](const CLI::App *each) { return distance(word, each->get_name()); };
    const CLI::App *nearest = *std::ranges::min_element(commands, {}, far);
    if (far(nearest) <= 2 && far(nearest) < word.size())
        return "; did you mean '" + nearest->get_name() + "'?";
    std::string names;
    for (const CLI::App *each : commands) names += (names.empty() ? "" : ", ") + each->get_name();
    return "; the commands are " + names;
}

}  // namespace

std::string refusal(const CLI::App *app, const CLI::Error &error)
{
    std::string name = app->get_name();
    while (!app->get_subcommands().empty()) {
        app = app->get_subcommands().front();
        name += " " + app->get_name();
    }
    const auto commands = app->get_subcommands([](const CLI::App *) { return true; });
    const std::vector<std::string> rest = app->remaining();
    const bool is_word = !rest.empty() && !rest.front().starts_with('-');
    std::string text = error.what();
    if (is_word && !commands.empty())
        text = "there is no command '" + name + " " + plain(rest.front()) + "'" +
               hint(rest.front(), commands);
    return "yoke: " + text + "\nRun '" + name + " --help' for the arguments.\n";
}

}  // namespace yoke::cli
