// Leases: held by a process, released at its end, known by name.
#include "core/select/lease.h"
#include "core/base/config.h"
#include "core/base/fork.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <fstream>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;
using test::passes_in_child;

constexpr const char *kCard = "GPU-8932F937-0000-1111-2222-333344445555";

// Folder for a single test, as YOKE_LEASE_DIR.
struct LeaseRoom {
    LeaseRoom()
    {
        char name[] = "/tmp/yoke-lease-test-XXXXXX";
        path = mkdtemp(name);
        set_config("YOKE_LEASE_DIR", path + "/leases");
    }
    ~LeaseRoom() { static_cast<void>(!system(("rm -rf " + path).c_str())); }
    std::string file(const char *card = kCard) const
    {
        return path + "/leases/" + detail::lease_name(card) + ".lease";
    }
    std::string path;
};

// Starts a process that holds the card until a kill.
pid_t holder_process()
{
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const char good = take_lease(kCard);
        static_cast<void>(!write(ready[1], &good, 1));
        for (;;) pause();
    }
    char good = 0;
    EXPECT_EQ(read(ready[0], &good, 1), 1);
    EXPECT_EQ(good, 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST(DeviceLease, OneProcessHoldsACardUntilItGivesItUp)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        EXPECT_EQ(lease_holder(kCard), 0);
        EXPECT_TRUE(take_lease(kCard));
        EXPECT_TRUE(take_lease(kCard));
        EXPECT_TRUE(holds_lease("gpu-8932f937-0000-1111-2222-333344445555"));
        EXPECT_EQ(lease_holder(kCard), getpid());
        EXPECT_FALSE(holds_lease("GPU-1"));
        drop_lease(kCard);  // drops all takes at once
        drop_lease(kCard);
        EXPECT_FALSE(holds_lease(kCard));
        EXPECT_EQ(lease_holder(kCard), 0);
    });
}

TEST(DeviceLease, WhoTakesBackALeaseDoesNotTakeItFromAnotherThread)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        EXPECT_TRUE(take_lease(kCard));  // the first thread
        EXPECT_TRUE(take_lease(kCard));  // the second thread, left without its other devices
        return_lease(kCard);
        EXPECT_TRUE(holds_lease(kCard));
        EXPECT_EQ(lease_holder(kCard), getpid());
        return_lease(kCard);
        EXPECT_FALSE(holds_lease(kCard));
        return_lease(kCard);
    });
}

TEST(DeviceLease, AnotherProcessIsNamedAndItsDeathEndsItsLease)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        const pid_t other = holder_process();
        EXPECT_FALSE(take_lease(kCard));
        EXPECT_EQ(lease_holder(kCard), other);
        EXPECT_TRUE(take_lease("GPU-another"));
        end(other);
        EXPECT_EQ(lease_holder(kCard), 0);
        EXPECT_TRUE(take_lease(kCard));
    });
}

TEST(DeviceLease, AFileThatWasLeftBehindIsNoLeaseAndItsTextNamesNobody)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        lease_folder();
        std::ofstream(folder.file()) << getppid() << "\n";
        EXPECT_EQ(lease_holder(kCard), 0);
        const pid_t other = holder_process();
        std::ofstream(folder.file()) << getppid() << "\n";  // stale: the lock is another's
        EXPECT_EQ(lease_holder(kCard), other);
        end(other);
    });
}

TEST(DeviceLease, AForkedChildHasNoneAndKeepsNone)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        EXPECT_TRUE(take_lease(kCard));
        EXPECT_TRUE(passes_in_child([] {
            EXPECT_FALSE(holds_lease(kCard));
            EXPECT_FALSE(take_lease(kCard));
            EXPECT_EQ(lease_holder(kCard), getppid());
            drop_lease(kCard);
        }));
        EXPECT_EQ(lease_holder(kCard), getpid());
        // A child that lives on does not carry the lock along.
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            for (;;) pause();
        }
        drop_lease(kCard);
        EXPECT_TRUE(passes_in_child([] { EXPECT_TRUE(take_lease(kCard)); }));
        end(child);
    });
}

TEST(DeviceLease, TheFolderAndItsFilesAreForAllUsersWhateverTheUmask)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        umask(077);
        EXPECT_TRUE(take_lease(kCard));
        struct stat found {};
        ASSERT_EQ(stat((folder.path + "/leases").c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 01777u);
        ASSERT_EQ(stat(folder.file().c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 0666u);
    });
}

TEST(DeviceLease, AFolderThatCannotBeUsedIsNamedWithWhatToDo)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        std::ofstream(folder.path + "/leases") << "a file where the folder should be";
        expect_error(YOKE_E_IO, {"/leases", "YOKE_LEASE_DIR", "chmod 1777"},
                     [] { take_lease(kCard); });
        expect_error(YOKE_E_IO, {"/leases"}, [] { lease_holder(kCard); });
    });
}

TEST(DeviceLease, ALinkInPlaceOfAFileIsNotFollowed)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        lease_folder();
        const std::string target = folder.path + "/target";
        std::ofstream(target) << "untouched";
        ASSERT_EQ(symlink(target.c_str(), folder.file().c_str()), 0);
        expect_error(YOKE_E_IO, {".lease", "plain file"}, [] { take_lease(kCard); });
        std::string text;
        std::getline(std::ifstream(target) >> std::ws, text);
        EXPECT_EQ(text, "untouched");
    });
}

TEST(DeviceLease, ALookNeverKeepsAnotherFromTakingIt)
{
    in_fresh_process([] {
        const LeaseRoom folder;
        lease_folder();
        const pid_t looker = fork();
        if (looker == 0) {
            alarm(20);
            for (;;) lease_holder(kCard);
        }
        for (int i = 0; i < 2000; ++i) {
            EXPECT_TRUE(take_lease(kCard)) << i;
            drop_lease(kCard);
        }
        end(looker);
    });
}

TEST(DeviceLease, NamesThatAreNoneAreRefused)
{
    EXPECT_EQ(detail::lease_name("MIG-GPU-1/2/0"), "gpu-1_2_0");
    EXPECT_EQ(detail::lease_name("../../etc/passwd"), "______etc_passwd");
    expect_error(YOKE_E_VALUE, {"''"}, [] { detail::lease_name(""); });
    expect_error(YOKE_E_VALUE, {"'GPU-' is not the UUID of a card"},
                 [] { detail::lease_name("GPU-"); });
}

TEST(DeviceLease, TheKernelsListIsReadByDeviceAndFile)
{
    const std::string locks =
        "1: POSIX  ADVISORY  WRITE 7 08:01:55 0 EOF\n2: FLOCK  ADVISORY  READ 8 08:01:55 0 EOF\n"
        "3: FLOCK  ADVISORY  WRITE 9 08:02:55 0 EOF\n4: FLOCK  ADVISORY  WRITE 10 08:01:55 0 EOF\n";
    EXPECT_EQ(detail::holder_in(locks, makedev(8, 1), 55), 10);
    EXPECT_EQ(detail::holder_in(locks, makedev(8, 2), 55), 9);
    EXPECT_EQ(detail::holder_in(locks, makedev(8, 1), 5), 0);
}

TEST(DeviceLease, AFolderOfTheContainerAloneIsToldFromAMountedOne)
{
    const std::string own =
        "1 0 0:50 / / rw - overlay overlay rw\n2 1 0:51 / /proc rw - proc proc rw\n";
    EXPECT_TRUE(detail::is_private_mount(own, "/run/lock/yoke"));
    EXPECT_TRUE(
        detail::is_private_mount(own + "3 1 0:52 / /run rw - tmpfs tmpfs rw\n", "/run/lock/yoke"));
    EXPECT_FALSE(detail::is_private_mount(
        own + "3 1 0:20 /lock/yoke /run/lock/yoke rw - tmpfs tmpfs rw\n", "/run/lock/yoke"));
    EXPECT_FALSE(
        detail::is_private_mount(own + "3 1 8:1 / /leases rw - ext4 /dev/sda1 rw\n", "/leases"));
}

}  // namespace
}  // namespace yoke
