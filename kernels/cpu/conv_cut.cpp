#include "kernels/cpu/conv_cut.h"

namespace yoke::cpu {

// Cost of a cut for one thread, in multiplications of f32 or of bf16, measured with AVX-512 and AMX. bf16 multiplies
// faster.
struct Prices {
    double part;   // least multiplications of a part
    double added;  // in the time of an element of a part's sums, written, read and added
    double moved;  // time to copy an element, or to read it in one more part
};
constexpr Prices kF32Prices = {1 << 26, 64, 6}, kBf16Prices = {1 << 28, 240, 44};
constexpr double kDear = 1.02, kDearInTwo = 1.125;  // most time, relative to one part
constexpr double kLeastWork = 1 << 22;              // multiplications of a part
constexpr int64_t kMostParts = 64;
constexpr double kEnoughParts = 16;  // regardless of their cost for one thread
constexpr int64_t kFewImages = 8;    // too few images for a team
// Share of `moved` for an element of the weight that a part of whole images reads once more.
constexpr double kReread = 0.5;
constexpr int64_t kCutChannels = 64;  // between two cuts: whole blocks of every layout
// Bytes that the sums of parts may take, beside the bytes of the tensors read.
constexpr double kFewBytes = 1 << 26;

static const Prices &prices_of(const Conv &conv)
{
    return conv.dtype == YOKE_F32 ? kF32Prices : kBf16Prices;
}

static double work_of(const Conv &c)
{
    return (double)weight_numel(c) * (double)(c.n * c.oh * c.ow);
}

ConvCut::ConvCut(const Conv &conv) : length(conv.n)
{
    if (conv.kind == ConvKind::kWeight)
        cut_weight(conv);
    else
        cut_sweep(conv);
}

void ConvCut::undo()
{
    parts = bands > 1 ? length : 1;
    bands = 1;
}

Conv ConvCut::part(const Conv &whole, int64_t number) const
{
    const int64_t size = item_size(whole);
    const int64_t first = bands > 1 ? number / bands : begin(number),
                  count = bands > 1 ? 1 : end(number) - first;
    Conv part = whole;
    if (by_channels) {
        part.o = count;
        part.weight =
            static_cast<char *>(whole.weight) + first * (weight_numel(whole) / whole.o) * size;
        part.out = static_cast<char *>(whole.out) + first * size;
        return part;
    }
    part.n = count;
    part.x = static_cast<char *>(whole.x) + first * whole.c * whole.h * whole.w * size;
    part.out = static_cast<char *>(whole.out) + first * whole.o * whole.oh * whole.ow * size;
    return bands > 1 ? band(part, number % bands) : part;
}

// ---- the result, and the gradient by data ---------------------------------------------------------------------------

static int64_t divide_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

// Returns band `number` of an image: some written rows, with the rows read for them.
Conv ConvCut::band(const Conv &image, int64_t number) const
{
    const bool is_data = image.kind == ConvKind::kData;
    const int64_t rows = is_data ? image.h : image.oh, begin = rows * number / bands,
                  end = rows * (number + 1) / bands;
    const int64_t stride = image.stride[0], padding = image.padding[0],
                  reach = (image.kh - 1) * image.dilation[0];
    int64_t x_begin = begin, x_end = end, out_begin = begin, out_end = end;
    if (is_data) {
        out_begin = std::max<int64_t>(0, divide_up(begin + padding - reach, stride));
        out_end = std::min(image.oh, (end - 1 + padding) / stride + 1);
    } else {
        x_begin = std::max<int64_t>(0, begin * stride - padding);
        x_end = std::min(image.h, (end - 1) * stride - padding + reach + 1);
    }
    Conv band = image;
    band.h = x_end - x_begin;
    band.oh = out_end - out_begin;
    band.padding[0] = x_begin + padding - out_begin * stride;
    const int64_t size = item_size(image);
    band.x = static_cast<char *>(image.x) + x_begin * image.w * image.c * size;
    band.out = static_cast<char *>(image.out) + out_begin * image.ow * image.o * size;
    return band;
}

// Returns the power of two nearest to a number. Then each thread of teams of two, four and eight has equal work.
static int64_t power_near(double number)
{
    int64_t power = 1;
    while ((double)power * 1.41421356 < number) power *= 2;
    return power;
}

// Cuts the result or the gradient by data into images. Cuts few images further, into bands of rows. Each band reads
// the weight once more, so the cost limits the number of bands.
void ConvCut::cut_sweep(const Conv &conv)
{
    const double work = work_of(conv), least = work < 2 * kLeastWork ? 1 : 2,
                 cheap = (kDear - 1) * work /
                         (kReread * prices_of(conv).moved * (double)weight_numel(conv)),
                 worth = std::min(work / prices_of(conv).part, std::max(kEnoughParts, cheap));
    const int64_t wanted = power_near(std::clamp<double>(worth, least, kMostParts));
    parts = std::min(length, wanted);
    if (parts < length || parts == 0) return;
    const double dear = length < kFewImages ? kDearInTwo : kDear;
    const double share = (dear - 1) / prices_of(conv).moved;
    const int64_t rows = conv.kind == ConvKind::kData ? conv.h : conv.oh,
                  most = 1 + (int64_t)(share * (double)(conv.oh * conv.ow));
    bands = std::min({wanted / length, rows, most});
    for (int64_t i = 0; i < bands; i++) {
        const Conv part = band(conv, i);
        if (part.h < 1 || part.oh < 1 || part.padding[0] < 0) bands = 1;
    }
    parts = length * bands;
}

// ---- the gradient by weight -----------------------------------------------------------------------------------------

// Possible cuts of a gradient by weight, and their cost: many parts may cost a single thread little, two parts may
// cost more.
struct WeightCut {
    const Conv &conv;
    const Prices &prices;
    const double x = (double)(conv.n * conv.c) * (double)(conv.h * conv.w),
                 grad = (double)(conv.n * conv.o) * (double)(conv.oh * conv.ow);

    double cost(bool by_channels, int64_t parts) const
    {
        if (!by_channels) return prices.added * (double)parts * (double)weight_numel(conv);
        return prices.moved * (x * (double)(parts - 1) + 2 * grad);
    }
    bool has_room(int64_t parts) const
    {
        const double sums = (double)parts * (double)weight_numel(conv) * sizeof(float);
        return sums <= kFewBytes + (x + grad) * (double)item_size(conv);
    }
    bool may(bool by_channels, int64_t parts) const
    {
        if (by_channels ? conv.groups > 1 || parts > conv.o / kCutChannels
                        : parts > conv.n || !has_room(parts))
            return false;
        const double work = work_of(conv), dear = parts == 2 ? kDearInTwo : kDear;
        return parts <= kMostParts && (double)parts * kLeastWork <= work &&
               cost(by_channels, parts) <= (dear - 1) * work;
    }
};

void ConvCut::cut_weight(const Conv &conv)
{
    const WeightCut weight{conv, prices_of(conv)};
    for (int64_t next = 2; next <= kMostParts; next *= 2)
        for (bool channels : {true, false})
            if (weight.may(channels, next) &&
                (parts < next || weight.cost(channels, next) < weight.cost(by_channels, next)))
                parts = next, by_channels = channels;
    if (by_channels) length = conv.o, unit = kCutChannels;
}

}  // namespace yoke::cpu
