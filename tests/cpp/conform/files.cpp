// Rules in files that change: each way to change a file is seen once, whole, and nothing else is.
#include "chains.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

namespace conform {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

const char KEY[] = "a.tag-router", MARKER[] = "S::.condition-router";
const std::string OLD = "# the old rule\nkey: a\ntags: [{name: old, addresses: ['10.0.0.1:20880']}]\n";
const std::string NEW = "# the new rule\nkey: a\ntags: [{name: gray, addresses: ['10.0.0.1:20880']}]\n";

void write(const fs::path &path, const std::string &text)
{
    std::ofstream out(path);
    out << text;
    out.close();
    need(out.good(), path.string() + " cannot be written");
}

// A folder that a chain follows.
struct watched {
    fs::path folder;
    world w{BYWAY_DIALECT_BYWAY,
            "consumer://10.1.1.1/S",
            {"dubbo://10.0.0.1:20880/S?application=a", "dubbo://10.0.0.2:20880/S?application=a"}};
    byway::queue queue = w.engine.queue();
    byway::listener listener;
    byway::source source;
    int rule = 0, marker = 0, errors = 0;

    watched()
    {
        char name[] = "/tmp/byway-watch-XXXXXX";
        need(mkdtemp(name) != nullptr, "no folder");
        folder = name;
        listener = w.engine
                       .listen(
                           [this](const byway::event &event) {
                               errors += event.status() < 0;
                               rule += event.subject() == KEY;
                               marker += event.subject() == MARKER;
                           },
                           byway::events({BYWAY_EVENT_RULE}))
                       .value();
        w.set_method("m");
        w.set_attachment("dubbo.tag", "gray");
    }
    watched(const watched &) = delete;
    ~watched()
    {
        // Nobody is told of anything any more.
        (void)w.engine.shutdown(std::chrono::seconds(60));
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }

    // Polls until something holds; false when it does not come to that.
    template <class F> bool until(F &&holds)
    {
        std::vector<byway::completion> records;
        for (int rounds = 0; rounds < 600 && !holds(); ++rounds)
            queue.poll(records, milliseconds(100)).value();
        return holds();
    }
    void follow()
    {
        byway::bind_options options;
        options.flags = BYWAY_BIND_RULES_ONLY;
        source = byway::source::file(w.engine, folder.string()).value();
        w.chain.bind(source, options, std::chrono::seconds(60)).value();
        need(until([this] { return rule > 0; }), "the old text is not seen");
    }
    // At once, as editors do.
    void put(const char *name, const std::string &text) const
    {
        write(folder / ".new", text);
        fs::rename(folder / ".new", folder / name);
    }
    // A directory whose link is swapped, as for ConfigMaps.
    void swap(const char *name, const std::string &text) const
    {
        fs::create_directory(folder / name);
        write(folder / name / KEY, text);
        fs::create_symlink(name, folder / "..tmp");
        fs::rename(folder / "..tmp", folder / "..data");
    }
    // Another file has been seen: so there was a look at this one too.
    void look()
    {
        put(MARKER, "conditions: ['method=x => host=10.0.0.1']");
        need(until([this] { return marker > 0; }), "no look at the folder");
    }
    double revision() const
    {
        const json status = json::parse(w.chain.status().value());
        for (const json &router : get(status, "routers"))
            if (text(router, "key") == KEY)
                return number(router, "revision", -1);
        return -1;
    }
};

bool reloaded(const std::string &variant)
{
    watched t;
    const fs::path file = t.folder / KEY;
    if (variant == "symlink_dir_swap") {
        t.swap("..1", OLD);
        fs::create_symlink(fs::path("..data") / KEY, file);
    } else
        write(file, OLD);
    t.follow();
    const int before = t.rule;
    if (variant == "write_in_place")
        write(file, NEW);
    else if (variant == "rename_over")
        t.put(KEY, NEW);
    else if (variant == "symlink_dir_swap")
        t.swap("..2", NEW);
    else if (variant == "delete_create") {
        fs::remove(file);
        write(file, NEW);
    } else if (variant == "touch_only") {
        const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
        need(utimensat(AT_FDCWD, file.c_str(), now, 0) == 0, "cannot be touched");
        t.look();
        return t.rule != before || t.revision() != 1;
    } else if (variant == "truncate_then_write") {
        std::ofstream out(file);
        out << NEW.substr(0, 20) << std::flush;
        t.look();
        need(t.rule == before, "half a text was taken");
        out << NEW.substr(20);
    } else
        fail("unknown variant " + variant);
    if (!t.until([&] { return t.w.rows() == json::array({0}); }))
        return false;
    // A file that is away for longer than a moment is deleted, and its return a first text.
    need(t.errors == 0 && (t.revision() == 2 || variant == "delete_create"),
         std::to_string(t.revision()) + " texts, " + std::to_string(t.errors) + " errors");
    return true;
}

void file_watch(const json &one)
{
    json got = json::array();
    for (const json &variant : get(get(one, "input"), "variants"))
        got.push_back(reloaded(variant.get<std::string>()));
    same(got, get(get(one, "expect"), "reloaded"), "reloaded");
}

const kinds here = {{"bugs", "file_watch", file_watch}};

} // namespace
} // namespace conform
