// Picture: a bar for each figure. The scale is the catalog's figure, or the largest figure of the unit if the catalog
// has none.
#include "bindings/cli/src/bench.h"
#include "bindings/cli/src/text.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace yoke::cli {

namespace {

constexpr int kRow = 28, kLabel = 250, kBar = 330, kWidth = 760, kTop = 54;

std::string escaped(const std::string &text)
{
    std::string safe;
    for (const char c : text)
        safe += c == '<'   ? "&lt;"
                : c == '>' ? "&gt;"
                : c == '&' ? "&amp;"
                : c == '"' ? "&quot;"
                           : std::string(1, c);
    return safe;
}

double scale_of(const Bench &bench, const Figure &figure)
{
    if (figure.nominal > 0) return figure.nominal;
    double most = 0;
    for (const Figure &other : bench.figures)
        if (std::string_view(other.unit) == figure.unit) most = std::max(most, other.value);
    return most;
}

std::string row(const Bench &bench, const Figure &figure, int y)
{
    const double share = std::min(1.0, figure.value / scale_of(bench, figure));
    std::string value = std::string_view(figure.unit) == "s" ? number(figure.value * 1e9, "ns")
                                                             : rate(figure.value, figure.unit);
    if (figure.nominal > 0) value += " = " + number(100 * figure.value / figure.nominal, "%");
    char text[1024];
    snprintf(text, sizeof text,
             "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
             "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"16\" fill=\"#e6e9ee\"/>\n"
             "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>\n"
             "<text x=\"%d\" y=\"%d\">%s</text>\n",
             kLabel - 10, y + 13, escaped(figure.name).c_str(), kLabel, y, kBar, kLabel, y,
             share * kBar, figure.nominal > 0 ? "#2f6fb3" : "#8a94a3", kLabel + kBar + 10, y + 13,
             escaped(value).c_str());
    return text;
}

}  // namespace

void write_svg(const Bench &bench, const std::string &path)
{
    const int height = kTop + kRow * static_cast<int>(bench.figures.size()) + 16;
    std::string rows;
    for (size_t i = 0; i < bench.figures.size(); ++i)
        rows += row(bench, bench.figures[i], kTop + kRow * static_cast<int>(i));
    const std::string title = escaped(bench.device + ": " + bench.name);
    const std::string size = std::to_string(kWidth) + " " + std::to_string(height);
    const std::string text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
        "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1c2430\">\n<title>" + title +
        "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"16\" y=\"24\" font-size=\"16\">" +
        title +
        "</text>\n<text x=\"16\" y=\"42\" fill=\"#5a6472\">blue: the whole bar is the catalog's figure; grey: the largest of its unit</text>\n" +
        rows + "</svg>\n";
    const std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "w"), fclose);
    if (!file || fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
        fflush(file.get()) != 0)
        throw std::runtime_error("bench: --svg '" + path +
                                 "' cannot be written; give a file in a folder that exists");
}

}  // namespace yoke::cli
