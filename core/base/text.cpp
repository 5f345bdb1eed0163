#include "core/base/text.h"

#include "core/base/error.h"

#include <cctype>
#include <cmath>
#include <fstream>
#include <sstream>

namespace yoke {

std::string file_text(const std::string &path)
{
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::string bytes_text(double bytes, BytesStyle style)
{
    static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (style == BytesStyle::kFull && bytes < 1024) return format("%.0f bytes", bytes);
    size_t unit = 0;
    while (std::fabs(bytes) >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
    const bool is_whole = bytes == std::floor(bytes) || std::fabs(bytes) >= 1000;
    const int places = style != BytesStyle::kShort ? 2 : is_whole ? 0 : 1;
    return format("%.*f %s", places, bytes, kUnits[unit]);
}

std::optional<Measure> read_measure(std::string_view text, std::span<const Unit> units)
{
    Measure measure;
    const char *last = text.data() + text.size();
    const auto [end, problem] =
        std::from_chars(text.data(), last, measure.number, std::chars_format::fixed);
    if (problem != std::errc() || !std::isfinite(measure.number) || measure.number < 0) return {};
    measure.unit = std::string(end, last);
    measure.unit.erase(0, std::min(measure.unit.find_first_not_of(' '), measure.unit.size()));
    if (measure.unit.empty()) return measure;
    const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    std::vector<const char *> names;
    for (const Unit &unit : units) {
        if (std::ranges::equal(std::string_view(unit.name), measure.unit, {}, low, low)) {
            measure.known = &unit;
            return measure;
        }
        names.push_back(unit.name);
    }
    measure.meant = nearest_word(measure.unit, names);
    return measure;
}

void add_part(std::string &text, std::string_view part, std::string_view separator)
{
    if (!text.empty()) text += separator;
    text += part;
}

std::string cut(std::string_view text, size_t most)
{
    if (text.size() <= most) return std::string(text);
    const std::string end = " ... (cut: it has " + std::to_string(text.size()) + " bytes)";
    return std::string(text.substr(0, whole_characters(text, most - end.size()))) + end;
}

std::string shown_name(std::string_view name)
{
    constexpr size_t kMost = 120;
    const size_t length = whole_characters(name, kMost);
    std::string text;
    for (const char c : name.substr(0, length))
        text += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
    return name.size() > length ? text + "…" : text;
}

std::vector<const char *> c_strings(const std::vector<std::string> &texts)
{
    std::vector<const char *> strings;
    for (const std::string &text : texts) strings.push_back(text.c_str());
    return strings;
}

std::vector<std::string> split_at_commas(std::string_view text)
{
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

std::vector<std::string> split_list(std::string_view text)
{
    std::vector<std::string> parts = split_at_commas(text);
    for (std::string &part : parts) {
        while (!part.empty() && isspace(static_cast<unsigned char>(part.back()))) part.pop_back();
        size_t blanks = 0;
        while (blanks < part.size() && isspace(static_cast<unsigned char>(part[blanks]))) ++blanks;
        part.erase(0, blanks);
    }
    return parts;
}

const char *nearest_word(std::string_view text, const std::vector<const char *> &words)
{
    const char *best = nullptr;
    size_t best_distance = text.size() / 4 + 2;  // further off is another word, not a slip
    for (const char *word : words) {
        const std::string_view other(word);
        std::vector<size_t> row(other.size() + 1);
        for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
        for (size_t i = 0; i < text.size(); ++i) {
            size_t diagonal = row[0];
            row[0] = i + 1;
            for (size_t j = 0; j < other.size(); ++j) {
                const size_t replace = diagonal + (toupper(text[i]) != toupper(other[j]));
                diagonal = row[j + 1];
                row[j + 1] = std::min({replace, row[j] + 1, diagonal + 1});
            }
        }
        if (row.back() < best_distance) {
            best_distance = row.back();
            best = word;
        }
    }
    return best;
}

}  // namespace yoke
