// text.h: small files as text, numbers and lists in texts, and bytes as people read them.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Returns the text of a file, also of a file with unknown size, such as in /proc; "" if unreadable.
std::string file_text(const std::string &path);

// ---- Bytes ------------------------------------------------------------------------------------------------------

enum class BytesStyle {
    kFull,    // "512 bytes", "1.50 MiB"
    kPlaces,  // "512.00 B", "1.50 MiB"
    kShort,   // "512 B", "1.5 MiB", "8 GiB"
};
// Returns bytes in the largest unit with a value of at least 1. Negative sizes keep their sign.
std::string bytes_text(double bytes, BytesStyle style = BytesStyle::kFull);

struct Unit {
    const char *name;  // read in any case
    double scale;
};
inline constexpr Unit kByteUnits[] = {{"B", 1},
                                      {"KB", 1e3},
                                      {"KiB", 1024.},
                                      {"MB", 1e6},
                                      {"MiB", 1048576.},
                                      {"GB", 1e9},
                                      {"GiB", 1073741824.},
                                      {"TB", 1e12},
                                      {"TiB", 1099511627776.}};

// A number with its unit, such as "2GiB".
struct Measure {
    double number = 0;
    std::string unit = {};        // as written; "" if absent
    const Unit *known = nullptr;  // null if the unit is absent or unknown
    const char *meant = nullptr;  // nearest name to an unknown unit; null if none is near
};
// Reads a number with its unit. Returns nothing if the text does not begin with a number, or if the number is below 0
// or not finite.
std::optional<Measure> read_measure(std::string_view text,
                                    std::span<const Unit> units = kByteUnits);

// ---- Texts ------------------------------------------------------------------------------------------------------

// Adds a part to a text, behind a separator if the text is not empty.
void add_part(std::string &text, std::string_view part, std::string_view separator = ", ");

// Puts the parts of a list into one text: "a, b". `text_of` makes the text of an element.
template <class List, class TextOf = std::identity>
std::string joined(const List &list, std::string_view separator = ", ", TextOf text_of = {})
{
    std::string text;
    for (const auto &each : list) add_part(text, text_of(each), separator);
    return text;
}

// Returns whether a byte of UTF-8 continues a character.
inline bool is_continuation(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Returns how many bytes of UTF-8 fit into `most` and end with a whole character.
inline size_t whole_characters(std::string_view text, size_t most) noexcept
{
    size_t length = std::min(text.size(), most);
    while (length > 0 && length < text.size() && is_continuation(text[length])) --length;
    return length;
}

// Copies text into a field, cut at a whole character of UTF-8.
template <size_t size>
void put(char (&field)[size], std::string_view text) noexcept
{
    const size_t length = whole_characters(text, size - 1);
    text.copy(field, length);
    field[length] = '\0';
}

// Cuts a text to `most` bytes at a whole character of UTF-8, and says so at the end. For text sent to other ranks,
// and for errors whose call's name is put in front.
inline constexpr size_t kMostTold = 4000;
std::string cut(std::string_view text, size_t most = kMostTold);

// Returns a foreign name as a single line of at most 120 bytes, since a name may be of any length. Control characters
// become "?".
std::string shown_name(std::string_view name);

// Returns the number written in a text; nothing unless the whole text is a number.
template <class Number>
std::optional<Number> parsed(std::string_view text)
{
    Number number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// Splits a text at commas. "a, b,," has four parts, the last two empty.
std::vector<std::string> split_at_commas(std::string_view text);

// Splits a text at commas, and removes blanks around the parts.
std::vector<std::string> split_list(std::string_view text);

// Returns the word of `words` nearest to `text`, or nullptr if none is near.
const char *nearest_word(std::string_view text, const std::vector<const char *> &words);

// Returns each text as a C string, borrowed from the list.
std::vector<const char *> c_strings(const std::vector<std::string> &texts);

}  // namespace yoke
