// Lines of ranks, and the content of their error files.
#include "core/launch/output.h"
#include "core/launch/error_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>

#include <fstream>
#include <iterator>

namespace yoke {
namespace {

// File in the working directory, removed by the destructor.
class File {
public:
    File() : path_("launch-test-" + std::to_string(getpid())) {}
    ~File() { unlink(path_.c_str()); }
    void write(const std::string &text) const { std::ofstream(path_) << text; }
    std::string text() const
    {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    const std::string &path() const { return path_; }

private:
    std::string path_;
};

TEST(Output, LinesThatComeInPiecesAreWholeAndLongOnesAreCut)
{
    const File file;
    const int fd = open(file.path().c_str(), O_CREAT | O_WRONLY, 0600);
    LineSink sink(fd);
    LineMaker one("[0] ", sink), other("[1] ", sink);
    one.add("a");
    other.add("b\n\nc");
    one.add("a\n");
    const std::string longest(size_t{1} << 20, 'x');
    one.add(longest);
    one.add("y");
    one.finish();
    other.finish();
    one.finish();  // no text is left
    while (!sink.is_empty()) sink.write_some();
    close(fd);
    EXPECT_EQ(file.text(), "[1] b\n[1] \n[0] aa\n[0] " + longest + "\n[0] y\n[1] c\n");
}

// Terminal whose other side no program reads.
class StalledTerminal {
public:
    StalledTerminal() { EXPECT_EQ(openpty(&other_, &fd_, nullptr, nullptr, nullptr), 0); }
    ~StalledTerminal()
    {
        close(fd_);
        close(other_);
    }
    int fd() const { return fd_; }

private:
    int other_ = -1, fd_ = -1;
};

void fill(LineSink &sink)
{
    sink.add(std::string(size_t{1} << 20, 'x'));
    for (int rest = 1 << 20; rest > 0; --rest) {
        pollfd wanted{sink.fd(), POLLOUT, 0};
        if (poll(&wanted, 1, 0) == 0) break;
        sink.write_some();  // a blocking write would wait for ever
    }
    EXPECT_FALSE(sink.is_empty());
    EXPECT_FALSE(sink.is_broken());
}

TEST(Output, ATerminalThatNobodyReadsIsNotWaitedFor)
{
    const StalledTerminal terminal;
    LineSink sink(terminal.fd());
    EXPECT_NE(sink.fd(), terminal.fd());
    fill(sink);
    EXPECT_EQ(fcntl(terminal.fd(), F_GETFL) & O_NONBLOCK, 0) << "others have it, too";
}

TEST(Output, NorIsOneThatCannotBeOpenedAnew)
{
    const StalledTerminal terminal;
    struct rlimit files, none;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    LineSink sink(terminal.fd());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(sink.fd(), terminal.fd());
    fill(sink);
}

TEST(Output, NeitherIsAPipeThatOthersFill)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    LineSink sink(ends[1]);
    sink.add(std::string(PIPE_BUF, 'x'));
    ASSERT_EQ(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BUF), PIPE_BUF);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    sink.write_some();
    EXPECT_FALSE(sink.is_empty());
    for (const int end : ends) close(end);
}

TEST(Output, WhatNobodyReadsIsNotKept)
{
    LineSink sink(-1);
    sink.add(std::string(size_t{2} << 20, 'x'));
    EXPECT_TRUE(sink.is_full());
    sink.write_some();
    EXPECT_TRUE(sink.is_broken());
    EXPECT_TRUE(sink.is_empty());
    EXPECT_FALSE(sink.is_full());
}

TEST(ErrorFile, IsReadWhateverStandsInIt)
{
    const File file;
    EXPECT_EQ(read_error_file(file.path()).text, "");
    const auto read = [&](const char *text) {
        file.write(text);
        return read_error_file(file.path());
    };
    const ToldCause whole =
        read(R"({"message": {"message": "why\nso", "extraInfo": {"timestamp": "17"}}})");
    EXPECT_EQ(whole.text, "why\nso");
    EXPECT_EQ(whole.told_s, 17);
    EXPECT_EQ(read(R"({"message": {"message": "why", "extraInfo": 3}})").text, "why");
    EXPECT_EQ(read(R"({"message": "short"})").text, "short");
    for (const char *other : {"no JSON", "[1]", R"({"message": 3})", R"({"message": {}})", "{"}) {
        EXPECT_EQ(read(other).text, other);
        EXPECT_EQ(read(other).told_s, 0);
    }
}

}  // namespace
}  // namespace yoke
