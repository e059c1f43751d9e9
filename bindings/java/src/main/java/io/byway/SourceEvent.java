package io.byway;

import java.util.function.Consumer;

/** One event of a chain that follows a source. */
public final class SourceEvent {
    /** What happened. */
    public enum Kind {
        /** The first world is in force. */
        READY(Abi.SOURCE_EVENT_READY),

        /** The source is kept up to date, again. */
        CONNECTED(Abi.SOURCE_EVENT_CONNECTED),

        /** The source is away; the last world stays. */
        DISCONNECTED(Abi.SOURCE_EVENT_DISCONNECTED),

        /** Another world is in force; {@link SourceEvent#worlds} counts them. */
        CHANGED(Abi.SOURCE_EVENT_CHANGED),

        /** A rule, override or entry was refused; what was in force stays. */
        REFUSED(Abi.SOURCE_EVENT_REFUSED),

        /** The list has become empty in the centre and is kept. */
        KEPT(Abi.SOURCE_EVENT_KEPT);

        private static final Kind[] ALL = values();

        private final int number;

        Kind(int number) {
            this.number = number;
        }

        /** The number of the C header. */
        public int number() {
            return number;
        }

        static Kind of(int number) {
            for (Kind one : ALL) {
                if (one.number == number) {
                    return one;
                }
            }
            throw new IllegalArgumentException("no source event has number " + number);
        }
    }

    private final Kind kind;
    private final int status;
    private final long worlds;
    private final String subject;
    private final BywayException error;

    SourceEvent(int kind, int status, long worlds, String subject, BywayException error) {
        this.kind = Kind.of(kind);
        this.status = status;
        this.worlds = worlds;
        this.subject = subject;
        this.error = error;
    }

    /** What happened. */
    public Kind kind() {
        return kind;
    }

    /** {@link Status#OK}, or that of the error. */
    public int status() {
        return status;
    }

    /** Worlds put in force so far; 0 where it does not belong. */
    public long worlds() {
        return worlds;
    }

    /** What was refused, or empty. */
    public String subject() {
        return subject;
    }

    /** Why, or null. */
    public BywayException error() {
        return error;
    }

    @Override
    public String toString() {
        return kind + (subject.isEmpty() ? "" : " " + subject) + (error == null ? "" : " " + error);
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        @SuppressWarnings("unchecked")
        static void event(Object target, int kind, int status, long worlds, byte[] subject, Throwable error) {
            try {
                ((Consumer<SourceEvent>) target)
                        .accept(new SourceEvent(kind, status, worlds, Texts.of(subject), (BywayException) error));
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }
    }
}
