// IDX files, whole and damaged: core/state/idx.cpp.
#include "core/state/idx.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"

#include <zlib.h>

#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace yoke {
namespace {

using test::expect_error;
using Bytes = std::string;

constexpr const char *kReadIdx = "yoke_read_idx";

Bytes big_endian(uint64_t value, int bytes)
{
    Bytes text;
    while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
    return text;
}

Bytes header(uint8_t type, const std::vector<uint32_t> &sizes)
{
    Bytes text = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
    for (const uint32_t size : sizes) text += big_endian(size, 4);
    return text;
}

// A small file with every byte its own: 2 × 3 × 4 bytes counted from 1.
Bytes small_file()
{
    Bytes text = header(0x08, {2, 3, 4});
    for (char i = 1; i <= 24; ++i) text += i;
    return text;
}

class Idx : public testing::Test {
protected:
    Idx()
    {
        std::string pattern = (std::filesystem::temp_directory_path() / "yoke_idx_XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~Idx() override { std::filesystem::remove_all(folder_); }

    std::string at(const char *name) const { return (folder_ / name).string(); }
    std::string plain(const Bytes &content)
    {
        const std::string path = at("file.idx");
        std::ofstream(path, std::ios::binary) << content;
        return path;
    }
    Bytes compressed(const Bytes &content)
    {
        const std::string path = at("whole.gz");
        gzFile file = gzopen(path.c_str(), "wb9");
        EXPECT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
                  static_cast<int>(content.size()));
        EXPECT_EQ(gzclose(file), Z_OK);
        std::ifstream in(path, std::ios::binary);
        return Bytes(std::istreambuf_iterator<char>(in), {});
    }
    static Tensor read(const std::string &path)
    {
        return read_idx(path.c_str(), open_device("cpu"));
    }
    // Raises, naming call and path, and leaves no tensor behind.
    static void refuses(const std::string &path, yoke_status status,
                        std::initializer_list<const char *> parts)
    {
        const int64_t live = live_tensor_count();
        expect_error(status, {kReadIdx, path.c_str()}, [&] { read(path); });
        expect_error(status, parts, [&] { read(path); });
        EXPECT_EQ(live_tensor_count(), live);
    }

    std::filesystem::path folder_;
};

Bytes content_of(const yoke_tensor &t)
{
    return Bytes(t.data, t.nbytes());
}

TEST_F(Idx, PlainAndCompressedFilesGiveTheSameTensor)
{
    const Bytes file = small_file();
    for (const Bytes &stored : {file, compressed(file)}) {
        Tensor t = read(plain(stored));
        EXPECT_EQ(describe(*t), "[2, 3, 4] uint8 on cpu");
        EXPECT_EQ(content_of(*t), file.substr(16));
    }
}

template <class T, class Word>
std::vector<T> values_of(const yoke_tensor &t)
{
    static_assert(sizeof(T) == sizeof(Word));
    std::vector<T> values(static_cast<size_t>(t.numel));
    memcpy(values.data(), t.data, t.nbytes());
    return values;
}

template <class T, class Word>
Bytes elements(const std::vector<T> &values)
{
    Bytes text;
    for (const T value : values) text += big_endian(std::bit_cast<Word>(value), sizeof(Word));
    return text;
}

TEST_F(Idx, EveryTypeIsBroughtIntoTheHostsByteOrder)
{
    const std::vector<float> floats = {1.5f, -0.0f, 3.1415927f, 1e-40f, -3.4e38f};
    Tensor t = read(plain(header(0x0D, {5}) + elements<float, uint32_t>(floats)));
    EXPECT_EQ(t->dtype, YOKE_F32);
    EXPECT_EQ((values_of<float, uint32_t>(*t)), floats);
    const std::vector<double> doubles = {2.718281828459045, -1e300, 5e-324};
    t = read(plain(header(0x0E, {3, 1}) + elements<double, uint64_t>(doubles)));
    EXPECT_EQ(describe(*t), "[3, 1] float64 on cpu");
    EXPECT_EQ((values_of<double, uint64_t>(*t)), doubles);
    const std::vector<int32_t> integers = {1, -2, INT32_MAX, INT32_MIN};
    t = read(plain(header(0x0C, {2, 2}) + elements<int32_t, uint32_t>(integers)));
    EXPECT_EQ(t->dtype, YOKE_I32);
    EXPECT_EQ((values_of<int32_t, uint32_t>(*t)), integers);
    const std::vector<int8_t> bytes = {-128, -1, 0, 127};
    t = read(plain(header(0x09, {4}) + elements<int8_t, uint8_t>(bytes)));
    EXPECT_EQ(t->dtype, YOKE_I8);
    EXPECT_EQ((values_of<int8_t, uint8_t>(*t)), bytes);
}

TEST_F(Idx, SizesOfZeroAndTheMostAxesAreRead)
{
    EXPECT_EQ(describe(*read(plain(header(0x0D, {0, 7})))), "[0, 7] float32 on cpu");
    Tensor t = read(plain(header(0x08, std::vector<uint32_t>(YOKE_MAX_NDIM, 1)) + "x"));
    EXPECT_EQ(t->ndim, YOKE_MAX_NDIM);
    EXPECT_EQ(t->data[0], 'x');
}

TEST_F(Idx, ALargeFileIsReadWhole)
{
    Bytes file = header(0x08, {300, 1000});
    for (uint32_t i = 0; i < 300000; ++i) file += static_cast<char>(i * 2654435761u >> 24);
    for (const Bytes &stored : {file, compressed(file)})
        EXPECT_TRUE(content_of(*read(plain(stored))) == file.substr(12));
}

TEST_F(Idx, AFileCutAtAnyByteIsRefused)
{
    const Bytes file = small_file(), packed = compressed(file);
    for (size_t n = 0; n < file.size(); ++n) {
        SCOPED_TRACE(n);
        refuses(plain(file.substr(0, n)), YOKE_E_IO, {"ends early"});
    }
    for (size_t n = 2; n < packed.size(); ++n) {
        SCOPED_TRACE(n);
        refuses(plain(packed.substr(0, n)), YOKE_E_IO, {"gzip", "unexpected end of file"});
    }
    refuses(plain(packed.substr(0, 1)), YOKE_E_IO,
            {"ends early"});  // too short to be known as gzip
}

TEST_F(Idx, AFlippedBitIsRefusedOrHarmless)
{
    const Bytes file = small_file(), packed = compressed(file);
    int refused = 0, harmless = 0;
    for (size_t bit = 0; bit < packed.size() * 8; ++bit) {
        Bytes damaged = packed;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
        const std::string path = plain(damaged);
        try {
            // The checksum covers neither gzip's own header (time, system) nor the filling bits of the last byte
            // before the checksum.
            ASSERT_EQ(content_of(*read(path)), file.substr(16)) << "bit " << bit;
            ASSERT_TRUE(bit / 8 < 10 || bit / 8 == packed.size() - 9)
                << "damage at bit " << bit << " passed unseen";
            ++harmless;
        } catch (const Error &error) {
            ++refused;
            EXPECT_TRUE(error.status() == YOKE_E_IO || error.status() == YOKE_E_VALUE)
                << error.what();
            EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
        }
    }
    EXPECT_GE(refused, static_cast<int>(packed.size() - 11) * 8);
    EXPECT_GT(harmless, 0);
}

TEST_F(Idx, AFlippedBitOfAPlainHeaderIsRefusedOrAnotherShapeOfTheSameBytes)
{
    const Bytes file = small_file();
    for (size_t bit = 0; bit < 16 * 8; ++bit) {
        Bytes damaged = file;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
        try {
            // Only the flip of uint8 to int8 still describes the file.
            EXPECT_EQ(read(plain(damaged))->dtype, YOKE_I8) << "bit " << bit;
        } catch (const Error &error) {
            EXPECT_TRUE(error.status() == YOKE_E_IO || error.status() == YOKE_E_VALUE)
                << error.what();
        }
    }
}

TEST_F(Idx, WhatIsNoIdxFileIsRefused)
{
    refuses(plain("PK\x03\x04 something else"), YOKE_E_VALUE,
            {"50 4B", "00 00", "not an IDX file"});
    refuses(plain(header(0x0B, {1}) + "ab"), YOKE_E_VALUE, {"int16", "0x0B", "int32"});
    refuses(plain(header(0x0A, {1}) + "ab"), YOKE_E_VALUE, {"0x0A", "0x08"});
    refuses(plain(header(0x08, {})), YOKE_E_VALUE, {"0 axes", "1 to 16"});
    refuses(plain(header(0x08, std::vector<uint32_t>(17, 1)) + "x"), YOKE_E_VALUE,
            {"17 axes", "1 to 16"});
}

TEST_F(Idx, BytesAfterTheElementsAreRefused)
{
    const Bytes file = small_file() + "!";
    for (const Bytes &stored : {file, compressed(file)})
        refuses(plain(stored), YOKE_E_VALUE, {"more bytes after", "24 bytes", "[2, 3, 4] uint8"});
}

TEST_F(Idx, AHeaderOfTerabytesIsRefusedBeforeMemoryIsTaken)
{
    const Bytes huge = header(0x0E, {0xFFFFFFFF, 0x1000}) + "few";
    refuses(plain(huge), YOKE_E_IO,
            {"ends early", "[4294967295, 4096]", "float64", "140737488322572", "15"});
    refuses(plain(compressed(huge)), YOKE_E_IO, {"ends early", "[4294967295, 4096]"});
    refuses(plain(header(0x0E, {0xFFFFFFFF, 0xFFFFFFFF, 2})), YOKE_E_VALUE,
            {"[4294967295, 4294967295, 2]"});
}

TEST_F(Idx, DataThatGzipShrinksTheMostIsStillRead)
{
    const Bytes file = header(0x08, {4000000}) + Bytes(4000000, 0);
    const Bytes packed = compressed(file);
    ASSERT_GT(file.size(), packed.size() * 900) << "the file is meant to come near deflate's limit";
    EXPECT_EQ(read(plain(packed))->numel, 4000000);
}

TEST_F(Idx, FilesThatCannotBeReadSayWhy)
{
    refuses(at("missing.gz"), YOKE_E_IO, {"cannot open", "No such file or directory"});
    refuses(at("nowhere/missing.gz"), YOKE_E_IO, {"there is no folder ", "/nowhere"});
    refuses(folder_.string(), YOKE_E_IO, {"cannot read", "Is a directory"});
    ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
    refuses(at("pipe"), YOKE_E_IO, {"not a regular file"});
    try {
        read(at("missing.gz"));
    } catch (const Error &error) {
        EXPECT_EQ(error.native_code(), ENOENT);
    }
}

TEST_F(Idx, AFileWithoutPermissionSaysSo)
{
    const std::string path = plain(small_file());
    ASSERT_EQ(chmod(path.c_str(), 0), 0);
    if (access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read every file";
    refuses(path, YOKE_E_IO, {"Permission denied"});
}

TEST_F(Idx, PathAndDeviceAreChecked)
{
    expect_error(YOKE_E_VALUE, {kReadIdx, "'path'", "NULL"},
                 [] { read_idx(nullptr, open_device("cpu")); });
    expect_error(YOKE_E_VALUE, {kReadIdx, "'path'", "empty"},
                 [] { read_idx("", open_device("cpu")); });
    yoke_backend backend{};
    backend.kind = "cuda";
    yoke_device device;
    device.backend = &backend;
    device.name = "cuda:1";
    expect_error(YOKE_E_VALUE, {kReadIdx, "'device'", "cuda:1"},
                 [&] { read_idx(plain(small_file()).c_str(), device); });
}

}  // namespace
}  // namespace yoke
