// Load balancing, stickiness and second choices, through picks of a chain.
#include "chains.hpp"

#include <cmath>
#include <thread>

namespace conform {
namespace {

using counts = std::vector<int>;

int balance_of(const json &one)
{
    static const char *const names[] = {"random",           "roundrobin",     "leastactive",
                                        "shortestresponse", "consistenthash", "adaptive"};
    for (int i = 0; i < 6; ++i)
        if (text(one, "algorithm") == names[i])
            return i + 1;
    return 0;
}

std::string consumer_of(const json &one)
{
    const bool unchecked = has(one, "availablecheck") && !flag(one, "availablecheck");
    return std::string("consumer://127.0.0.1/S?router=-default") + (unchecked ? "&cluster.availablecheck=false" : "");
}

// A chain over the case's invokers that picks by the case's algorithm. A generic call is unwrapped as hosts do.
struct picks : world {
    byway::pick_options options;

    picks(const json &one, int dialect) : world(dialect, consumer_of(one), get(one, "invokers"))
    {
        const json &given = get(one, "invocation"), &arguments = get(given, "arguments");
        options.balance = balance_of(one);
        if (starts(text(given, "method"), "$invoke") && arguments.size() == 3) {
            // Behind the method and the types come the method's own arguments.
            std::vector<byway::argument> texts = {keep(arguments[0].get<std::string>()), ""};
            for (const json &item : arguments[2])
                texts.emplace_back(keep(item.get<std::string>()));
            set_method(text(given, "method"));
            call.arguments(texts).value();
        } else if (!set_call(given))
            set_method("m");
    }

    std::size_t size() const { return providers.size(); }
    byway::picked pick() const { return chain.pick(call, options).value(); }
    std::string id_at(std::uint64_t row) const { return text(providers[row], "id", "?"); }

    // Some cases call the third provider by the letter of its upstream variable (`E` for protocol `test5`).
    std::size_t row_of(const std::string &id) const
    {
        for (std::size_t row = 0; row < size(); ++row)
            if (text(providers[row], "id") == id)
                return row;
        const std::string protocol = "test" + std::to_string(id[0] - 'A' + 1) + "://";
        for (std::size_t row = 0; row < size(); ++row)
            if (starts(text(providers[row], "url"), protocol))
                return row;
        return 0;
    }

    // Begins a call on one provider: the only one that is available.
    byway::picked begin_on(std::size_t row) const
    {
        const std::uint64_t bits[] = {std::uint64_t(1) << row};
        byway::pick_options only = options;
        only.set_available(bits, list);
        return chain.pick(call, only).value();
    }
    counts count(int runs) const
    {
        counts all(size());
        for (int i = 0; i < runs; ++i) {
            const auto picked = pick();
            (void)chain.pick_end(picked, false, std::chrono::nanoseconds(0));
            ++all[picked.row];
        }
        return all;
    }
    counts count_on_threads(int runs, int threads) const
    {
        std::vector<counts> parts(static_cast<std::size_t>(threads), counts(size()));
        std::vector<std::thread> running;
        for (counts &part : parts)
            running.emplace_back([&, this] {
                const auto own = byway::invocation::make("test").value();
                for (int i = 0; i < runs / threads; ++i)
                    if (auto picked = chain.pick(own, options))
                        ++part[picked->row];
            });
        counts all(size());
        for (std::size_t i = 0; i < running.size(); ++i) {
            running[i].join();
            for (std::size_t row = 0; row < all.size(); ++row)
                all[row] += parts[i][row];
        }
        return all;
    }
    double weight(std::size_t row) const
    {
        const std::string given = parameter(text(providers[row], "url"), "weight");
        return given.empty() ? 100 : std::stod(given);
    }
    double weights() const
    {
        double total = 0;
        for (std::size_t row = 0; row < size(); ++row)
            total += weight(row);
        return total;
    }
};

std::string got(std::size_t row, int count) { return "row " + std::to_string(row) + " got " + std::to_string(count); }

void sequence(const picks &w, const json &expect)
{
    if (has(expect, "sequence")) {
        const std::string letters = text(expect, "sequence");
        for (std::size_t i = 0; i < letters.size(); ++i) {
            const std::string id = w.id_at(w.pick().row);
            need(id[0] == letters[i], "got " + id + " where " + letters.substr(i) + " is left");
        }
        return;
    }
    for (const json &want : expect)
        same(w.id_at(w.pick().row), want, "pick");
}

void adaptive(const picks &w, const json &metrics, int runs)
{
    std::vector<json> of_row(w.size());
    counts all(w.size());
    for (const auto &[id, one] : metrics.items())
        of_row[w.row_of(id)] = one;
    for (int i = 0; i < runs; ++i) {
        const auto picked = w.pick();
        const json &one = of_row[picked.row];
        ++all[picked.row];
        byway::call_result how;
        how.ok = !flag(one, "error");
        how.has_report = 1;
        how.report_time_ms = i;
        how.report_load = number(one, "load");
        how.report_latency_ms = number(one, "rt");
        w.chain.pick_end(picked, how).value();
    }
    std::size_t worst = 0, fewest = 0;
    for (std::size_t row = 0; row < w.size(); ++row) {
        const double unit = std::floor(runs / w.weights()), ewma = 25 + number(of_row[row], "rt") / 2;
        need(std::fabs(all[row] / (w.weight(row) * ewma) - unit) < 2 * unit, got(row, all[row]));
        if (number(of_row[row], "load") > number(of_row[worst], "load"))
            worst = row;
        if (all[row] < all[fewest])
            fewest = row;
    }
    same(fewest, worst, "the highest load gets the fewest calls");
}

void every_invoker(picks &w)
{
    counts all(w.size());
    for (int i = 0; i < 1000; ++i) {
        const std::string first = "arg" + std::to_string(i);
        w.call.method("method1").value();
        w.call.arguments({first, "arg2", "arg3"}).value();
        const auto home = w.pick().row;
        ++all[home];
        for (int again = 0; again < 4; ++again)
            same(w.pick().row, home, first);
    }
    for (std::size_t row = 0; row < all.size(); ++row)
        need(all[row] > 0, got(row, 0));
}

void same_as_plain(const picks &w, const json &one)
{
    json plain = one;
    const json &arguments = get(get(one, "invocation"), "arguments");
    plain["invocation"] = {{"method", arguments[0]}, {"arguments", arguments[2]}};
    const picks second(plain, BYWAY_DIALECT_DUBBO_3);
    same(w.pick().row, second.pick().row, "row");
}

void asserted(picks &w, const json &one, const std::string &words)
{
    const json &expect = get(one, "expect");
    const int runs = static_cast<int>(number(expect, "runs")), threads = static_cast<int>(number(expect, "threads", 1));
    if (starts(words, "same invoker as the plain call"))
        return same_as_plain(w, one);
    if (words == "every invoker is hit")
        return every_invoker(w);
    if (contains(words, "window")) {
        // One slow answer, then a new window in which it no longer counts.
        w.chain.pick_end(w.begin_on(w.size() - 1), true, std::chrono::seconds(5)).value();
        world_now_ns += 30001000000u;
    }
    const counts all = threads > 1 ? w.count_on_threads(runs, threads) : w.count(runs);
    const double total = w.weights(), average = static_cast<double>(runs) / static_cast<double>(w.size());
    int sum = 0;
    for (std::size_t row = 0; row < w.size(); ++row) {
        const double fair = std::floor(runs / total) * w.weight(row), share = runs / total;
        bool good = false;
        if (words == "sum is 10000")
            good = true;
        else if (starts(words, "within 100% of average"))
            good = all[row] > 0 && std::fabs(all[row] - average) <= average;
        else if (starts(words, "each count differs"))
            good = std::fabs(all[row] - average) < 1;
        else if (starts(words, "count per invoker within 10"))
            good = std::fabs(all[row] - fair) <= 10;
        else if (contains(words, "share by weight"))
            good = all[row] > 0 && std::fabs(all[row] / w.weight(row) - share) < 2 * share;
        need(good, got(row, all[row]) + ": " + words);
        sum += all[row];
    }
    same(sum, runs, "calls");
}

void shares(const picks &w, const json &one)
{
    const json &expect = get(one, "expect");
    const int runs = static_cast<int>(number(expect, "runs"));
    std::vector<double> share(w.size());
    const counts all = w.count(runs);
    if (get(expect, "counts").is_object()) {
        for (const auto &[id, want] : get(expect, "counts").items())
            same(all[w.row_of(id)], want, id);
        return;
    }
    const json &observed = get(expect, "observed"), &given = get(expect, "share");
    for (const auto &[id, times] : observed.items()) {
        // Observed counts are themselves one draw; they stand for the nearest simple share.
        const double seen = times.get<double>() / runs, even = 1.0 / static_cast<double>(observed.size());
        share[w.row_of(id)] = std::fabs(seen - even) < 0.05 ? even : seen;
    }
    for (const auto &[id, part] : given.items())
        share[w.row_of(id)] = part.get<double>();
    if (has(expect, "ratio")) { // `A:B about 3:1`
        const std::string ratio = text(expect, "ratio");
        const double left = std::stod(ratio.substr(ratio.find(" about ") + 7)),
                     right = std::stod(ratio.substr(ratio.rfind(':') + 1));
        share[w.row_of(ratio.substr(0, 1))] = left / (left + right);
        share[w.row_of(ratio.substr(2, 1))] = right / (left + right);
    }
    for (std::size_t row = 0; row < w.size(); ++row)
        need(std::fabs(all[row] - share[row] * runs) <= 5 * std::sqrt(runs * share[row] * (1 - share[row])),
             got(row, all[row]));
}

void prepare(const picks &w, const json &one)
{
    const json &active = get(one, "active"), &stats = get(one, "stats");
    for (const auto &[id, calls] : active.items())
        for (int i = 0; i < calls.get<int>(); ++i)
            (void)w.begin_on(w.row_of(id));
    for (const auto &[id, words] : stats.items()) {
        int ms = 0, open = 0;
        need(std::sscanf(words.get<std::string>().c_str(), "one success of %d ms and %d active", &ms, &open) == 2,
             "statistics not understood");
        w.chain.pick_end(w.begin_on(w.row_of(id)), true, std::chrono::milliseconds(ms)).value();
        for (; open > 0; --open)
            (void)w.begin_on(w.row_of(id));
    }
}

void balance(const json &one)
{
    const json &expect = get(one, "expect"), &sane = get(one, "sane");
    picks w(one, BYWAY_DIALECT_DUBBO_3);
    prepare(w, one);
    if (expect.is_array() || has(expect, "sequence"))
        sequence(w, expect);
    else if (has(one, "provider_metrics"))
        adaptive(w, get(one, "provider_metrics"), static_cast<int>(number(expect, "runs")));
    else if (has(expect, "assert"))
        asserted(w, one, text(expect, "assert"));
    else
        shares(w, one);
    if (!sane.is_object())
        return;
    int runs = 0;
    for (const json &times : sane)
        runs += times.get<int>();
    const picks ours(one, BYWAY_DIALECT_BYWAY);
    const counts all = ours.count(runs);
    for (const auto &[id, want] : sane.items())
        same(all[ours.row_of(id)], want, "[byway] " + id);
}

void sticky(const json &one)
{
    picks w(one, BYWAY_DIALECT_DUBBO_3);
    w.options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    const json &five = get(get(one, "expect"), "five_selects");
    if (five.is_array())
        return sequence(w, five);
    const std::uint64_t stuck[] = {w.pick().tag};
    same(w.pick().tag, stuck[0], "it stays");
    w.options.set_exclude(stuck);
    need(w.pick().tag != stuck[0], "it does not leave");
}

void choose(const json &one)
{
    picks w(one, BYWAY_DIALECT_DUBBO_3);
    const json &expect = get(one, "expect"), &selected = get(one, "selected");
    std::uint64_t bits[] = {0};
    std::vector<std::uint64_t> exclude;
    for (std::size_t row = 0; row < w.size(); ++row)
        if (flag(w.providers[row], "available", true))
            bits[0] |= std::uint64_t(1) << row;
    for (const json &item : selected) {
        const std::string id = item.get<std::string>();
        const std::size_t row = w.row_of(id);
        exclude.push_back(selected.size() == 1 && w.id_at(row) != id ? 999 : row + 1); // 999: a tag that is in no list
    }
    // Upstream's tests that name no algorithm drive a round robin or a stub that returns the first.
    if (w.options.balance == 0)
        w.options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    w.options.set_available(bits, w.list);
    w.options.set_exclude(exclude);
    if (expect.is_array())
        return sequence(w, expect);
    if (has(expect, "runs")) {
        const counts all = w.count(static_cast<int>(number(expect, "runs")));
        need(all[1] + all[3] == 1000 && all[1] > 200 && all[3] > 200,
             "i2 " + std::to_string(all[1]) + ", i4 " + std::to_string(all[3]));
        return;
    }
    const json &any = get(expect, "any_of");
    for (int i = 0; i < 100; ++i) {
        const auto picked = w.pick();
        (void)w.chain.pick_end(picked, true, std::chrono::milliseconds(1));
        bool good = any.is_null() && (bits[0] >> picked.row & 1);
        for (const json &id : any)
            good |= id == w.id_at(picked.row);
        need(good, "got " + w.id_at(picked.row));
    }
}

const kinds here = {
    {"dubbo_chain", "lb", balance}, {"dubbo_chain", "sticky", sticky}, {"dubbo_chain", "cluster-select", choose}};

} // namespace
} // namespace conform
