// What the tests of byway.hpp share: one program, a part per subject.
#pragma once

#include "byway.hpp"

#include <cstdio>

using namespace std::chrono_literals;

struct tap {
    static inline int tests = 0, failures = 0;

    static bool line(bool good, const char *file, int at, const char *what)
    {
        failures += !good;
        std::printf("%sok %d - %s\n", good ? "" : "not ", ++tests, what);
        if (!good)
            std::printf("# at %s:%d\n", file, at);
        std::fflush(stdout);
        return good;
    }
    static void skip(const char *what, const char *why) { std::printf("ok %d - %s # SKIP %s\n", ++tests, what, why); }
};

#define OK(condition, what) tap::line(static_cast<bool>(condition), __FILE__, __LINE__, what)

// A callback object that counts how many of it live.
struct counted {
    explicit counted(int &alive) : alive_(&alive) { ++*alive_; }
    counted(const counted &other) : alive_(other.alive_) { ++*alive_; }
    counted &operator=(const counted &) = delete;
    ~counted() { --*alive_; }
    int *alive_;
};

// https://HOST:443/ by this resolver and proxy selector.
byway::address address_of(const byway::engine &engine, const byway::dns &dns, const char *host = "a.example",
                          const byway::proxy_selector *chooser = nullptr);

void library();
void ownership();
void results();
void exceptions();
void routes();
void resolvers();
void choosers();
void queues();
void failures();
void dials();
void handshakes();
void chains();
void routers();
void sources();
