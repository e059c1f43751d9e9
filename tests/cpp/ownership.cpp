// Owners, results, what a callback throws.
#include "parts.hpp"

#include <unordered_set>

static_assert(!std::is_copy_constructible_v<byway::selector>, "exclusive handles only move");
static_assert(!std::is_copy_assignable_v<byway::session>, "exclusive handles only move");
static_assert(std::is_nothrow_move_constructible_v<byway::selector>, "moves do not throw");
static_assert(std::is_nothrow_move_assignable_v<byway::choice>, "moves do not throw");
static_assert(std::is_copy_constructible_v<byway::engine>, "shared handles copy");
static_assert(std::is_nothrow_copy_constructible_v<byway::route>, "one more reference does not throw");
static_assert(sizeof(byway::engine) == sizeof(void *) && sizeof(byway::dial) == sizeof(void *),
              "an owner is a pointer");

void library()
{
    OK(byway::abi_version() == byway::header_abi_version, "the library is the one the headers are for");
    OK(byway::version() == BYWAY_VERSION_STRING && byway::version_number() == BYWAY_VERSION_NUMBER, "its version");
    OK(!byway::has_feature("no such feature"), "a feature nobody has");
    OK(byway::status_name(BYWAY_E_BUSY) == "BYWAY_E_BUSY" && !byway::status_message(12345).empty(),
       "every status has a name and a message");
    bool found = false, right = true;
    for (std::uint32_t i = 0; auto layout = byway::layout_of(i); ++i) {
        if (layout->name == "byway_completion") {
            found = true;
            right = layout->size == sizeof(byway_completion) && layout->offsets.size() == 4 &&
                    layout->offsets[3] == offsetof(byway_completion, status);
        }
    }
    OK(found && right, "structs are laid out as here");
    OK(!byway::layout_of(100000), "nothing past the last struct");
}

void ownership()
{
    byway::engine engine = byway::engine::make().value();
    byway::engine &same = engine;
    engine = same;
    engine = std::move(same);
    OK(engine && engine.statistics(), "self-assignment and self-move keep a shared handle");
    byway::engine second = engine, third;
    third = second;
    second = std::move(third);
    OK(second.get() == engine.get() && !third, "copies are the same engine, a moved-from owner is empty");

    byway::dns dns = byway::dns::hosts(engine, "192.0.2.1 a.example\n192.0.2.2 a.example\n").value();
    byway::selector selector = byway::selector::make(engine, address_of(engine, dns)).value();
    byway::selector &itself = selector;
    selector = std::move(itself);
    OK(selector && selector.may_have_next(), "self-move keeps an exclusive handle");
    byway::selector other = std::move(selector);
    OK(!selector && other, "a moved-from owner is empty"); // NOLINT: that is what is tested
    OK(selector.next().error().code() == BYWAY_E_BAD_HANDLE, "an empty owner is refused, not followed");
    selector = std::move(other);
    byway::selector raw(selector.detach());
    OK(!selector && raw.may_have_next(), "a handle can be taken out and given to another owner");

    byway::selection selection = raw.next().value();
    std::unordered_set<byway::route> kept;
    std::vector<byway::route> row;
    for (byway::route_ref route : selection) {
        kept.insert(byway::keep(route));
        row.push_back(byway::keep(route));
        row.push_back(row.back());
    }
    row.erase(row.begin());
    OK(kept.size() == 2 && row.size() == 3 && kept.count(row[0]) == 1, "routes live in containers, equal by value");
    selection = byway::selection();
    engine.shutdown(5s).value();
    OK(row[0].text().value().find("192.0.2.1") != std::string::npos, "a kept route outlives its selection and engine");
}

void results()
{
    auto number = byway::result<int>(7);
    OK(number && *number == 7 && number.error().code() == BYWAY_OK, "a value, and no error");
    auto none = byway::ip::parse("not an address");
    OK(!none && none.error().code() == BYWAY_E_INVALID_IP && !none.error().what().empty(), "an error, and no value");
    OK(std::move(none).value_or(byway::ip::v4(192, 0, 2, 9)).text() == "192.0.2.9", "another value in its place");
    auto twice =
        byway::ip::parse("2001:DB8::1").and_then([](byway::ip ip) { return byway::result<std::string>(ip.text()); });
    OK(twice && *twice == "2001:db8::1", "results follow each other");
    auto lost = byway::ip::parse("?").and_then([](byway::ip ip) { return byway::result<std::string>(ip.text()); });
    OK(!lost && lost.error().code() == BYWAY_E_INVALID_IP, "the first error stays");

    auto refused = byway::filter::make("allow 192.0.2.0/24\nallow nonsense\n");
    const byway::error why = refused.error();
    OK(why.code() == BYWAY_E_SYNTAX && why.line() == 2 && why.column() > 0 && why.offset() > 0 &&
           why.source() == byway::error_source::parser,
       "an error says where in a text");
    byway::error copy;
    copy = why;
    OK(copy.message() == why.message() && copy.what().find("line 2") != std::string::npos, "errors copy");
    OK(byway::error(BYWAY_E_TIMEOUT).message() == byway::status_message(BYWAY_E_TIMEOUT),
       "a bare status has its sentence");

    byway::engine engine = byway::engine::make().value();
    byway::address_options where;
    where.host = "a b";
    where.port = 1;
    OK(byway::address::make(engine, where).error().code() == BYWAY_E_INVALID_HOST, "options are judged");
}

#if BYWAY_HAS_EXCEPTIONS
void exceptions()
{
    byway::engine engine = byway::engine::make().value();
    auto dns = byway::dns::make(engine, [](byway::dns_request &, std::string_view host) -> byway_status {
                   if (host == "b.example")
                       throw std::runtime_error("out of order");
                   throw std::string("mine");
               }).value();
    std::string caught;
    try {
        (void)byway::selector::make(engine, address_of(engine, dns)).value().next().value();
    } catch (const std::string &thrown) {
        caught = thrown;
    }
    OK(caught == "mine", "what a callback threw comes back to the caller");
    auto told = byway::selector::make(engine, address_of(engine, dns, "b.example")).value().next();
    OK(!told && told.error().what().find("out of order") != std::string::npos && told.error().thrown(),
       "the error has the exception's words, and the exception");
    int code = 0;
    try {
        (void)byway::ip::parse("?").value();
    } catch (const byway::exception &thrown) {
        code = thrown.error().code();
    }
    OK(code == BYWAY_E_INVALID_IP, "a failure becomes an exception that has its code");

    // The engine gets over a proxy selector that fails: what it threw must not turn up elsewhere.
    byway::engine_options options;
    options.on_proxy_selector_error = BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT;
    byway::engine forgiving = byway::engine::make(options).value();
    auto names = byway::dns::hosts(forgiving, "192.0.2.1 a.example\n").value();
    auto chooser = byway::proxy_selector::make(forgiving, [](byway::proxy_request &, std::string_view) -> byway_status {
                       throw std::runtime_error("no proxies today");
                   }).value();
    auto selector = byway::selector::make(forgiving, address_of(forgiving, names, "a.example", &chooser));
    OK(selector && selector->next().value().size() == 1, "a failing proxy selector is got over");
    OK(!byway::ip::parse("?").error().thrown(), "and its exception is not another call's");

    // A callback that calls byway itself, before it throws.
    auto nested = byway::dns::make(engine, [&](byway::dns_request &, std::string_view) -> byway_status {
                      (void)byway::ip::parse("?");
                      (void)engine.statistics();
                      throw std::string("after calls");
                  }).value();
    auto failed = byway::selector::make(engine, address_of(engine, nested)).value().next();
    OK(!failed && failed.error().thrown(), "an exception after other calls stays the callback's");
}
#else
void exceptions() {}
#endif
