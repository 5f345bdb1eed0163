// Folder of leases: a single folder for all users, made while other processes look, and checks that its files are
// plain files.
#include "core/base/config.h"
#include "core/select/lease.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/tree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;

constexpr const char *kOneCard = "GPU-8932f937-0000-1111-2222-333344445555";
constexpr uid_t kNobody = 65534;

class LeaseFolder : public test::Tree {
protected:
    void make(const std::string &path, mode_t mode) const
    {
        std::filesystem::create_directories(root.path(path));
        ASSERT_EQ(chmod(root.path(path).c_str(), mode), 0);
    }
    std::string usual() const
    {
        return detail::usual_lease_folder(root.prefix).substr(root.prefix.size());
    }
    // Runs `body` in a fresh process with its leases in `folder`, as a user without access to closed files. Calls
    // TearDown, because the process does not reach it.
    template <class Body>
    void in_own_process(const Body &body)
    {
        in_fresh_process([&] {
            folder = root.path("/leases");
            set_config("YOKE_LEASE_DIR", folder);
            if (getuid() == 0) {
                ASSERT_EQ(chown(root.prefix.c_str(), kNobody, kNobody), 0);
                ASSERT_EQ(setresuid(kNobody, kNobody, kNobody), 0);
            }
            body();
            Tree::TearDown();
        });
    }
    std::string file() const { return folder + "/" + detail::lease_name(kOneCard) + ".lease"; }
    std::string folder;
};

TEST_F(LeaseFolder, IsTheSameForAllUsersAndSessions)
{
    setenv("XDG_RUNTIME_DIR", root.path("/run/user/1000").c_str(), 1);
    make("/run/user/1000", 0700);
    make("/run/lock", 0755);
    EXPECT_EQ(usual(), "/tmp/yoke-leases") << "only root could make the other";
    make("/run/lock/yoke", 01777);
    EXPECT_EQ(usual(), "/run/lock/yoke");
    make("/run/lock/yoke", 0755);
    EXPECT_EQ(usual(), "/tmp/yoke-leases");
    std::filesystem::remove(root.path("/run/lock/yoke"));
    make("/run/lock", 01777);
    EXPECT_EQ(usual(), "/run/lock/yoke");
    link("/run/lock/yoke", root.path("/run/user/1000"));
    EXPECT_EQ(usual(), "/tmp/yoke-leases");
    unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(LeaseFolder, IsWaitedForWhileAnotherUserMakesIt)
{
    make("/run/lock", 01777);
    make("/run/lock/yoke", 0700);
    std::thread other([this] {
        usleep(5'000);
        chmod(root.path("/run/lock/yoke").c_str(), 01777);
    });
    EXPECT_EQ(usual(), "/run/lock/yoke");
    other.join();
}

TEST_F(LeaseFolder, OneThatIsStillClosedToThisUserOpensInAnInstant)
{
    in_own_process([this] {
        ASSERT_EQ(mkdir(folder.c_str(), 0), 0);
        std::thread other([this] {
            usleep(5'000);
            chmod(folder.c_str(), 01777);
        });
        EXPECT_TRUE(take_lease(kOneCard));
        other.join();
    });
}

TEST_F(LeaseFolder, AFileThatIsStillClosedToThisUserOpensInAnInstant)
{
    in_own_process([this] {
        lease_folder();
        close(open(file().c_str(), O_CREAT | O_WRONLY, 0));
        std::thread other([this] {
            usleep(5'000);
            chmod(file().c_str(), 0666);
        });
        EXPECT_EQ(lease_holder(kOneCard), 0);
        EXPECT_TRUE(take_lease(kOneCard));
        other.join();
    });
}

TEST_F(LeaseFolder, WhatStaysClosedIsAnErrorAfterAShortWait)
{
    in_own_process([this] {
        ASSERT_EQ(mkdir(folder.c_str(), 0), 0);
        expect_error(YOKE_E_IO, {"/leases", "Permission denied"}, [] { take_lease(kOneCard); });
        chmod(folder.c_str(), 0700);  // for the cleanup
    });
}

TEST_F(LeaseFolder, AFileWithASecondNameIsNotWrittenTo)
{
    in_own_process([this] {
        lease_folder();
        const std::string other = root.path("/somebodys");
        std::ofstream(other) << "untouched";
        ASSERT_EQ(::link(other.c_str(), file().c_str()), 0);
        expect_error(YOKE_E_IO, {".lease", "plain file"}, [] { take_lease(kOneCard); });
        std::string text;
        std::getline(std::ifstream(other) >> std::ws, text);
        EXPECT_EQ(text, "untouched");
    });
}

TEST_F(LeaseFolder, AFileThatIsRemovedWhileItIsTakenIsTakenAnew)
{
    in_own_process([this] {
        lease_folder();
        const int held = open(file().c_str(), O_CREAT | O_RDWR, 0666);
        ASSERT_EQ(flock(held, LOCK_EX), 0);
        std::thread cleaner([&] {
            usleep(2'000);
            unlink(file().c_str());
            close(held);
        });
        // Refused for as long as the cleaner holds the file, which the machine decides.
        bool taken = take_lease(kOneCard);
        for (int i = 0; !taken && i < 5000; ++i) {
            usleep(1'000);
            taken = take_lease(kOneCard);
        }
        EXPECT_TRUE(taken);
        cleaner.join();
        // The lock is on the file that stands there now, where other processes look for the lock.
        const int seen = open(file().c_str(), O_RDONLY);
        EXPECT_GE(seen, 0);
        EXPECT_NE(flock(seen, LOCK_EX | LOCK_NB), 0);
        close(seen);
    });
}

TEST_F(LeaseFolder, ALookMakesNone)
{
    in_own_process([this] {
        EXPECT_EQ(lease_holder(kOneCard), 0);
        EXPECT_FALSE(std::filesystem::exists(folder));
        EXPECT_TRUE(take_lease(kOneCard));
        EXPECT_TRUE(std::filesystem::exists(folder));
    });
}

TEST(LeaseMount, MemoryOfTheHostIsToldFromTheContainersOwn)
{
    const std::string own =
        "900 800 0:150 / / rw,relatime - overlay overlay rw\n"
        "901 900 0:153 / /proc rw - proc proc rw\n";
    EXPECT_FALSE(detail::is_private_mount(
        own + "903 900 0:26 / /run/lock rw master:5 - tmpfs tmpfs rw,size=5120k\n",
        "/run/lock/yoke"));
    EXPECT_TRUE(
        detail::is_private_mount(own + "903 900 0:160 / /leases rw - tmpfs tmpfs rw\n", "/leases"));
    EXPECT_TRUE(detail::is_private_mount(own + "903 900 0:160 / /run/lock rw - tmpfs tmpfs rw\n",
                                         "/run/lock/yoke"));
    EXPECT_FALSE(
        detail::is_private_mount(own + "903 900 0:60 / /leases rw - nfs4 host:/ rw\n", "/leases"));
    EXPECT_TRUE(detail::is_private_mount(own, "/leases"));
}

}  // namespace
}  // namespace yoke
