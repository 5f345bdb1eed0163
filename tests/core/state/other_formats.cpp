// Files of foreign formats, named by their first bytes: core/state/other_formats.cpp.
#include "core/state/other_formats.h"

#include <gtest/gtest.h>

#include <string>

namespace yoke::test {
namespace {

using std::string_literals::operator""s;

// A local header of a zip archive with the name of its first file.
std::string zip_of(const std::string &name)
{
    std::string header = "PK\x03\x04"s + std::string(22, '\0');
    header += static_cast<char>(name.size());
    header += "\0\0\0"s;
    return header + name + "data";
}

TEST(OtherFormats, EachIsNamedByItsFirstBytes)
{
    const std::pair<std::string, const char *> cases[] = {
        {zip_of("archive/data.pkl"), "PyTorch (torch.save)"},
        {zip_of("model/.format_version"), "PyTorch (torch.save)"},
        {zip_of("arr_0.npy"), "NumPy (.npz)"},
        {zip_of("metadata.json"), "a zip archive"},
        {"PK\x03\x04"s, "a zip archive"},
        {"PK\x05\x06"s + std::string(18, '\0'), "an empty zip archive"},
        {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.more"s, "its older form"},
        {"\x80\x04\x95more"s, "a pickle"},
        {"\x93NUMPY\x01\0"s, "NumPy (.npy)"},
        {"\x89HDF\r\n\x1a\n more"s, "HDF5"},
        {"GGUF\x03\0\0\0"s, "GGUF"},
        {"version https://git-lfs.github.com/spec/v1\noid"s, "Git LFS"},
        {"\x1f\x8b\x08 more"s, "gzip"},
        {"\x28\xb5\x2f\xfd more"s, "zstd"},
        {std::string(257, '\0') + "ustar\0"s, "tar"},
    };
    for (const auto &[bytes, name] : cases) {
        const OtherFormat *found = other_format(bytes);
        ASSERT_TRUE(found) << name;
        EXPECT_NE(std::string(found->name).find(name), std::string::npos) << found->name;
    }
}

TEST(OtherFormats, WhatIsKnownByNoBytesHasNoName)
{
    for (const std::string &bytes :
         {""s, "P"s, "\x80"s, "\x80\x09z"s, "{}"s, "\x02\0\0\0\0\0\0\0{}"s, std::string(512, '\0')})
        EXPECT_EQ(other_format(bytes), nullptr) << bytes;
}

}  // namespace
}  // namespace yoke::test
