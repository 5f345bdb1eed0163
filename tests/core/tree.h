// tree.h: a small file system for readers of /sys, /proc and /dev.
#pragma once

#include "core/machine/files.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace yoke::test {

class Tree : public testing::Test {
protected:
    void SetUp() override
    {
        std::string folder = std::filesystem::temp_directory_path() / "yoke-tree-XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        root.prefix = folder;
    }
    void TearDown() override { std::filesystem::remove_all(root.prefix); }

    void write(const std::string &path, const std::string &text)
    {
        const std::filesystem::path file = root.path(path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
    }
    void link(const std::string &path, const std::string &target)
    {
        const std::filesystem::path file = root.path(path);
        std::filesystem::create_directories(file.parent_path());
        std::filesystem::create_symlink(target, file);
    }

    // Makes a PCI device below its bridges: device("pci0000:60/0000:60:01.0/0000:61:00.0", ...).
    std::string device(const std::string &place, const std::string &vendor, const std::string &id,
                       const std::string &type)
    {
        const std::string folder = "/sys/devices/" + place;
        const std::string address = place.substr(place.rfind('/') + 1);
        write(folder + "/vendor", "0x" + vendor + "\n");
        write(folder + "/device", "0x" + id + "\n");
        write(folder + "/class", "0x" + type + "\n");
        link("/sys/bus/pci/devices/" + address, "../../../devices/" + place);
        return folder;
    }
    void bind(const std::string &folder, const std::string &driver)
    {
        std::filesystem::create_directories(root.path("/sys/bus/pci/drivers/" + driver));
        link(folder + "/driver", "../../../../bus/pci/drivers/" + driver);
    }

    Root root;
};

}  // namespace yoke::test
