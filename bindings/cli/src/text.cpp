#include "bindings/cli/src/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace yoke::cli {

namespace {

constexpr int kLeast = 8;  // no column is cut below this

// Returns the first `columns` columns of UTF-8 text.
std::string_view head(std::string_view text, int columns)
{
    size_t end = 0;
    for (; end < text.size(); ++end)
        if ((text[end] & 0xC0) != 0x80 && columns-- == 0) break;
    return text.substr(0, end);
}

std::string fitted(std::string_view text, int width, bool right)
{
    std::string cell(text);
    if (width_of(text) > width) cell = std::string(head(text, width - 1)) + "…";
    const std::string blanks(static_cast<size_t>(std::max(0, width - width_of(cell))), ' ');
    return right ? blanks + cell : cell + blanks;
}

bool use_colour(FILE *to)
{
    const char *none = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
    return isatty(fileno(to)) && !(none && *none) && term && std::string_view(term) != "dumb";
}

std::string scaled(double value, const char *const *prefixes, int count, double step,
                   const char *unit)
{
    int power = 0;
    while (power + 1 < count && value >= step) value /= step, ++power;
    char text[64];
    snprintf(text, sizeof text, "%.*f %s%s",
             value < 10    ? 2
             : value < 100 ? 1
                           : 0,
             value, prefixes[power], unit);
    return text;
}

}  // namespace

int terminal_width()
{
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *columns = std::getenv("COLUMNS");
    const int width = columns ? std::atoi(columns) : 0;
    return width >= 40 ? width : 80;
}

std::string coloured(Colour colour, std::string_view text, FILE *to)
{
    static const char *const codes[] = {"", "32", "33", "31", "2", "1"};
    if (colour == Colour::kPlain || !use_colour(to)) return std::string(text);
    return std::string("\033[") + codes[static_cast<int>(colour)] + "m" + std::string(text) +
           "\033[0m";
}

std::string plain(std::string_view text)
{
    std::string shown;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
        const bool is_long = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
        shown += is_long || byte < ' ' || byte == 0x7f ? '?' : text[i];
        i += is_long;
    }
    return shown;
}

int width_of(std::string_view text)
{
    return static_cast<int>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string wrapped(std::string_view text, int width, int indent)
{
    const std::string margin(static_cast<size_t>(indent), ' ');
    std::string lines, line;
    const auto flush = [&] {
        lines += margin + line + "\n";
        line.clear();
    };
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(" \n"), text.size());
        const std::string_view word = text.substr(0, end);
        if (!line.empty() && indent + width_of(line) + 1 + width_of(word) > width) flush();
        if (!word.empty()) line += (line.empty() ? "" : " ") + std::string(word);
        if (end < text.size() && text[end] == '\n') flush();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!line.empty()) flush();
    return lines;
}

std::string mebibytes(int64_t bytes)
{
    return bytes < 0 ? "-" : std::to_string(bytes >> 20) + " MiB";
}

std::string number(double value, const char *unit)
{
    if (std::isnan(value) || value < 0) return "-";
    char text[64];
    snprintf(text, sizeof text, "%.0f %s", value, unit);
    return text;
}

std::string rate(double per_second, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    if (std::isnan(per_second) || per_second < 0) return "-";
    return scaled(per_second, prefixes, 6, 1000, unit);
}

void Table::add(std::vector<std::string> cells, Colour colour)
{
    cells.resize(columns_.size());
    rows_.push_back({std::move(cells), colour});
}

// Returns the width of each column; 0 means a column left out.
std::vector<int> Table::widths(int width) const
{
    std::vector<int> widths;
    for (size_t i = 0; i < columns_.size(); ++i) {
        int most = width_of(columns_[i].heading);
        for (const Row &row : rows_) most = std::max(most, width_of(row.cells[i]));
        widths.push_back(most);
    }
    const auto total = [&] {
        const auto shown = std::count_if(widths.begin(), widths.end(), [](int w) { return w > 0; });
        return std::accumulate(widths.begin(), widths.end(), 0) +
               kGap * static_cast<int>(shown - 1);
    };
    for (size_t i = columns_.size(); i-- > 0 && total() > width;)
        if (columns_[i].spare) widths[i] = 0;
    while (total() > width) {
        int &widest = *std::max_element(widths.begin(), widths.end());
        if (widest <= kLeast) break;
        widest = std::max(kLeast, widest - (total() - width));
    }
    return widths;
}

std::string Table::line(const std::vector<std::string> &cells, const std::vector<int> &widths) const
{
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
        if (widths[i] == 0) continue;
        if (!text.empty()) text += std::string(kGap, ' ');
        text += fitted(cells[i], widths[i], columns_[i].right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

std::string Table::text(int width) const
{
    const std::vector<int> fits = widths(width);
    std::vector<std::string> headings;
    for (const Column &column : columns_) headings.emplace_back(column.heading);
    std::string text = coloured(Colour::kBold, line(headings, fits)) + "\n";
    for (const Row &row : rows_) text += coloured(row.colour, line(row.cells, fits)) + "\n";
    return text;
}

}  // namespace yoke::cli
