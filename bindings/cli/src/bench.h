// bench.h: what a device can do, measured: the figures of `yoke bench device`.
#pragma once

#include "bindings/cli/src/handles.h"

#include <string>
#include <vector>

namespace yoke::cli {

struct Figure {
    std::string name;    // "matmul float16"
    const char *unit;    // "op/s", "B/s", "s"
    double value = 0;    // the median of several runs, in base units
    double spread = 0;   // the middle half of the runs, as a share of the median
    double nominal = 0;  // figure of the catalog; 0: none
    double cpu = 0;      // figure of the CPU; 0: no meaning there
};

struct Bench {
    std::string device, name, model;  // "cuda:0", "NVIDIA H200", "H200 SXM" of the catalog or ""
    std::vector<Figure> figures;
    std::vector<std::string> peers;  // devices of the matrix
    // Row-major, bytes per second from row to column; 0: the same device.
    std::vector<double> peer_rates;
    double peer_nominal = 0;  // figure of the catalog for such a link; 0: none
};

// Measures a device, and in the same run the CPU, if it may be used. `seconds` is the approximate time for each
// figure. Figures that the device cannot give are left out.
Bench measure(yoke_device *device, double seconds);

// Writes the figures as a picture: bars, each with its share of the catalog's figure. Raises if the file cannot be
// written.
void write_svg(const Bench &bench, const std::string &path);

}  // namespace yoke::cli
