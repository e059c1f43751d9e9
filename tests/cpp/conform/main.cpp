// Every case of every file in BYWAY_VECTORS (default tests/vectors) that some subject runs. The last line is
// `cpp: N passed, N failed, N skipped (kinds ...)`; kinds that no subject runs are counted there, by name.
#include "runner.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

namespace conform {

namespace {

std::map<std::pair<std::string, std::string>, void (*)(const json &)> &runners()
{
    static std::map<std::pair<std::string, std::string>, void (*)(const json &)> all;
    return all;
}

struct score {
    int passed = 0, failed = 0;
    std::map<std::string, int> skipped;

    void run(const std::string &file, const std::string &line, const char *only)
    {
        const json one = json::parse(line, nullptr, false);
        if (one.is_discarded()) {
            ++failed;
            std::cout << "FAIL " << file << " ?: not JSON\n";
            return;
        }
        const std::string id = text(one, "id", "?"), kind = text(one, "kind", "?");
        if (only && id != only && kind != only && file != only)
            return;
        const auto runner = runners().find({file, kind});
        if (runner == runners().end()) {
            ++skipped[file + "/" + kind];
            return;
        }
        std::string why;
        try {
            runner->second(one);
            ++passed;
            return;
        } catch (const conform::skipped &left_out) {
            ++skipped[kind + ": " + left_out.why];
            return;
        } catch (const failure &mismatch) {
            why = mismatch.why;
        } catch (const std::exception &thrown) {
            why = thrown.what();
        }
        ++failed;
        std::cout << "FAIL " << file << ' ' << id << " (" << kind << "): " << why << '\n';
    }
};

} // namespace

kinds::kinds(std::initializer_list<kind> row)
{
    for (const kind &one : row)
        runners()[{one.file, one.kind}] = one.run;
}

void fail(std::string why) { throw failure{std::move(why)}; }
void skip(std::string why) { throw skipped{std::move(why)}; }

bool equal(const json &a, const json &b) { return nlohmann::json(a) == nlohmann::json(b); }

void same(const json &got, const json &want, const std::string &what)
{
    if (!equal(got, want))
        fail(what + ": got " + got.dump() + ", want " + want.dump());
}

const json &get(const json &object, std::string_view name)
{
    static const json nothing;
    if (!object.is_object())
        return nothing;
    const auto found = object.find(std::string(name));
    return found == object.end() ? nothing : *found;
}

bool has(const json &object, std::string_view name) { return !get(object, name).is_null(); }

std::string text(const json &object, std::string_view name, std::string_view otherwise)
{
    const json &value = get(object, name);
    return value.is_string() ? value.get<std::string>() : std::string(otherwise);
}

double number(const json &object, std::string_view name, double otherwise)
{
    const json &value = get(object, name);
    return value.is_number() ? value.get<double>() : otherwise;
}

bool flag(const json &object, std::string_view name, bool otherwise)
{
    const json &value = get(object, name);
    return value.is_boolean() ? value.get<bool>() : otherwise;
}

} // namespace conform

int main(int argc, char **argv)
{
    const char *folder = std::getenv("BYWAY_VECTORS");
    std::vector<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(folder ? folder : "tests/vectors"))
        if (entry.path().extension() == ".jsonl")
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    conform::score score;
    for (const auto &path : files) {
        std::ifstream in(path);
        for (std::string line; std::getline(in, line);)
            if (line.find_first_not_of(" \r\n") != line.npos)
                score.run(path.stem().string(), line, argc > 1 ? argv[1] : nullptr);
    }
    std::cout << "cpp: " << score.passed << " passed, " << score.failed << " failed";
    int total = 0;
    std::string named;
    for (const auto &[name, count] : score.skipped) {
        total += count;
        named += (named.empty() ? "" : ", ") + name + " " + std::to_string(count);
    }
    if (total)
        std::cout << ", " << total << " skipped (kinds " << named << ")";
    std::cout << std::endl;
    return score.failed > 0;
}
