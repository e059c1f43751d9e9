package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import io.byway.BywayException;
import io.byway.DialOptions;
import io.byway.Handshake;
import io.byway.Handshake.Want;
import io.byway.ProxyKind;
import io.byway.Status;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Proxy dialogues through {@link Handshake}: SOCKS bytes, CONNECT bytes, whole CONNECT flows. Every input runs whole, byte
 * by byte, and cut at every place (long ones at a sample of places).
 */
final class DialogueKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of(
                    "bugs/connect_reply", DialogueKinds::connectReply,
                    "bugs/connect_request", DialogueKinds::reportedRequest,
                    "bugs/socks5_auth", DialogueKinds::socks5Auth,
                    "bugs/socks5_reply", DialogueKinds::socks5Reply,
                    "connect/socks", DialogueKinds::socks,
                    "connect/connect", DialogueKinds::connect,
                    "connect/connect_request", DialogueKinds::connectRequest,
                    "connect/connect_flow", DialogueKinds::connectFlow);

    /** Names of faults and how their messages begin: what an error shows. */
    private static final String[][] FAULTS = {
        {"PROXY_CLOSED", "the proxy closed without an answer"},
        {"TRUNCATED", "the proxy closed inside its answer"},
        {"BAD_VERSION", "the answer is not of the expected SOCKS version"},
        {"BAD_HOST", "the host has characters"},
        {"EMPTY_HOST", "the host is empty"},
        {"LONG_HOST", "the host is longer"},
        {"LONG_USER", "the user name is longer"},
        {"LONG_PASSWORD", "the password is longer"},
        {"BAD_USER", "user or password has characters"},
        {"BAD_PORT", "port outside"},
        {"UNSUPPORTED_ADDRESS", "this protocol cannot carry"},
        {"UNRESOLVED_HOST", "SOCKS4 needs an address"},
        {"SOCKS4_REJECTED", "SOCKS4: rejected"},
        {"SOCKS4_NO_IDENTD", "SOCKS4: identd not reachable"},
        {"SOCKS4_IDENT_MISMATCH", "SOCKS4: identd names"},
        {"SOCKS4_UNKNOWN_CODE", "SOCKS4: unknown"},
        {"NO_ACCEPTABLE_METHOD", "SOCKS5: the proxy accepts no"},
        {"METHOD_NOT_OFFERED", "SOCKS5: the proxy picked"},
        {"BAD_AUTH_VERSION", "SOCKS5: wrong version"},
        {"AUTH_REJECTED", "SOCKS5: user or password refused"},
        {"REP_GENERAL_FAILURE", "SOCKS5: general failure"},
        {"REP_NOT_ALLOWED", "SOCKS5: not allowed"},
        {"REP_NET_UNREACHABLE", "SOCKS5: network unreachable"},
        {"REP_HOST_UNREACHABLE", "SOCKS5: host unreachable"},
        {"REP_REFUSED", "SOCKS5: connection refused"},
        {"REP_TTL_EXPIRED", "SOCKS5: TTL"},
        {"REP_COMMAND_NOT_SUPPORTED", "SOCKS5: command"},
        {"REP_ADDRESS_TYPE_NOT_SUPPORTED", "SOCKS5: address type not"},
        {"REP_UNASSIGNED", "SOCKS5: unassigned"},
        {"BAD_ATYP", "SOCKS5: unknown address type"},
        {"BAD_RESERVED", "SOCKS5: reserved"},
        {"BAD_STATUS_LINE", "CONNECT: not an HTTP/1 status line"},
        {"BAD_HEADER", "CONNECT: a header has forbidden"},
        {"HEADER_TOO_LARGE", "CONNECT: the answer's head is too large"},
        {"CONNECT_STATUS", "CONNECT: the proxy refuses the tunnel"},
        {"CONNECT_AUTH_REQUIRED", "CONNECT: the proxy wants"},
        {"CONNECT_AUTH_LOOP", "CONNECT: the proxy keeps"},
        {"EARLY_DATA", "CONNECT: data behind"},
    };

    private DialogueKinds() {}

    static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            text.append(String.format("%02x", one));
        }
        return text.toString();
    }

    private static byte[] latin1(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String latin1(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static byte[] rest(byte[] data, int done) {
        return Arrays.copyOfRange(data, done, data.length);
    }

    /** The fault an error stands for, {@code NAME} or {@code NAME:number}. */
    private static String fault(BywayException error) {
        String message = error.reason();
        for (String[] fault : FAULTS) {
            if (message.startsWith(fault[1])) {
                return fault[0].equals("CONNECT_STATUS")
                        ? fault[0] + ":" + message.substring(message.lastIndexOf(' ') + 1)
                        : fault[0];
            }
        }
        return message;
    }

    private interface Once {
        void run(int first, int rest);
    }

    /** Every way to cut so many bytes in two, whole, and byte by byte: the first piece and each further one. */
    private static void eachCut(byte[] data, Once once) {
        int length = data.length;
        attempt(once, length, 1);
        attempt(once, 1, 1);
        int step = length > 65536 ? length / 24 : length / 600 + 1;
        for (int cut = 1; cut < length; cut += step) {
            attempt(once, cut, length - cut);
        }
    }

    private static void attempt(Once once, int first, int rest) {
        try {
            once.run(first, rest);
        } catch (Case.Fails why) {
            throw new Case.Fails("first piece " + first + ": " + why.getMessage());
        }
    }

    /** How much arrives next. */
    private static int piece(byte[] data, int done, int first, int rest) {
        return Math.min(data.length - done, Math.max(1, done == 0 ? first : rest));
    }

    private static Handshake example(DialOptions options) {
        return Handshake.to(ProxyKind.HTTP, "example.com", 443, null, null, options);
    }

    private static void writeAll(Handshake dialogue) {
        if (dialogue.want() == Want.WRITE) {
            dialogue.sent(dialogue.output().length);
        }
    }

    // SOCKS.

    private static void noteOutput(Handshake dialogue, List<String> sent) {
        if (dialogue.want() == Want.WRITE) {
            byte[] data = dialogue.output();
            if (data.length > 0) {
                sent.add(hex(data));
                dialogue.sent(data.length);
            }
        }
    }

    private static void socks(Case one) {
        byte[] data = bytes(String.join("", one.texts("recv")));
        eachCut(data, (first, rest) -> socksOnce(one, data, first, rest));
    }

    private static void socksOnce(Case one, byte[] data, int first, int rest) {
        Case given = one.of("options");
        DialOptions options =
                new DialOptions()
                        .socksStrict(given.flag("strict") || given.flag("socks_strict"))
                        .socksRequireAuth(given.flag("require_auth"))
                        .socksOptimistic(given.flag("optimistic") || given.flag("socks_optimistic"));
        String version = one.text("version", "5");
        ProxyKind kind =
                version.equals("4") ? ProxyKind.SOCKS4 : version.equals("4a") ? ProxyKind.SOCKS4A : ProxyKind.SOCKS5;
        int done = 0;
        List<String> sent = new ArrayList<>();
        Map<String, Object> got = new LinkedHashMap<>();
        got.put("sent", sent);
        try (Handshake dialogue =
                Handshake.to(
                        kind,
                        one.text("host"),
                        one.integer("port", 0),
                        one.text("user", null),
                        one.text("password"),
                        options)) {
            noteOutput(dialogue, sent);
            while (done < data.length && dialogue.want() == Want.READ) {
                done += dialogue.feed(data, done, Math.min(dialogue.limit(), piece(data, done, first, rest)));
                noteOutput(dialogue, sent);
            }
            if (one.flag("eof")) {
                dialogue.eof();
            }
            if (dialogue.want() == Want.DONE) {
                got.put("result", "connected");
                got.put("leftover", hex(rest(data, done)));
            } else {
                got.put("result", "pending");
            }
        } catch (BywayException error) {
            got.put("result", "error");
            got.put("error", fault(error));
        }
        // What the proxy says it connected from is informative and not part of the interface.
        Map<String, JsonElement> want = one.of("expect").members();
        want.remove("bound");
        same(got, want, "dialogue");
    }

    // CONNECT, one answer.

    /** {@code HTTP/1.1 200 OK CRLF 3 x 'text' CRLF}, as the cases write long answers; a number in front repeats it all. */
    private static byte[] byRule(String rule) {
        int times = 1;
        Matcher whole = Pattern.compile("^(\\d+) x ").matcher(rule);
        if (whole.find()) {
            times = Integer.parseInt(whole.group(1));
            rule = rule.substring(whole.end());
        }
        Matcher parts =
                Pattern.compile("(?:(\\d+) x )?'([^']*)'|(CRLF|HTTP/1\\.1 200 OK)").matcher(rule.split(", no line end")[0]);
        StringBuilder out = new StringBuilder();
        while (parts.find()) {
            if (parts.group(3) != null) {
                out.append(parts.group(3).equals("CRLF") ? "\r\n" : parts.group(3));
            } else {
                out.append(parts.group(2).repeat(parts.group(1) == null ? 1 : Integer.parseInt(parts.group(1))));
            }
        }
        return latin1(out.toString().repeat(times));
    }

    private static void connect(Case one) {
        byte[] data = one.text("recv", null) != null ? latin1(one.text("recv")) : byRule(one.text("recv_rule"));
        eachCut(data, (first, rest) -> connectOnce(one, data, first, rest));
    }

    private static void connectOnce(Case one, byte[] data, int first, int rest) {
        Case given = one.of("options");
        Case expect = one.of("expect");
        DialOptions options =
                new DialOptions()
                        .strict200(given.flag("strict_200"))
                        .rejectEarlyData(given.flag("reject_early_data"))
                        .maxLine(given.integer("max_line", 0))
                        .maxHeader(given.integer("max_header", 0))
                        .maxDrain(given.integer("max_drain", 0));
        int done = 0;
        String fault = "";
        try (Handshake dialogue = example(options)) {
            try {
                writeAll(dialogue);
                while (done < data.length && dialogue.want() == Want.PEEK) {
                    done += dialogue.feed(data, done, piece(data, done, first, rest));
                }
                if (one.flag("eof")) {
                    dialogue.eof();
                }
            } catch (BywayException error) {
                fault = fault(error);
            }
            Want want = dialogue.want();
            String result = expect.text("result");
            if (result.equals("error")) {
                // With a piece that ends at the head's end the data behind it comes too late to be refused here.
                if (expect.text("error").equals("EARLY_DATA") && want == Want.DONE && done < data.length) {
                    fault = "EARLY_DATA";
                }
                same(fault, expect.get("error"), "fault");
                return;
            }
            same(fault, "", "fault");
            switch (result) {
                case "tunnel":
                    need(want == Want.DONE, "wants " + want);
                    same(latin1(rest(data, done)), expect.text("leftover"), "left over");
                    break;
                case "pending":
                    need(want == Want.PEEK, "wants " + want + " instead of more");
                    break;
                case "auth_challenge":
                    need(want == Want.CREDENTIALS, "wants " + want + " instead of credentials");
                    same(dialogue.challenges(), expect.list("challenges"), "challenges");
                    dialogue.answer("Basic x");
                    same(dialogue.want() == Want.WRITE, expect.flag("reuse"), "reuse");
                    break;
                default:
                    throw new Case.Fails("unknown expectation " + result);
            }
        }
    }

    private static void connectRequest(Case one) {
        String auth = one.text("auth", null);
        Object got;
        DialOptions options = new DialOptions().userAgent(one.text("ua", "test/1")).askFirst(auth != null);
        try (Handshake dialogue =
                Handshake.to(ProxyKind.HTTP, one.text("host"), one.integer("port", 0), null, null, options)) {
            if (auth != null) {
                dialogue.answer(auth);
            }
            got = latin1(dialogue.output());
        } catch (BywayException error) {
            // Refused with the options already.
            got = Map.of("error", error.code() == Status.E_ARGUMENT ? "BAD_HEADER" : fault(error));
        }
        same(got, one.get("expect"), "request");
    }

    // CONNECT, whole flows.

    /** A proxy that says what the case scripts, connection by connection. */
    private static final class Flow {
        final List<List<String>> connections = new ArrayList<>();
        final List<String> auth;
        final Handshake dialogue;
        int answers;
        String last;
        int connection;
        int turn;
        int calls;
        int requests;

        Flow(Case one) {
            for (JsonElement script : one.list("connections")) {
                List<String> items = new ArrayList<>();
                script.getAsJsonArray().forEach(item -> items.add(item.getAsString()));
                connections.add(items);
            }
            auth = one.texts("auth");
            Case options = one.of("options");
            boolean askFirst = auth.isEmpty() || !"none_preemptive".equals(auth.get(0));
            answers = askFirst ? 0 : 1;
            dialogue =
                    example(
                            new DialOptions()
                                    .askFirst(askFirst)
                                    .repeatCredentials(!options.flag("stop_on_same_credentials"))
                                    .maxTunnelAttempts(options.integer("max_tunnel_attempts", 0)));
        }

        String item() {
            List<String> script = connection < connections.size() ? connections.get(connection) : List.of();
            return turn < script.size() ? script.get(turn) : null;
        }

        void write() {
            byte[] data = dialogue.output();
            Matcher found =
                    Pattern.compile("^(Proxy-Authorization: [^\r]*)\r", Pattern.MULTILINE).matcher(latin1(data));
            String phrase =
                    "CONNECT example.com:443 (" + (found.find() ? found.group(1) : "no Proxy-Authorization") + ")";
            String item = item();
            need(item != null, "a request too many: " + phrase);
            if (!item.equals("EOF")) {
                same(phrase, item, "request");
                turn++;
                requests++;
            }
            dialogue.sent(data.length);
        }

        void read() {
            String item = item();
            if (item == null || item.equals("EOF")) {
                dialogue.eof();
                return;
            }
            turn++;
            for (byte one : latin1(item)) {
                dialogue.feed(new byte[] {one});
            }
        }

        /** False when the case calls the dial off. */
        boolean credentials() {
            calls += dialogue.challenges().isEmpty() ? 0 : 1;
            String item = answers < auth.size() ? auth.get(answers) : null;
            if (!"repeat".equals(item)) {
                last = item;
                answers++;
            }
            if ("cancel".equals(last)) {
                return false;
            }
            dialogue.answer(last);
            return true;
        }

        String run() {
            while (true) {
                switch (dialogue.want()) {
                    case WRITE:
                        write();
                        break;
                    case PEEK:
                        read();
                        break;
                    case CREDENTIALS:
                        if (!credentials()) {
                            return "canceled";
                        }
                        break;
                    case RECONNECT:
                        connection++;
                        turn = 0;
                        dialogue.reconnected();
                        break;
                    default:
                        return "tunnel";
                }
            }
        }
    }

    private static void connectFlow(Case one) {
        Flow flow = new Flow(one);
        Case expect = one.of("expect");
        String result;
        String fault = "";
        try {
            result = flow.run();
        } catch (BywayException error) {
            result = "error";
            fault = fault(error);
        }
        same(result, expect.get("result"), "result (" + fault + ")");
        same(fault, expect.text("error"), "fault");
        Map<String, Integer> counted =
                Map.of("tcp_connects", flow.connection + 1, "requests_sent", flow.requests, "auth_calls", flow.calls);
        counted.forEach(
                (name, got) -> {
                    if (expect.get(name) != null) {
                        same(got, expect.get(name), name);
                    }
                });
    }

    // The bug log: answers and requests in the reporters' words.

    /** What an error of the log means among ours. */
    private static boolean means(String want, String fault) {
        if (want.equals("unexpected_eof")) {
            return fault.equals("TRUNCATED") || fault.equals("PROXY_CLOSED");
        }
        if (want.startsWith("protocol")) {
            return fault.startsWith("BAD_");
        }
        if (want.contains("too_long")) {
            return fault.startsWith("LONG_");
        }
        return want.equalsIgnoreCase(fault);
    }

    private static void connectReply(Case one) {
        byte[] data = latin1(String.join("", one.of("input").texts("chunks")));
        eachCut(data, (first, rest) -> answerOnce(one, data, first, rest));
    }

    private static void answerOnce(Case one, byte[] data, int first, int rest) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        String credentials = given.text("credentials");
        int colon = credentials.indexOf(':');
        int done = 0;
        String fault = "";
        try (Handshake dialogue =
                Handshake.to(
                        ProxyKind.HTTP,
                        "o.example",
                        443,
                        colon < 0 ? null : credentials.substring(0, colon),
                        colon < 0 ? null : credentials.substring(colon + 1),
                        new DialOptions().noPreemptiveAuth(true))) {
            try {
                while (done < data.length) {
                    writeAll(dialogue);
                    if (dialogue.want() != Want.PEEK) {
                        break;
                    }
                    done += dialogue.feed(data, done, piece(data, done, first, rest));
                }
                if (given.flag("eof")) {
                    dialogue.eof();
                }
            } catch (BywayException error) {
                fault = fault(error);
            }
            Want want = dialogue.want();
            int connections = 1;
            if (expect.get("error") != null) {
                need(means(expect.text("error"), fault), "got " + fault + ", want " + expect.text("error"));
            } else {
                same(fault, "", "fault");
                if (expect.has("tunnel")) {
                    same(want == Want.DONE, expect.get("tunnel"), "tunnel");
                }
                if (expect.has("leftover")) {
                    same(latin1(rest(data, done)), expect.get("leftover"), "left over");
                }
                if (expect.has("action")) {
                    same("reconnect_with_credentials", expect.get("action"), "action");
                    need(want == Want.RECONNECT, "wants " + want);
                    dialogue.reconnected();
                    need(latin1(dialogue.output()).contains("Proxy-Authorization: Basic "), "no credentials");
                } else if (want == Want.RECONNECT) {
                    connections++;
                }
            }
            if (expect.get("connections") != null) {
                same(connections, expect.get("connections"), "connections");
            }
        }
    }

    private static void reportedRequest(Case one) {
        Case given = one.of("input");
        Map<String, String> headers = new LinkedHashMap<>();
        given.of("request_headers").members().forEach((name, value) -> headers.put(name, value.getAsString()));
        String request;
        try (Handshake dialogue =
                Handshake.to(
                        ProxyKind.HTTP,
                        given.text("host"),
                        given.integer("port", 0),
                        null,
                        null,
                        new DialOptions().headers(headers))) {
            request = latin1(dialogue.output());
        } catch (BywayException error) {
            need(means(one.of("expect").text("error"), fault(error)), "got " + fault(error));
            return;
        }
        one.of("expect")
                .members()
                .forEach(
                        (key, want) -> {
                            switch (key) {
                                case "request_line":
                                    need(request.startsWith(want.getAsString() + "\r\n"), "got " + request);
                                    break;
                                case "in_connect":
                                    Map.Entry<String, String> header = headers.entrySet().iterator().next();
                                    String line = header.getKey() + ": " + header.getValue() + "\r\n";
                                    same(request.contains(line), want, key);
                                    break;
                                case "in_tunnel":
                                    same(!request.endsWith("\r\n\r\n"), want, key);
                                    break;
                                default:
                                    throw new Case.Fails("unknown expectation " + key);
                            }
                        });
    }

    private static Handshake socks5(String user, String password) {
        Handshake dialogue = Handshake.to(ProxyKind.SOCKS5H, "o.example", 443, user, password, new DialOptions());
        writeAll(dialogue);
        dialogue.feed(new byte[] {5, (byte) (user == null ? 0 : 2)});
        return dialogue;
    }

    private static void socks5Auth(Case one) {
        Case given = one.of("input");
        try (Handshake dialogue = socks5(given.text("user"), given.text("password"))) {
            same(hex(dialogue.output()), one.of("expect").get("bytes_hex"), "bytes");
        }
    }

    private static void socks5Reply(Case one) {
        byte[] data = bytes(one.of("input").text("hex"));
        eachCut(data, (first, rest) -> replyOnce(one.of("expect"), data, first, rest));
    }

    private static void replyOnce(Case expect, byte[] data, int first, int rest) {
        int done = 0;
        String fault = "";
        try (Handshake dialogue = socks5(null, null)) {
            try {
                writeAll(dialogue);
                while (done < data.length && dialogue.want() == Want.READ) {
                    done += dialogue.feed(data, done, piece(data, done, first, rest));
                }
            } catch (BywayException error) {
                fault = fault(error);
            }
            if (expect.get("error") != null) {
                need(means(expect.text("error"), fault), "got " + fault + ", want " + expect.text("error"));
            } else {
                need(dialogue.want() == Want.DONE, "wants " + dialogue.want() + " " + fault);
                same(hex(rest(data, done)), expect.text("leftover_hex"), "left over");
            }
        }
    }
}
