package io.byway;

import java.util.List;

/**
 * A call failed. {@link #code()} is what to branch on, the message is what a person reads. What a callback threw on the
 * way is the {@linkplain #getCause() cause}.
 */
public class BywayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int code;
    private final String reason;
    private final String subject;
    private final long offset;
    private final int line;
    private final int column;
    private final int osErrno;
    private final long hostCode;
    private final int source;
    private final transient List<BywayException> causes;

    BywayException(Fields fields) {
        super(fields.text());
        code = fields.code;
        reason = fields.message;
        subject = fields.subject;
        offset = fields.offset;
        line = fields.line;
        column = fields.column;
        osErrno = fields.osErrno;
        hostCode = fields.hostCode;
        source = fields.source;
        causes = fields.causes;
    }

    /** What to branch on: one of {@link Status}. */
    public int code() {
        return code;
    }

    /** C name of the code, for example {@code BYWAY_E_BUSY}. */
    public String name() {
        return Status.name(code);
    }

    /** One line, without subject and place. */
    public String reason() {
        return reason;
    }

    /** What it is about: a parameter, a host, a rule key; empty when there is nothing to name. */
    public String subject() {
        return subject;
    }

    /** Byte offset in the text that was parsed, -1 when it is not about a text. */
    public long offset() {
        return offset;
    }

    /** From 1; 0 when it is not about a text. */
    public int line() {
        return line;
    }

    /** From 1, in characters; 0 when it is not about a text. */
    public int column() {
        return column;
    }

    /** The system's number, 0 for none. */
    public int osErrno() {
        return osErrno;
    }

    /** The number a callback gave with its failure. */
    public long hostCode() {
        return hostCode;
    }

    /** 0 argument, 1 callback, 2 parser, 3 socket, 4 script, 5 panic, 6 engine; -1 when the call says no more. */
    public int source() {
        return source;
    }

    /** Every failed attempt, in the order they happened. */
    public List<BywayException> causes() {
        return causes == null ? List.of() : causes;
    }

    /** An argument has a value it must not have. */
    public static class Argument extends BywayException {
        private static final long serialVersionUID = 1L;

        Argument(Fields fields) {
            super(fields);
        }
    }

    /** The object is closed, or in use by another call. */
    public static class Handle extends BywayException {
        private static final long serialVersionUID = 1L;

        Handle(Fields fields) {
            super(fields);
        }
    }

    /** The operation was cancelled. */
    public static class Canceled extends BywayException {
        private static final long serialVersionUID = 1L;

        Canceled(Fields fields) {
            super(fields);
        }
    }

    /** Time ran out. */
    public static class Timeout extends BywayException {
        private static final long serialVersionUID = 1L;

        Timeout(Fields fields) {
            super(fields);
        }
    }

    /** The engine is shut down, or the process was forked. */
    public static class Shutdown extends BywayException {
        private static final long serialVersionUID = 1L;

        Shutdown(Fields fields) {
            super(fields);
        }
    }

    /** Compiled out or not available on this platform. */
    public static class Unsupported extends BywayException {
        private static final long serialVersionUID = 1L;

        Unsupported(Fields fields) {
            super(fields);
        }
    }

    /** A callback failed. What it threw is the {@linkplain #getCause() cause}. */
    public static class Host extends BywayException {
        private static final long serialVersionUID = 1L;

        Host(Fields fields) {
            super(fields);
        }
    }

    /** Proxies: selection, description, what they answer. */
    public static class Proxy extends BywayException {
        private static final long serialVersionUID = 1L;

        Proxy(Fields fields) {
            super(fields);
        }
    }

    /** Name resolution failed. */
    public static class Dns extends BywayException {
        private static final long serialVersionUID = 1L;

        Dns(Fields fields) {
            super(fields);
        }
    }

    /** Rules, invoker lists, scripts, sources. */
    public static class Rule extends BywayException {
        private static final long serialVersionUID = 1L;

        Rule(Fields fields) {
            super(fields);
        }
    }

    /** The invoker list is not usable; {@link #subject()} names the row or the parameter. */
    public static class Invokers extends Rule {
        private static final long serialVersionUID = 1L;

        Invokers(Fields fields) {
            super(fields);
        }
    }

    /** No invoker may serve the call. */
    public static class NoInvoker extends Rule {
        private static final long serialVersionUID = 1L;

        NoInvoker(Fields fields) {
            super(fields);
        }
    }

    /** The address filter refuses every target. */
    public static class Filtered extends BywayException {
        private static final long serialVersionUID = 1L;

        Filtered(Fields fields) {
            super(fields);
        }
    }

    /** Connecting failed; {@link #causes()} has every attempt. */
    public static class Connect extends BywayException {
        private static final long serialVersionUID = 1L;

        Connect(Fields fields) {
            super(fields);
        }
    }

    /** What the library's error object says. */
    static final class Fields {
        final int code;
        final String message;
        final String subject;
        final long offset;
        final int line;
        final int column;
        final int osErrno;
        final long hostCode;
        final int source;
        final List<BywayException> causes;

        Fields(
                int code,
                String message,
                String subject,
                long offset,
                int line,
                int column,
                int osErrno,
                long hostCode,
                int source,
                List<BywayException> causes) {
            this.code = code;
            this.message = message;
            this.subject = subject;
            this.offset = offset;
            this.line = line;
            this.column = column;
            this.osErrno = osErrno;
            this.hostCode = hostCode;
            this.source = source;
            this.causes = causes;
        }

        String text() {
            StringBuilder text = new StringBuilder();
            if (!subject.isEmpty()) {
                text.append(subject).append(": ");
            }
            if (line > 0) {
                text.append("line ").append(line).append(", column ").append(column).append(": ");
            }
            return text.append(message).toString();
        }
    }
}
