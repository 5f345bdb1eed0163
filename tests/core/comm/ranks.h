// ranks.h: ranks of a job as processes, and the report of each rank.
#pragma once

#include "core/base/error.h"
#include "core/rendezvous/rendezvous.h"
#include "core/store/socket.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

namespace yoke::test {

using Variables = std::map<std::string, std::string>;

// Child process that runs `body` and returns its text. The destructor kills a child without a wait.
class RankProcess {
public:
    explicit RankProcess(const std::function<std::string()> &body)
    {
        int ends[2];
        if (pipe(ends) != 0) abort();
        process_ = fork();
        if (process_ == 0) {
            alarm(25);
            close(ends[0]);
            const std::string text = told(body);
            if (write(ends[1], text.data(), text.size()) < 0) _exit(2);
            _exit(0);
        }
        close(ends[1]);
        end_ = ends[0];
    }
    RankProcess(RankProcess &&other) noexcept
        : process_(std::exchange(other.process_, -1)), end_(std::exchange(other.end_, -1))
    {
    }
    ~RankProcess()
    {
        if (process_ > 0) {
            signal(SIGKILL);
            result();
        }
    }
    void signal(int number) const { kill(process_, number); }
    pid_t process() const { return process_; }
    // Waits for the end of the process.
    std::string result()
    {
        std::string text;
        char bytes[4096];
        for (ssize_t got; (got = read(end_, bytes, sizeof bytes)) > 0;) text.append(bytes, got);
        close(end_);
        waitpid(std::exchange(process_, -1), nullptr, 0);
        return text;
    }

private:
    static std::string told(const std::function<std::string()> &body)
    {
        try {
            return body();
        } catch (const Error &error) {
            return std::string(status_name(error.status())) + " " + error.what();
        }
    }
    pid_t process_;
    int end_;
};

// A port that is this test's: held, but not listened at.
class Port {
public:
    Port() : held_(Socket::adopt([] { return socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0); }))
    {
        const int on = 1, off = 0;
        setsockopt(held_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(held_.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        const SocketAddress any = SocketAddress::any(AF_INET6, 0);
        EXPECT_EQ(bind(held_.fd(), any.get(), any.length), 0);
        number_ = held_.local().port();
    }
    uint16_t number() const { return number_; }  // in a child, too, which does not have the socket

private:
    Socket held_;
    uint16_t number_ = 0;
};

inline Variables variables_of(int rank, int size, uint16_t port)
{
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(size)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", std::to_string(port)}};
}

inline RendezvousOptions options_of(const Variables &variables, double timeout_s = 20)
{
    RendezvousOptions options;
    options.deadline = Deadline::after(timeout_s);
    options.build = "Yoke of the test";
    options.variable = [variables](const char *name) -> const char * {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    return options;
}

// Returns the ranks of the rendezvous, and checks that each rank reaches all ranks through the store.
inline std::string tell(const Rendezvous &met)
{
    std::string text;
    for (const RankInfo &one : met.ranks)
        text +=
            format("%d:%d/%d@%s ", one.rank, one.local_rank, one.local_size, one.address.c_str());
    const auto ranks = all_gather(*met.store, "ranks", met.rank, met.size, std::to_string(met.rank),
                                  Deadline::after(20));
    for (const std::string &rank : ranks) text += rank;
    // Rank 0 keeps the store until all ranks have read it.
    met.store->add("done", 1, Deadline::after(20));
    if (met.server) met.server->wait_until_left(Deadline::after(20));
    return text;
}

inline RankProcess start(const RendezvousOptions &options)
{
    return RankProcess([&] { return tell(meet(options)); });
}

inline std::vector<std::string> results(std::vector<RankProcess> &ranks)
{
    std::vector<std::string> texts;
    for (RankProcess &rank : ranks) texts.push_back(rank.result());
    return texts;
}

inline void expect_parts(const std::string &text, std::initializer_list<std::string> parts)
{
    for (const std::string &part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

inline std::string process_of(const RankProcess &rank)
{
    return "process " + std::to_string(rank.process());
}

}  // namespace yoke::test
