#include "core/state/other_formats.h"

#include "core/base/error.h"

#include <algorithm>
#include <iterator>

namespace yoke {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char *kFromTorch =
    "in Python write from yoke.compat.torch.serialization import load, and yoke.save(NEW, load(FILE, map_location='cpu'))";
constexpr const char *kFromOldTorch =
    "in PyTorch write torch.save(torch.load(FILE, map_location='cpu', weights_only=True), NEW), which yoke.compat.torch.serialization.load(NEW) reads";

constexpr OtherFormat kTorch = {"a checkpoint of PyTorch (torch.save)", kFromTorch};
constexpr OtherFormat kNumPy = {
    "an archive of NumPy (.npz)",
    "write yoke.save(NEW, {name: yoke.tensor(array) for name, array in numpy.load(FILE).items()})"};
constexpr OtherFormat kZip = {"a zip archive",
                              "unpack the archive, and load a safetensors file from it"};

// Format recognized by bytes at a fixed place.
struct Magic {
    size_t at;
    std::string_view bytes;
    OtherFormat format;
};
constexpr Magic kMagics[] = {
    // PyTorch before 1.6: a pickle of this number comes first.
    {0,
     "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19"sv,
     {"a checkpoint of PyTorch (torch.save, its older form)", kFromOldTorch}},
    {0,
     "\x93NUMPY"sv,
     {"an array of NumPy (.npy)", "write yoke.save(NEW, {'x': yoke.tensor(numpy.load(FILE))})"}},
    {0,
     "\x89HDF\r\n\x1a\n"sv,
     {"an HDF5 file",
      "read its arrays with h5py, and write yoke.save(NEW, {name: yoke.tensor(array[()]), …})"}},
    {0,
     "GGUF"sv,
     {"a model of llama.cpp (GGUF)",
      "fetch the model's safetensors files; GGUF has quantized tensors, which Yoke does not have"}},
    {0,
     "version https://git-lfs"sv,
     {"a pointer of Git LFS, not the file itself", "fetch the file by git lfs pull"}},
    {0,
     "PK\x05\x06"sv,
     {"an empty zip archive, as numpy.savez writes without arrays", "name a safetensors file"}},
    {0, "\x1f\x8b\x08"sv, {"compressed by gzip", "unpack it by gunzip first"}},
    {0, "\x28\xb5\x2f\xfd"sv, {"compressed by zstd", "unpack it by unzstd first"}},
    {257, "ustar"sv, {"a tar archive", "unpack the archive, and load a safetensors file from it"}},
};
constexpr OtherFormat kPickle = {
    "a pickle of Python",
    "load it with the program that made it, by pickle.load or torch.load, which may run code of the file, and write its tensors by yoke.save(NEW, state)"};

// Returns the name of the first file in a zip archive. Returns "" if the bytes do not begin with a named file of a
// zip.
std::string_view first_name_in_zip(std::string_view bytes)
{
    constexpr size_t kLength = 26, kName = 30;
    if (!bytes.starts_with("PK\x03\x04"sv) || bytes.size() < kName) return {};
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    return bytes.substr(kName, byte(kLength) + size_t{256} * byte(kLength + 1));
}

// Returns whether the bytes begin a pickle of Python, of protocols 2 to 5.
bool is_pickle(std::string_view bytes)
{
    return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

}  // namespace

void fail_no_state(std::string message)
{
    throw Error(YOKE_E_CHECKPOINT, std::move(message), EINVAL);
}

const OtherFormat *other_format(std::string_view first_bytes)
{
    if (first_bytes.starts_with("PK\x03\x04"sv)) {
        const std::string_view name = first_name_in_zip(first_bytes);
        if (name.ends_with(".npy")) return &kNumPy;
        const bool is_torch = name.ends_with("/data.pkl") || name.ends_with("/version") ||
                              name.ends_with("/.format_version");
        return is_torch ? &kTorch : &kZip;
    }
    const auto found = std::ranges::find_if(kMagics, [&](const Magic &each) {
        return first_bytes.size() > each.at && first_bytes.substr(each.at).starts_with(each.bytes);
    });
    if (found != std::end(kMagics)) return &found->format;
    return is_pickle(first_bytes) ? &kPickle : nullptr;
}

}  // namespace yoke
