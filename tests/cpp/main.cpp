// byway.hpp, compiled for every standard it claims, with and without exceptions.
#include "parts.hpp"

byway::result<byway::queue> second_unit();

byway::address address_of(const byway::engine &engine, const byway::dns &dns, const char *host,
                          const byway::proxy_selector *chooser)
{
    byway::address_options where;
    where.host = host;
    where.port = 443;
    where.tls = true;
    where.dns = &dns;
    where.proxy_selector = chooser;
    return byway::address::make(engine, where).value();
}

int main()
{
    library();
    ownership();
    results();
    exceptions();
    routes();
    resolvers();
    choosers();
    queues();
    failures();
    dials();
    handshakes();
    chains();
    routers();
    sources();
    OK(second_unit(), "a second translation unit has the same header");
    std::printf("1..%d\n", tap::tests);
    return tap::failures ? 1 : 0;
}
