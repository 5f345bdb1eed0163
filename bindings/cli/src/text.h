// text.h: output for people: tables that fit the terminal, numbers with their units, colour on request.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::cli {

enum class Colour { kPlain, kGood, kWarn, kBad, kDim, kBold };

// Returns the columns of stdout's terminal, else COLUMNS from 40 on, else 80.
int terminal_width();

// Returns the text in a colour, if the output is a terminal, TERM is not "dumb" and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text, FILE *to = stdout);

// Returns untrusted text, such as a file's content or name, with "?" for each character that moves the cursor or
// gives the terminal commands.
std::string plain(std::string_view text);

// Returns the columns of UTF-8 text on a terminal, one for each character.
int width_of(std::string_view text);

// Returns the text broken at blanks into lines of at most `width` columns, each after `indent` blanks.
std::string wrapped(std::string_view text, int width, int indent);

std::string mebibytes(int64_t bytes);                   // "143771 MiB"; "-" for a negative number
std::string number(double value, const char *unit);     // "70 W"; "-" for NaN or a negative number
std::string rate(double per_second, const char *unit);  // "3.35 TB/s", by powers of 1000

// Rows of cells under headings. Where a row is too wide, columns marked as spare are left out, the last first, and then
// the widest column is cut.
class Table {
public:
    static constexpr int kGap = 2;  // blanks between columns
    struct Column {
        const char *heading;
        bool right = false;  // numbers
        bool spare = false;  // may be left out
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> cells, Colour colour = Colour::kPlain);
    std::string text(int width) const;

private:
    struct Row {
        std::vector<std::string> cells;
        Colour colour;
    };
    std::vector<int> widths(int width) const;
    std::string line(const std::vector<std::string> &cells, const std::vector<int> &widths) const;

    std::vector<Column> columns_;
    std::vector<Row> rows_;
};

}  // namespace yoke::cli
